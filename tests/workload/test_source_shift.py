from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.workload import Sources, SourceShift, Zipf, one_becomes_skewed


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 70), st.integers(0, 500), st.integers(1, 600))
def test_every_tuple_belongs_to_the_phase_of_its_position(every: int, n: int, block: int) -> None:
    def phase(number: int) -> Sources:
        return Sources([Zipf(0.0, keys=1000, hottest=number), Zipf(1.0, keys=1000, hottest=number)])

    keys, sources = Sources(phase(0).parts, seed=1).take(n)
    expected = (keys + np.arange(n) // every) % 1000
    stream = SourceShift(every, phase)
    for found in (stream.take(n), joined(list(stream.blocks(n, block)))):
        np.testing.assert_array_equal(found[0], expected)
        np.testing.assert_array_equal(found[1], sources)


def joined(blocks: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    empty = (np.empty(0, np.int64), np.empty(0, np.int32))
    keys, sources = zip(empty, *blocks, strict=True)
    return np.concatenate(keys), np.concatenate(sources)


def test_one_source_becomes_skewed_and_the_other_does_not() -> None:
    keys, sources = one_becomes_skewed(1.5, after=100_000, keys=1000).take(300_000)
    shares = [
        [np.bincount(part[own == source]).max() / np.count_nonzero(own == source) for source in (0, 1)]
        for part, own in zip(keys.reshape(3, -1), sources.reshape(3, -1), strict=True)
    ]
    assert max(*shares[0], shares[1][0], shares[2][0]) < 0.005
    assert min(shares[1][1], shares[2][1]) == pytest.approx(Zipf(1.5, 1000).frequencies[0], abs=0.01)


def test_what_cannot_shift_is_refused() -> None:
    with pytest.raises(SkewlessError, match="at least 1 tuple, not 0"):
        one_becomes_skewed(1.5, after=0)
    with pytest.raises(SkewlessError, match="at least 0, not -1"):
        one_becomes_skewed(1.5, after=5).take(-1)
