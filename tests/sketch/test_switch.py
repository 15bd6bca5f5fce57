from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.sketch.keys import key_hash
from skewless.sketch.switch import SwitchCounts, counts_add, counts_full, counts_next_window

unhurried = settings(deadline=None)  # the first example may compile the kernels
FIRST_OF_NEXT = np.array([0])  # opens the next window


def window_of(distinct: int, tuples: int) -> np.ndarray:
    """A whole window with so many keys."""
    return np.arange(tuples) % distinct


@unhurried
@given(st.integers(1, 60), st.integers(1, 60))
def test_a_window_counted_exactly_is_followed_by_a_sketched_one_from_switch_at_keys(
    distinct: int, switch_at: int
) -> None:
    counts = SwitchCounts(window=60, switch_at=switch_at)
    counts.add(window_of(distinct, 60))
    assert not counts.sketching
    counts.add(FIRST_OF_NEXT)
    assert counts.sketching == (distinct >= switch_at)


@pytest.mark.parametrize(("distinct", "sketched_again"), [(1, False), (80, False), (120, True), (1_000, True)])
def test_a_sketched_window_is_followed_by_what_suits_its_keys(distinct: int, sketched_again: bool) -> None:
    counts = SwitchCounts(window=1_000, switch_at=100)
    counts.add(window_of(500, 1_000))
    counts.add(window_of(distinct, 1_000))
    assert counts.sketching
    counts.add(FIRST_OF_NEXT)
    assert counts.sketching == sketched_again


def test_it_goes_there_and_back_at_exactly_the_stated_number_of_keys() -> None:
    counts = SwitchCounts(window=100, switch_at=20)
    seen = []
    for distinct in (19, 20, 5, 19, 20, 5, 100):
        counts.add(window_of(distinct, 100))
        seen.append(counts.sketching)
    assert seen == [False, False, True, False, False, True, False]


@pytest.mark.parametrize("switch_at", [1, 50, 10**9])
@pytest.mark.parametrize(("mode", "sketching"), [("exact", False), ("countmin", True)])
def test_a_fixed_mode_never_switches(mode: str, sketching: bool, switch_at: int) -> None:
    counts = SwitchCounts(window=5_000, mode=mode, switch_at=switch_at, epsilon=0.3)
    for distinct in (1, 5_000, 10, 5_000, 5_000, 1):
        counts.add(window_of(distinct, 5_000))
        assert counts.sketching == sketching


def test_with_more_keys_than_the_sketch_can_tell_it_goes_on_sketching() -> None:
    counts = SwitchCounts(window=3_000, switch_at=3_000, epsilon=0.3)
    width = counts.state.cells.shape[1]
    assert 4 * width * np.log(width) < 500
    seen = []
    for distinct in (3_000, 500, 500, 5, 5):
        counts.add(window_of(distinct, 3_000))
        seen.append(counts.sketching)
    assert seen == [False, True, True, True, False]


@unhurried
@given(
    st.lists(st.integers(-3, 30), max_size=300),
    st.one_of(st.none(), st.integers(1, 80)),
    st.sampled_from(["switch", "exact", "countmin"]),
    st.integers(1, 20),
    st.lists(st.integers(0, 300), max_size=6),
)
def test_few_keys_are_counted_exactly_in_every_mode_however_the_stream_is_cut(
    stream: list[int], window: int | None, mode: str, switch_at: int, cuts: list[int]
) -> None:
    # No two of these keys meet in all rows of the sketch, so it makes no error either, and nothing old may be left.
    counts = SwitchCounts(window, mode=mode, switch_at=switch_at)
    keys = np.array(stream, np.int64)
    for piece in np.split(keys, sorted(min(cut, len(keys)) for cut in cuts)):
        counts.add(piece)
    current = stream[(len(stream) - 1) // window * window :] if window and stream else stream
    truth = Counter(current)
    assert counts.total == len(current)
    asked = np.arange(-4, 32)
    assert counts.estimate(asked).tolist() == [truth[key] for key in asked.tolist()]
    if not counts.sketching:
        assert dict(zip(*(column.tolist() for column in counts.heavy(0.0)), strict=True)) == truth


@pytest.mark.parametrize("mode", ["switch", "countmin"])
def test_a_sketched_window_holds_the_bound_of_count_min(mode: str) -> None:
    window, epsilon, delta = 10_000, 0.01, 0.05
    above = asked = 0
    for seed in range(20):
        stream = np.random.default_rng(seed).zipf(1.2, 3 * window)
        counts = SwitchCounts(window, epsilon=epsilon, delta=delta, switch_at=100, mode=mode)
        counts.add(stream)
        assert counts.sketching
        keys, truth = np.unique(stream[-window:], return_counts=True)
        excess = counts.estimate(keys) - truth
        assert (excess >= 0).all()
        assert excess.any()
        above += np.count_nonzero(excess > epsilon * window)
        asked += len(keys)
    assert above <= delta * asked


def test_a_sketched_window_needs_no_room_for_its_keys() -> None:
    counts = SwitchCounts(mode="countmin")
    rows = len(counts.table.entries)
    counts.add(np.arange(10 * rows))
    assert len(counts.table.entries) == rows
    assert not counts_full(counts.state)


def test_the_kernels_count_as_the_class_does() -> None:
    counts = SwitchCounts(mode="switch", switch_at=600)
    for round_ in range(1, 3):
        for key in range(600):
            if counts_full(counts.state):
                counts.grow()
            assert counts_add(counts.state, key_hash(key), key, 5) == 5 * round_
    assert counts.estimate(np.array([0, 599, 600])).tolist() == [10, 10, 0]
    counts_next_window(counts.state)
    assert counts.sketching
    assert counts_add(counts.state, key_hash(3), 3, 7) == 7
    counts_next_window(counts.state)
    assert not counts.sketching
    assert counts_add(counts.state, key_hash(3), 3, 1) == 1


def test_reset_ends_the_window_early() -> None:
    counts = SwitchCounts(window=100, switch_at=3)
    counts.add(np.array([1, 2, 3]))
    counts.reset()
    assert counts.sketching
    assert counts.total == 0
    counts.add(np.array([1] * 100))
    assert counts.estimate(np.array([1, 2])).tolist() == [100, 0]


def test_a_sketched_window_has_no_names_to_give() -> None:
    with pytest.raises(SkewlessError, match=r"sketched.*use CountMin, or mode='exact'"):
        SwitchCounts(mode="countmin").heavy(0.1)


def test_heavy_is_exact_while_the_window_is() -> None:
    counts = SwitchCounts()
    counts.add(np.repeat([4, 5, 6], [7, 90, 3]))
    keys, found = counts.heavy(0.07)
    assert (keys.tolist(), found.tolist()) == ([5, 4], [90, 7])


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"window": 0}, "window is 0 tuples; give at least 1"),
        ({"mode": "guess"}, "statistics are 'guess'; choose one of exact, countmin, switch"),
        ({"switch_at": 0}, "switch_at is 0 keys; give at least 1"),
        ({"epsilon": 0}, "epsilon is 0; give a number between 0 and 1"),
        ({"delta": 1.5}, r"delta is 1\.5; give a number between 0 and 1"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object], complaint: str) -> None:
    with pytest.raises(SkewlessError, match=complaint):
        SwitchCounts(**wrong)  # type: ignore[arg-type]  # wrong on purpose
