"""Runs and their comparison as text: bars, lines, a panel, a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from skewless.demo.measured import Batch, Comparison, Run

WIDTH = 40
HEIGHTS = " ▁▂▃▄▅▆▇█"
NAMES = {"spark": "Spark's own windows", "dalton": "skewless (dalton)"}

CAPTION = (
    "rows/s: of all micro-batches but the first, which warms up the JVM, over their time. Imbalance: rows of the "
    "busiest worker over the average, in the first micro-batch (pages hashed) and in the last (learned). Both keep "
    "their state in RocksDB. The case is a small one, 30,000 rows a micro-batch, of which Spark's own cost of a "
    "micro-batch is a large part; the table in README.md is of 500,000 rows a micro-batch."
)
NEXT = """dalton was asked for, to show a splitter that learns. For counts and sums split="auto" takes "local", which
moves no rows, and for heavier aggregates "bounded", which is even from the first micro-batch on.

What to try next:
  skewless compare FILE --key COLUMN   which splitter suits your data
  skewless run job.toml                windows over your own stream
  README.md                            the same from Python"""


def heights(loads: Sequence[int]) -> str:
    """The load of each worker as a block character; the busiest worker has a full block.

    >>> heights([800, 100, 0, 400])
    '█▁ ▄'
    """
    most = max(loads, default=0)
    # A worker with any rows at all is visible.
    return "".join(HEIGHTS[max(round(8 * load / most), 1 if load else 0)] if most else " " for load in loads)


def bars(loads: Sequence[int], width: int = WIDTH) -> list[str]:
    """The load of each worker as a bar; the bar of the busiest worker is `width` long.

    >>> print(*bars([1200, 300], width=8), sep="\\n")
    worker 0 ▇▇▇▇▇▇▇▇ 1,200
    worker 1 ▇▇       300
    """
    most = max(loads, default=0) or 1
    lengths = [round(width * load / most) for load in loads]
    return [f"worker {i} {'▇' * n:{width}} {load:,}" for i, (n, load) in enumerate(zip(lengths, loads, strict=True))]


def line(batch: Batch, *, pages: bool = True) -> str:
    """A micro-batch as one line of text, with its pages or without.

    >>> from skewless.demo.measured import HotPage
    >>> line(Batch(4, 1000, 0.5, (750, 250), (HotPage("/news/0", 2), HotPage("/shoes/1", 1)), changed=True))
    'batch 4 |   2,000 rows/s | █▃ busiest 1.50 x average | new hot pages | learns: /news/0 on 2, /shoes/1 on 1'
    """
    words = [f"batch {batch.number}", f"{batch.rate:>7,.0f} rows/s"]
    if batch.imbalance is not None:
        words.append(f"{heights(batch.loads)} busiest {batch.imbalance:.2f} x average")
    if batch.changed:
        words.append("new hot pages")
    if batch.hot and pages:
        words.append("learns: " + ", ".join(f"{page.name} on {page.workers}" for page in batch.hot))
    return " | ".join(words)


def panel(run: Run) -> Panel:
    """A run up to now: its micro-batches, and the workers and pages of the last one."""
    batches = [batch for batch in run.batches if batch.rows]
    parts = [_coloured(batch) for batch in batches] or [Text("the first micro-batch...", style="dim")]
    if batches and batches[-1].loads:
        last = batches[-1]
        parts += [Text(), *(Text(bar, style="cyan") for bar in bars(last.loads))]
        parts += [Text(), *(Text(f"learns: {page.name} on {page.workers} workers") for page in last.hot)]
    for part in parts:
        part.no_wrap, part.overflow = True, "ellipsis"
    return Panel(Group(*parts), title=NAMES[run.split], title_align="left")


def table(comparison: Comparison) -> Table:
    """A table of both runs side by side."""
    shown = Table(caption=CAPTION, caption_justify="left", caption_style="", box=box.SIMPLE_HEAD)
    shown.add_column("split", no_wrap=True)
    for heading in ("rows/s", "ratio", "imbalance\nbefore", "imbalance\nafter", "result rows"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for run, ratio in ((comparison.spark, 1.0), (comparison.skewless, comparison.ratio)):
        imbalances = _imbalance(run.before), _imbalance(run.after)
        shown.add_row(NAMES[run.split], f"{run.rate:,.0f}", f"{ratio:.2f}", *imbalances, f"{run.results:,}")
    return shown


def verdict(comparison: Comparison) -> Text:
    """Whether the results are the same."""
    answer = Text("yes", style="green") if comparison.identical else Text("no", style="bold red")
    return Text("identical results: ").append(answer)


def _imbalance(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _coloured(batch: Batch) -> Text:
    text = Text(line(batch, pages=False))
    text.highlight_regex("[▁▂▃▄▅▆▇█]+", "cyan")
    text.highlight_regex("new hot pages", "bold yellow")
    return text
