from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.chop import Merger, Result, disorder
from skewless.core.errors import SkewlessError

Batches = list[tuple[list[int], int]]


@st.composite
def streams(draw: st.DrawFn, parts: int) -> Batches:
    """Micro-batches of numbers, each with the watermark after it: some numbers have fewer results, or none."""
    count = draw(st.integers(0, 25))
    numbers = [n for n in range(count) for _ in range(draw(st.integers(max(0, parts - 2), parts)))]
    # Workers run ahead of each other, but not by everything.
    delays = draw(st.lists(st.integers(0, 12), min_size=len(numbers), max_size=len(numbers)))
    arrival = [number for _, number in sorted((n + delay, n) for n, delay in zip(numbers, delays, strict=True))]
    batches, at = [], 0
    while at < len(arrival):
        size = draw(st.integers(0, 6))
        rest = arrival[at + size :]
        behind = draw(st.integers(0, 4))  # the watermark may lag
        batches.append((arrival[at : at + size], max(0, min(rest, default=count) - behind)))
        at += size
    return batches


def deliver(merger: Merger, batches: Batches) -> list[int]:
    out: list[int] = []
    for now, (numbers, low) in enumerate(batches):
        out += [result.number for result in merger.add(map(Result, numbers), low, now)]
    return out + [result.number for result in merger.finish(len(batches))]


def is_k_ordered(numbers: list[int], k: int) -> bool:
    """The definition, word by word."""
    return all(later >= number for i, number in enumerate(numbers) for later in numbers[i + k + 1 :])


@given(st.integers(1, 3).flatmap(lambda parts: st.tuples(st.just(parts), streams(parts))), st.integers(0, 12))
@settings(max_examples=200)
def test_at_most_k_are_out_of_place_and_none_is_lost(stream: tuple[int, Batches], k: int) -> None:
    parts, batches = stream
    merger = Merger(k, parts, low=0)
    out = deliver(merger, batches)
    assert is_k_ordered(out, k)
    assert sorted(out) == sorted(number for numbers, _ in batches for number in numbers)
    assert merger.held == 0


@given(streams(2))
def test_strict_order_is_sorted_order(batches: Batches) -> None:
    for merger in (Merger(parts=2, low=0), Merger(parts=2), Merger(parts=None), Merger(parts=None, low=0)):
        out = deliver(merger, batches)
        assert out == sorted(out)


@given(streams(2), st.integers(0, 5))
def test_whatever_the_watermark_has_passed_is_out(batches: Batches, k: int) -> None:
    merger = Merger(k, parts=2, low=0)
    come: list[int] = []
    out: list[int] = []
    for numbers, low in batches:
        come += numbers
        out += [result.number for result in merger.add(map(Result, numbers), low)]
        assert [n for n in sorted(come) if n <= low] == [n for n in sorted(out) if n <= low]


@given(st.permutations(range(12)))
def test_with_k_as_large_as_the_stream_nothing_waits(numbers: list[int]) -> None:
    merger = Merger(k=11, low=0)
    assert [result.number for number in numbers for result in merger.add([Result(number)])] == numbers
    assert merger.waits.most_held == 0


@given(st.permutations(range(9)), st.integers(0, 8))
def test_a_result_is_held_only_if_the_bound_could_break(numbers: list[int], k: int) -> None:
    merger = Merger(k, low=0)
    out: list[int] = []
    for i, number in enumerate(numbers):
        out += [result.number for result in merger.add([Result(number)])]
        held = sorted(set(numbers[: i + 1]) - set(out))
        if held:
            # Had the lowest of them been delivered too, even the best sequel would be out of place by more than k.
            best = [*out, held[0], *sorted(set(range(9)) - set(out) - {held[0]})]
            assert not is_k_ordered(best, k)


