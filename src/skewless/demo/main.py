"""The demo from the start of Spark to the last line."""

from __future__ import annotations

from skewless.demo.clicks import Clicks
from skewless.demo.compare import compare
from skewless.demo.lines import NEXT, table, verdict
from skewless.demo.query import SIZE, SLIDE, WORKERS
from skewless.demo.quiet import local_session, scratch
from skewless.demo.screen import Screen


def demo() -> bool:
    """Show both runs and their comparison; true if the results are the same."""
    screen, clicks = Screen.of_stdout(), Clicks()
    screen.say(introduction(clicks))
    with scratch() as folder, local_session(folder) as spark:
        comparison = compare(spark, clicks, folder, screen.shown)
    screen.say(table(comparison))
    screen.say(verdict(comparison))
    screen.say(NEXT)
    return comparison.identical


def introduction(clicks: Clicks) -> str:
    """What is about to be shown."""
    return (
        f"{clicks.batches * clicks.rows:,} clicks on {clicks.pages:,} pages (Zipf {clicks.skew}), {clicks.rows:,} in a "
        f"micro-batch. Half-way other pages become hot.\n"
        f"The query: clicks and takings of each page, in windows of {SIZE} sliding by {SLIDE}.\n"
        f"skewless spreads the clicks over {WORKERS} workers. What it learns of the hottest pages, on how many workers "
        f"each should be, is in force one or two micro-batches later.\n"
        f"Starting Spark..."
    )
