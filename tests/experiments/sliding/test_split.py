from __future__ import annotations

import pytest

from experiments.sliding import figure_6
from experiments.sliding.model import HUNDRED, ONE, PANE, PAPER, PAPER_MERGE, PAPER_SLIDE, RATIO
from experiments.sliding.split import ROAD, SECOND, partitioners, speeds


def test_partitioners_copy_as_often_as_their_windows_overlap() -> None:
    found = partitioners(100, (2, 10))
    assert list(found) == ["window", "batch 2", "batch 10", "pane"]
    assert [each.replication for each in found.values()] == [100, 50.5, 10.9, 1]
    assert found["window"].slide == SECOND


def test_every_partitioner_has_a_speed() -> None:
    found = speeds(ROAD.take(2000), partitioners(20, (5,)), 2, lambda doing: None)
    assert set(found) == {"window", "batch 5", "pane"}
    assert all(rows > 0 for rows in found.values())


def test_the_costs_give_the_points_of_the_paper_that_they_are_from() -> None:
    size = RATIO * PAPER_SLIDE
    assert PAPER.of(updates=1, windows=1, rows=1) == pytest.approx(ONE)
    assert PAPER.of(updates=RATIO, windows=1, rows=1) == pytest.approx(HUNDRED)
    # By pane: each row updates its pane, and every slide of rows merges the hundred panes of a window.
    by_pane = PAPER.of(PAPER_SLIDE, 1, PAPER_SLIDE) + size / PAPER_SLIDE * PAPER_MERGE
    assert by_pane / PAPER_SLIDE == pytest.approx(PANE)


def test_a_first_point_that_is_faster_than_in_proportion_is_said_to_be_bad() -> None:
    assert "measured while the JVM was cold" in figure_6._cold([11.0, 1.0])
    assert figure_6._cold([9.0, 1.0]) == ""
