from __future__ import annotations

import numpy as np

from skewless.core.counts import Counts
from skewless.core.home import homes
from skewless.split import Hash


def test_every_tuple_goes_home() -> None:
    keys = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 5_000)
    assert Hash(9).route(keys).tolist() == homes(keys, 9).tolist()


def test_no_key_is_ever_split_however_hot() -> None:
    assert len(set(Hash(8).route(np.full(1_000, 5)).tolist())) == 1


def test_a_plan_has_no_lanes() -> None:
    policy = Hash(8).plan(Counts(np.array([5]), np.array([900]), total=1_000))
    assert len(policy) == 0
    assert policy.tail == "hash"
