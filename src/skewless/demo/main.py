"""The demo from the start of Spark to the last line."""

from __future__ import annotations

from skewless.demo.clicks import Clicks
from skewless.demo.compare import compare
from skewless.demo.lines import NEXT, table, verdict
from skewless.demo.query import SIZE, SLIDE, WORKERS
from skewless.demo.quiet import local_session, scratch
from skewless.demo.screen import Screen
from skewless.simulate.warm import warm_up


def demo() -> bool:
    """Show both runs and their comparison; true if the results are the same."""
    screen, clicks = Screen.of_stdout(), Clicks()
    screen.say(
        f"{clicks.batches * clicks.rows:,} clicks on {clicks.pages:,} pages (Zipf {clicks.skew}), the hot pages "
        f"replaced half-way. Clicks and takings of each page, windows of {SIZE} sliding by {SLIDE}, in "
        f"{clicks.batches} micro-batches; skewless routes to {WORKERS} workers. Starting Spark..."
    )
    with scratch() as folder:
        warm_up("dalton", WORKERS)  # compiles what is not yet on disk, before the clock starts
        with local_session(folder) as spark:
            comparison = compare(spark, clicks, folder, screen.shown)
    screen.say(table(comparison))
    screen.say(verdict(comparison))
    screen.say(NEXT)
    return comparison.identical
