from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.sketch.exact import ExactCounts

unhurried = settings(deadline=None)  # the first example may compile the kernels
WINDOWS = st.one_of(st.none(), st.integers(1, 80))
CUTS = st.lists(st.integers(0, 300), max_size=6)
STREAMS = st.lists(st.one_of(st.integers(-3, 12), st.integers(-(2**63), 2**63 - 1)), max_size=300)


def fed(stream: list[int], window: int | None, cuts: list[int]) -> ExactCounts:
    counts = ExactCounts(window)
    keys = np.array(stream, np.int64)
    for piece in np.split(keys, sorted(min(cut, len(keys)) for cut in cuts)):
        counts.add(piece)
    return counts


def current(stream: list[int], window: int | None) -> list[int]:
    """The tuples of the window that the last tuple is in."""
    return stream[(len(stream) - 1) // window * window :] if window and stream else stream


@unhurried
@given(STREAMS, WINDOWS, CUTS)
def test_it_counts_the_current_window_exactly_however_the_stream_is_cut(
    stream: list[int], window: int | None, cuts: list[int]
) -> None:
    counts, truth = fed(stream, window, cuts), Counter(current(stream, window))
    asked = sorted({*stream, 99})
    assert counts.total == sum(truth.values())
    assert counts.estimate(np.array(asked, np.int64)).tolist() == [truth[key] for key in asked]
    keys, found = counts.heavy(0.0)
    assert list(zip(keys.tolist(), found.tolist(), strict=True)) == sorted(
        truth.items(), key=lambda item: (-item[1], item[0])
    )


@unhurried
@given(st.lists(st.integers(0, 6), min_size=1, max_size=200), st.integers(1, 30), st.integers(1, 30))
@example([0] * 7 + [1] * 93, 7, 100)  # 0.07 x 100 is above 7 in floating point
def test_heavy_has_the_keys_of_that_share_and_no_others(stream: list[int], part: int, whole: int) -> None:
    keys, _ = fed(stream, None, []).heavy(part / whole)
    truth = Counter(stream)
    assert set(keys.tolist()) == {k for k in truth if Fraction(truth[k], len(stream)) >= Fraction(part, whole)}


def test_many_keys_outgrow_the_table_in_the_middle_of_a_window() -> None:
    keys = np.random.default_rng(5).integers(-(2**63), 2**63 - 1, 20_000)
    stream = np.concatenate((keys[:5_000], keys, keys[15_000:]))
    counts = ExactCounts(window=30_000)
    counts.add(stream)
    truth = Counter(stream.tolist())
    assert counts.total == 30_000
    assert counts.estimate(keys).tolist() == [truth[key] for key in keys.tolist()]
    counts.add(stream[:1])
    assert counts.heavy(0.0)[0].tolist() == stream[:1].tolist()


@pytest.mark.parametrize("distinct", [1, 511, 512, 513, 4_096, 4_097, 50_000])
def test_memory_stays_within_64_bytes_a_key(distinct: int) -> None:
    counts = ExactCounts(window=2 * distinct)
    for _ in range(3):
        counts.add(np.arange(distinct).repeat(2))
    assert counts.table.entries.nbytes <= max(64 * distinct, 16 << 10)


def test_a_full_window_can_be_read_until_the_next_tuple() -> None:
    counts = ExactCounts(window=3)
    counts.add(np.array([4, 4, 5]))
    assert counts.estimate(np.array([4])).tolist() == [2]
    counts.add(np.array([], np.int64))
    assert counts.total == 3
    counts.add(np.array([5]))
    assert (counts.total, counts.estimate(np.array([4, 5])).tolist()) == (1, [0, 1])


def test_reset_starts_a_whole_new_window() -> None:
    counts = ExactCounts(window=4)
    counts.add(np.array([1, 1, 1]))
    counts.reset()
    assert counts.total == 0
    assert counts.heavy(0.0)[0].tolist() == []
    counts.add(np.array([1, 2, 1, 2]))
    assert counts.estimate(np.array([1, 2])).tolist() == [2, 2]


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_has_tuples(window: int) -> None:
    with pytest.raises(SkewlessError, match=f"window is {window} tuples; give at least 1"):
        ExactCounts(window)
