from __future__ import annotations

from collections import deque

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.split.held import (
    HEAD,
    HOLDER,
    LOAD,
    PLACE,
    TOTAL,
    WindowState,
    new_window,
    window_clear,
    window_fragment,
    window_release,
    window_slide,
    with_rows,
)

ROWS = 3
SEND = st.tuples(st.just("send"), st.integers(0, ROWS - 1), st.integers(0, 69), st.integers(1, 5))
STEPS = st.lists(
    st.one_of(
        SEND,
        SEND,
        SEND,
        st.just(("slide",)),
        st.tuples(st.just("release"), st.integers(0, ROWS - 1)),
        st.just(("grow",)),
    ),
    min_size=20,
    max_size=80,
)


def send(window: WindowState, row: int, worker: int, weight: int = 1) -> None:
    """What a kernel does with a tuple of a hot key."""
    window.loads[LOAD, worker] += weight
    window.meta[TOTAL] += weight
    window_fragment(window, window.meta[HEAD], row, worker)


def release(window: WindowState, row: int) -> None:
    window_release(window, row)


def holders(window: WindowState, row: int) -> list[int]:
    return window.held[row, HOLDER, : window.fragments[row]].tolist()


class Slides:
    """The same window as a list of what was sent in each slide."""

    def __init__(self, slides: int) -> None:
        self.loads: deque[list[tuple[int, int]]] = deque([[]], maxlen=slides)
        self.fragments: deque[set[tuple[int, int]]] = deque([set()], maxlen=slides)

    def load(self, workers: int) -> list[int]:
        out = [0] * workers
        for sent in self.loads:
            for worker, weight in sent:
                out[worker] += weight
        return out

    def holders(self, row: int) -> set[int]:
        return {worker for sent in self.fragments for r, worker in sent if r == row}


@given(STEPS, st.integers(1, 4), st.sampled_from([1, 5, 64, 70]))
@settings(max_examples=100)
def test_loads_and_holders_are_those_of_a_recount(steps: list[tuple], slides: int, workers: int) -> None:
    window, plain = new_window(workers, slides, ROWS), Slides(slides)
    for step, *details in steps:
        if step == "send":
            row, worker, weight = details[0], details[1] % workers, details[2]
            send(window, row, worker, weight)
            plain.loads[-1].append((worker, weight))
            plain.fragments[-1].add((row, worker))
        elif step == "slide":
            window_slide(window)
            plain.loads.append([])
            plain.fragments.append(set())
        elif step == "release":
            release(window, details[0])
            for sent in plain.fragments:
                sent.difference_update([pair for pair in sent if pair[0] == details[0]])
        else:
            window = with_rows(window, len(window.fragments) + 2)
        assert window.loads[LOAD].tolist() == plain.load(workers)
        assert window.meta[TOTAL] == sum(plain.load(workers))
        for row in range(ROWS):
            held = holders(window, row)
            assert len(held) == len(set(held))
            assert set(held) == plain.holders(row)
            assert [window.held[row, PLACE, worker] for worker in held] == list(range(len(held)))
        assert not window.fragments[ROWS:].any()


def test_a_fragment_seen_in_three_slides_leaves_with_the_third() -> None:
    window = new_window(4, 5, 1)
    for _ in range(3):
        send(window, 0, 2)
        send(window, 0, 2)
        window_slide(window)
    still_there = []
    for _ in range(5):
        still_there.append(int(window.fragments[0]))
        window_slide(window)
    # Sent in slides 0, 1 and 2: slide 2 is in the window of five up to slide 6, and slide 3 is the current one.
    assert still_there == [1, 1, 1, 1, 0]


def test_a_fragment_in_the_highest_bit_of_a_word_expires_too() -> None:
    window = new_window(128, 2, 1)
    for worker in (63, 64, 127):
        send(window, 0, worker)
    window_slide(window)
    assert sorted(holders(window, 0)) == [63, 64, 127]
    window_slide(window)
    assert holders(window, 0) == []


def test_a_window_of_one_slide_forgets_at_every_slide() -> None:
    window = new_window(3, 1, 1)
    send(window, 0, 1, weight=7)
    assert window.loads[LOAD].tolist() == [0, 7, 0]
    window_slide(window)
    assert window.loads[LOAD].tolist() == [0, 0, 0]
    assert (window.meta[TOTAL], window.fragments[0]) == (0, 0)


def test_a_released_row_starts_anew_for_the_next_key() -> None:
    window = new_window(4, 3, 2)
    for worker in (0, 3):
        send(window, 0, worker)
        send(window, 1, worker)
    window_slide(window)
    release(window, 0)
    assert holders(window, 0) == []
    assert sorted(holders(window, 1)) == [0, 3]
    send(window, 0, 2)
    for _ in range(2):
        window_slide(window)
        assert holders(window, 0) == [2]  # what the row's last key had set expires without touching it
    window_slide(window)
    assert holders(window, 0) == []


def test_loads_stay_when_a_row_is_released() -> None:
    window = new_window(4, 3, 1)
    send(window, 0, 1, weight=5)
    release(window, 0)
    assert window.loads[LOAD].tolist() == [0, 5, 0, 0]


@given(STEPS, st.integers(1, 4))
@settings(max_examples=40)
def test_a_cleared_window_has_only_the_loads_it_was_given(steps: list[tuple], slides: int) -> None:
    window = new_window(5, slides, ROWS)
    for step, *details in steps:
        if step == "send":
            send(window, details[0], details[1] % 5, details[2])
        elif step == "slide":
            window_slide(window)
    window_clear(window, np.array([3, 0, 1, 0, 0]))
    assert window.loads[LOAD].tolist() == [3, 0, 1, 0, 0]
    assert window.meta[TOTAL] == 4
    assert not window.fragments.any()
    assert not window.bits.any()
    for worker in (4, 0):
        send(window, 0, worker)
    assert sorted(holders(window, 0)) == [0, 4]
    assert window.loads[LOAD].tolist() == [4, 0, 1, 0, 1]