@given(streams(1), st.integers(0, 5), st.integers(0, 8))
def test_it_goes_on_from_its_state(batches: Batches, k: int, cut: int) -> None:
    whole, first = Merger(k, low=0), Merger(k, low=0)
    expected = deliver(whole, batches)
    out: list[int] = []
    for now, (numbers, low) in enumerate(batches[:cut]):
        out += [result.number for result in first.add(map(Result, numbers), low, now)]
    second = Merger.from_state(json.loads(json.dumps(first.state())))
    for now, (numbers, low) in enumerate(batches[cut:], start=min(cut, len(batches))):
        out += [result.number for result in second.add(map(Result, numbers), low, now)]
    out += [result.number for result in second.finish(len(batches))]
    assert out == expected
    assert second.waits == whole.waits
    assert second.state() == whole.state()


@given(st.permutations(range(40)), st.integers(0, 6))
def test_its_state_is_small(numbers: list[int], k: int) -> None:
    merger = Merger(k, parts=1, low=0)
    for number in numbers:
        merger.add([Result(number)])
        assert len(merger.state()["ahead"]) <= k


def test_waits_are_counted_in_batches_seconds_and_rows() -> None:
    merger = Merger(low=0)
    assert merger.add([Result(2, rows=5), Result(1, rows=3)], now=10.0) == []
    assert (merger.held, merger.held_rows) == (2, 8)
    assert merger.add([], now=11.0) == []
    assert [result.number for result in merger.add([Result(0)], now=14.0)] == [0, 1, 2]
    waits = merger.waits
    assert (waits.delivered, waits.batches, waits.most_batches) == (3, 4, 2)
    assert (waits.seconds, waits.most_seconds) == (8.0, 4.0)
    assert (waits.most_held, waits.most_held_rows) == (2, 8)
    assert (waits.mean_batches, waits.mean_seconds) == pytest.approx((4 / 3, 8 / 3))


def test_equal_numbers_come_out_as_they_came_in() -> None:
    merger = Merger(parts=3, low=0)
    merger.add([Result(1, payload="a"), Result(1, payload="b")])
    out = merger.add([Result(0, payload=x) for x in "xyz"])
    assert [result.payload for result in out] == ["x", "y", "z", "a", "b"]


def test_a_full_merger_refuses_and_stays_as_it_was() -> None:
    merger = Merger(low=0, most=2)
    merger.add([Result(5), Result(3)])
    before = merger.state()
    with pytest.raises(SkewlessError, match="3 results would wait for others, more than 2"):
        merger.add([Result(4)])
    assert merger.state() == before
    assert [result.number for result in merger.add([Result(4)], low=3)] == [3, 4, 5]


def test_before_the_first_watermark_nothing_is_known_to_be_first() -> None:
    merger = Merger(k=3)
    assert merger.add([Result(28_000_001)]) == []
    assert [r.number for r in merger.add([Result(28_000_000)], low=28_000_000)] == [28_000_000, 28_000_001]


def test_what_breaks_the_contract_is_refused() -> None:
    merger = Merger(low=0)
    merger.add([], low=7)
    with pytest.raises(SkewlessError, match="number 6 came after all below 7 were complete"):
        merger.add([Result(6)])
    with pytest.raises(SkewlessError, match="number 9 has 2 results, more than 1"):
        merger.add([Result(9), Result(9)])
    with pytest.raises(SkewlessError, match="k is -1"):
        Merger(k=-1)
    with pytest.raises(SkewlessError, match="give parts, or k=0"):
        Merger(k=1, parts=None)
    with pytest.raises(SkewlessError, match="at least 1 result, not 0"):
        Merger(parts=0)
    with pytest.raises(SkewlessError, match="at most -1 results"):
        Merger(most=-1)


@given(st.lists(st.integers(0, 9), max_size=15))
def test_disorder_is_the_longest_way_between_two_out_of_order(numbers: list[int]) -> None:
    expected = max((j - i for i, j in combinations(range(len(numbers)), 2) if numbers[i] > numbers[j]), default=0)
    assert disorder(np.array(numbers, np.int64)) == expected
    assert is_k_ordered(numbers, expected)
    assert expected == 0 or not is_k_ordered(numbers, expected - 1)
