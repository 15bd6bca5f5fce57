"""A comparison as a table for people."""

from __future__ import annotations

from rich.table import Table

from skewless.simulate.compare import Comparison


def comparison_table(comparison: Comparison) -> Table:
    """One row for each splitter, the chosen one marked; no wider than 80 columns."""
    table = Table(
        title=f"{comparison.stream.tuples:,} tuples to {comparison.workers} workers, "
        f"windows of {comparison.window:,} tuples",
        title_justify="left",
    )
    table.add_column("split", no_wrap=True)
    for heading in ("max/avg", "worst\nwindow", "last\nwindow", "fragments\nper key", "hot\nkeys", "M tuples\nper s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, result in comparison.replays.items():
        chosen = name == comparison.verdict.split
        table.add_row(
            f"{name} *" if chosen else name,
            f"{result.max_over_avg:.2f}",
            f"{result.worst_window:.2f}",
            f"{result.last_window:.2f}",
            f"{result.mean_fragments:.2f}",
            f"{result.hot_keys:,}",
            f"{result.tuples_per_second / 1e6:.1f}",
            style="bold" if chosen else None,
        )
    return table


def verdict_sentence(comparison: Comparison) -> str:
    """Which splitter to choose and why."""
    return f"Choose {comparison.verdict.split}: {comparison.verdict.why}."
