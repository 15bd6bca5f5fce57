from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.chop import PaneRing, Windows
from skewless.chop.assignment import BatchAssignment
from skewless.chop.ring import PaneAssignment
from skewless.core.errors import SkewlessError

SHAPES = st.tuples(st.integers(1, 30), st.integers(1, 30)).map(lambda pair: (max(pair), min(pair)))
HASHES = st.integers(-(2**63), 2**63 - 1)


@given(SHAPES, st.integers(1, 6))
def test_a_run_is_as_long_as_the_paper_says(shape: tuple[int, int], workers: int) -> None:
    w, s = shape
    ring = PaneRing(w, s, workers)
    pane = math.gcd(w, s)
    assert (ring.window_panes, ring.slide_panes) == (w // pane, s // pane)
    assert ring.run == max(1, math.ceil((ring.window_panes - ring.slide_panes) / ring.slide_panes))


@given(SHAPES, st.integers(1, 6))
def test_panes_are_shared_out_evenly(shape: tuple[int, int], workers: int) -> None:
    ring = PaneRing(*shape, workers)
    panes = np.arange(7, 7 + ring.run * workers * ring.slide_panes)
    assert len(set(np.bincount(ring.owner_of_pane(panes), minlength=workers).tolist())) == 1


@given(SHAPES, st.integers(1, 6), st.integers(0, 3), HASHES)
def test_a_result_is_needed_by_its_worker_and_the_next_at_most(
    shape: tuple[int, int], workers: int, longer: int, key: int
) -> None:
    ring = PaneRing(*shape, workers)
    ring = PaneRing(*shape, workers, ring.run + longer)
    merging = BatchAssignment.of(Windows(*shape), workers, ring.run)
    panes = np.arange(-60, 60)
    hashes = np.full(len(panes), key)
    owners = PaneAssignment(ring).worker_of(hashes, panes)
    needing, whose = merging.copies(hashes, panes * ring.pane)
    ahead = (whose - owners[needing]) % workers
    assert set(ahead.tolist()) <= {0, 1}
    assert set(needing[ahead == 0].tolist()) == set(range(len(panes)))


@given(SHAPES, st.integers(1, 6), HASHES, st.integers(-60, 60))
def test_the_next_pane_of_a_worker(shape: tuple[int, int], workers: int, key: int, pane: int) -> None:
    ring = PaneRing(*shape, workers)
    panes = PaneAssignment(ring)
    later = np.arange(pane, pane + ring.run * ring.slide_panes * workers + 1)
    owners = panes.worker_of(np.full(len(later), key), later)
    for worker in range(workers):
        found = panes.next_of(worker, np.array([key]), np.array([pane]))
        assert found.tolist() == [later[owners == worker][0]]


def test_a_run_that_is_too_short_is_refused() -> None:
    with pytest.raises(SkewlessError, match="give at least 9"):
        PaneRing(10, 1, 4, run=3)
    with pytest.raises(SkewlessError, match="workers must be at least 1, not 0"):
        PaneRing(10, 1, 0)
    with pytest.raises(SkewlessError, match="longer than size"):
        PaneRing(1, 10, 2)
