from __future__ import annotations

import pytest
from rich.console import Console, RenderableType

from skewless.demo.clicks import Clicks
from skewless.demo.lines import bars, heights, line, panel, table, verdict
from skewless.demo.measured import Batch, Comparison, HotPage, Run

HOT = (HotPage("/news/0", 8), HotPage("/shoes/1", 3))
OWN = Run("spark", (Batch(0, 1000, 9.0), Batch(1, 1000, 0.5)), results=12_345)
ROUTED = Run("dalton", (Batch(0, 1000, 9.0, (750, 250), HOT), Batch(1, 1000, 0.25, (510, 490), HOT)), results=12_345)


def text_of(what: RenderableType, *, colours: bool = False, width: int = 100) -> str:
    console = Console(width=width, color_system="standard" if colours else None, force_terminal=colours)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        ([10, 10, 10], "███"),
        ([800, 400, 100, 0], "█▄▁ "),
        ([1_000_000, 1], "█▁"),  # a worker with any rows shows
        ([0, 0], "  "),
        ([], ""),
    ],
)
def test_heights_are_in_proportion_to_the_busiest(loads: list[int], expected: str) -> None:
    assert heights(loads) == expected


def test_bars_are_in_proportion_to_the_busiest() -> None:
    drawn = bars([2000, 1000, 0], width=10)
    assert [bar.count("▇") for bar in drawn] == [10, 5, 0]
    assert [bar.split()[-1] for bar in drawn] == ["2,000", "1,000", "0"]
    assert [bar.count("▇") for bar in bars([0, 0])] == [0, 0]


def test_a_line_of_a_batch_that_is_routed() -> None:
    batch = Batch(4, 61_234, 0.5, (30, 10), HOT)
    assert line(batch) == "batch 4 | 122,468 rows/s | █▃ busiest 1.50 x average | learns: /news/0 on 8, /shoes/1 on 3"


def test_a_line_of_a_batch_that_is_not() -> None:
    assert line(Batch(0, 500, 0.5)) == "batch 0 |   1,000 rows/s"


def test_the_moment_when_other_pages_become_hot_is_told() -> None:
    assert line(Batch(0, 500, 0.5, changed=True)).endswith("| new hot pages")
    assert " | new hot pages | learns: " in line(Batch(0, 500, 0.5, (1, 1), HOT, changed=True))
    assert "new hot pages" not in line(Batch(0, 500, 0.5))


def test_a_panel_has_all_batches_and_the_workers_of_the_last() -> None:
    shown = text_of(panel(ROUTED))
    assert "skewless (dalton)" in shown
    assert "batch 0" in shown
    assert "batch 1" in shown
    assert "490" in shown
    assert "250" not in shown
    assert shown.count("/news/0 on 8 workers") == 1


def test_a_panel_fits_80_columns_and_24_lines() -> None:
    loads = tuple(range(10_000, 18_000, 1000))
    many = tuple(Batch(i, 60_000, 0.1, loads, HOT, changed=True) for i in range(6))
    lines = text_of(panel(Run("dalton", many)), width=80).splitlines()
    assert len(lines) <= 24
    assert not any("…" in line for line in lines)


def test_a_panel_without_batches_says_what_it_waits_for() -> None:
    assert "the first micro-batch..." in text_of(panel(Run("spark")))
    assert "the first micro-batch..." not in text_of(panel(OWN))


def test_a_panel_leaves_out_batches_without_rows() -> None:
    closing = Run("dalton", (*ROUTED.batches, Batch(2, 0, 1.0)))
    assert text_of(panel(closing)) == text_of(panel(ROUTED))


def test_a_panel_of_sparks_own_has_no_workers() -> None:
    assert "worker" not in text_of(panel(OWN))
    assert "batch 1" in text_of(panel(OWN))


def test_the_table_has_both_runs() -> None:
    shown = text_of(table(Comparison(OWN, ROUTED, identical=True)))
    own, routed = (row.split() for row in shown.splitlines() if "12,345" in row)
    assert own == ["Spark's", "own", "windows", "2,000", "1.00", "-", "-", "12,345"]
    assert routed == ["skewless", "(dalton)", "4,000", "2.00", "1.50", "1.02", "12,345"]
    assert "all micro-batches but the first" in shown
    words = " ".join(shown.split())
    assert f"a small one, {Clicks().rows:,} rows a micro-batch" in words
    assert "the table in README.md is of 500,000 rows a micro-batch" in words  # so that nobody takes one for the other


def test_the_verdict_is_in_words_and_in_colours() -> None:
    yes, no = (verdict(Comparison(OWN, ROUTED, identical=identical)) for identical in (True, False))
    assert (text_of(yes), text_of(no)) == ("identical results: yes\n", "identical results: no\n")
    assert "\x1b[1;31mno" in text_of(no, colours=True)
