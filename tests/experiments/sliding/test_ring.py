from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.sliding.partition import ByPane
from experiments.sliding.ring import Ring

SHAPES = st.tuples(st.integers(1, 30), st.integers(1, 30)).map(lambda pair: (max(pair), min(pair)))
WINDOWS = range(-20, 40)


@given(SHAPES, st.integers(1, 6), st.integers(0, 3))
@settings(max_examples=60)
def test_the_ring_brings_every_owner_the_panes_of_its_windows(
    shape: tuple[int, int], workers: int, longer: int
) -> None:
    ring = Ring(*shape, workers)
    ring = Ring(*shape, workers, ring.run + longer)
    panes = range(ring.panes_of(WINDOWS.start).start - 50, ring.panes_of(WINDOWS.stop).stop + 50)
    has: dict[int, set[int]] = defaultdict(set)
    for pane, owner in zip(panes, ring.owner_of_pane(np.array(panes)).tolist(), strict=True):
        has[owner].add(pane)
    own = {worker: set(has[worker]) for worker in range(workers)}
    for worker in range(workers):
        passed = ring.passed_on(worker, panes).tolist()
        assert set(passed) <= own[worker]
        assert ring.received(ring.successor(worker), panes).tolist() == passed
        has[ring.successor(worker)].update(passed)
    needed: dict[int, set[int]] = defaultdict(set)
    for window, owner in zip(WINDOWS, ring.owner_of_window(np.array(WINDOWS)).tolist(), strict=True):
        assert set(ring.panes_of(window)) <= has[owner]
        needed[owner].update(ring.panes_of(window))
    # And nothing is sent in vain: away from the ends, what a worker was sent its windows need.
    inner = range(ring.panes_of(WINDOWS.start + 2 * ring.run).start, ring.panes_of(WINDOWS.stop - 2 * ring.run).start)
    for worker in range(workers):
        assert {pane for pane in has[worker] - own[worker] if pane in inner} <= needed[worker]


@given(SHAPES, st.integers(1, 6), st.integers(-5, 5))
def test_a_window_has_the_panes_that_the_paper_says(shape: tuple[int, int], workers: int, window: int) -> None:
    ring = Ring(*shape, workers)
    first = window * ring.slide_panes
    assert ring.panes_of(window) == range(first, first + ring.window_panes) == ByPane(*shape).panes_of(window)


@given(SHAPES, st.integers(1, 6))
def test_windows_are_shared_out_evenly(shape: tuple[int, int], workers: int) -> None:
    ring = Ring(*shape, workers)
    turn = ring.run * workers
    assert len(set(np.bincount(ring.owner_of_window(np.arange(7, 7 + turn)), minlength=workers).tolist())) == 1


@given(SHAPES, st.integers(1, 6), st.integers(-10, 10), st.integers(0, 30))
@settings(max_examples=50)
def test_messages_are_counted(shape: tuple[int, int], workers: int, start: int, count: int) -> None:
    ring = Ring(*shape, workers)
    windows = range(start, start + count)
    needed = sorted({pane for window in windows for pane in ring.panes_of(window)})
    assert ring.messages(windows) == sum(
        len(ring.passed_on(w, range(p, p + 1))) for p in needed for w in range(workers)
    )
    everyone = {(pane, window % workers) for window in windows for pane in ring.panes_of(window)}
    assert ring.messages_without_ring(windows) == sum(pane % workers != owner for pane, owner in everyone)


@given(SHAPES, st.integers(-50, 50))
def test_a_result_is_needed_until_the_last_window_that_holds_its_pane(shape: tuple[int, int], pane: int) -> None:
    ring = Ring(*shape, 3)
    assert ring.needed_until(pane) == ByPane(*shape).windows_of(pane)[-1]


def test_tumbling_windows_need_no_messages() -> None:
    ring = Ring(60, 60, 4)
    assert ring.run == 1
    assert ring.messages(range(100)) == 0
