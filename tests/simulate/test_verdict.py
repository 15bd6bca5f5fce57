from __future__ import annotations

import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.simulate.replay import Replay
from skewless.simulate.verdict import choose


def result(worst: float, fragments: float, seconds: float = 1.0) -> Replay:
    """A replay on two workers, in two windows, of which the second is the worst."""
    loads = np.array([[500, 500], [round(500 * worst), 1000 - round(500 * worst)]])
    each = np.array([fragments, fragments])
    whole = each.astype(np.int64)
    return Replay(loads, loads, each, each, whole, whole, loads.sum(axis=0), 0, 1000, 1000, seconds)


def test_hash_is_enough_for_a_stream_without_skew() -> None:
    verdict = choose({"hash": result(1.1, 1.0), "shuffle": result(1.0, 2.0)})
    assert verdict.split == "hash"
    assert "not skewed enough" in verdict.why


def test_the_least_split_of_the_balanced_wins() -> None:
    verdict = choose(
        {"hash": result(1.8, 1.0), "shuffle": result(1.0, 2.0), "cam": result(1.08, 1.3), "cm": result(1.12, 1.1)}
    )
    assert verdict.split == "cam"
    assert "of the 2" in verdict.why
    assert "(1.00, shuffle)" in verdict.why


def test_the_faster_wins_among_equals() -> None:
    verdict = choose(
        {"slow": result(1.2, 1.301, 2.0), "fast": result(1.2, 1.304, 1.0), "shuffle": result(1.2, 2.0, 0.1)}
    )
    assert verdict.split == "fast"
    assert "fastest of the 2" in verdict.why


def test_one_that_is_far_ahead_needs_no_comparison() -> None:
    verdict = choose({"hash": result(1.9, 1.0), "shuffle": result(1.0, 2.0)})
    assert verdict.split == "shuffle"
    assert "no other comes near" in verdict.why


def test_one_alone_is_not_praised() -> None:
    assert "only one that was tried" in choose({"hash": result(1.9, 1.0)}).why


def test_tolerance_widens_the_choice() -> None:
    replays = {"hash": result(1.9, 1.0), "shuffle": result(1.0, 2.0)}
    assert choose(replays, tolerance=1.0).split == "hash"


def test_there_is_something_to_choose_from() -> None:
    with pytest.raises(SkewlessError, match="no splitters"):
        choose({})
