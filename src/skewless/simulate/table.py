"""A comparison as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from skewless.simulate.compare import COSTS, REFERENCES, Comparison


def comparison_table(comparison: Comparison) -> Table:
    """One row for each splitter, the chosen one marked; no wider than 80 columns."""
    table = Table(
        title=f"{comparison.stream.tuples:,} tuples to {comparison.workers} workers, "
        f"windows of {comparison.window:,} tuples",
        caption="A hot key has a worker's fair load or more. I and Gamma are Dalton's.\n"
        "prompt sees a window before it routes it, so it is not chosen.",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
    )
    table.add_column("split", no_wrap=True)
    fragments = [f"workers\n{key}" for key in ("a key", "hot key", "top key")]
    for heading in ("mean\nwindow", "worst\nwindow", "I", *fragments, "Gamma", "M per\nsecond"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, result in comparison.replays.items():
        chosen = name == comparison.verdict.split
        table.add_row(
            f"{name} *" if chosen else name,
            f"{result.mean_window:.2f}",
            f"{result.worst_window:.2f}",
            f"{result.mean_imbalance:,.0f}",
            f"{result.mean_fragments:.2f}",
            "-" if isnan(result.mean_hot_fragments) else f"{result.mean_hot_fragments:.1f}",
            f"{result.most_top_fragments}",
            f"{result.mean_gamma:,.0f}",
            f"{result.tuples_per_second / 1e6:.1f}",
            style="bold" if chosen else None,
        )
    return table


def costs_table(comparison: Comparison) -> Group:
    """Prompt's costs of each splitter, a worker's rows of a window being a block; no wider than 80 columns."""
    costs = _plain("The same windows by Prompt's costs", ("BSI", "BCI", "KSR", "MPI", "makespan\nms"))
    relative = [f"{cost} of\n{to}" for to in REFERENCES for cost in ("BSI", "BCI", "MPI")]
    beside = _plain("Relative to hash and to shuffle", relative)
    for name, result in comparison.replays.items():
        found = result.prompt_costs
        costs.add_row(
            name,
            f"{found.bsi:,.0f}",
            f"{found.bci:,.1f}",
            f"{found.ksr:.2f}",
            f"{found.mpi:,.0f}",
            f"{1000 * result.mean_makespan(COSTS):,.1f}",
        )
        ratios = [comparison.relative(name, to) for to in REFERENCES]
        beside.add_row(name, *(_share(cost) for each in ratios for cost in (each.bsi, each.bci, each.mpi)))
    # A table's own caption would be broken at the width of the table.
    caption = Text(
        "Imbalance in tuples (BSI) and in keys (BCI), fragments a key (KSR), their mean\n"
        "(MPI). Makespan: the longest map task, then the longest reduce task, at 1 us\n"
        "a tuple and partial result.",
        style="table.caption",
    )
    return Group(costs, beside, caption)


def _plain(title: str, headings: Sequence[str]) -> Table:
    """A table of numbers for each splitter, without rows."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("split", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _share(ratio: float) -> str:
    """A ratio in few characters; a dash if it is to nothing."""
    return f"{ratio:.{2 if ratio >= 0.1 else 4}f}" if isfinite(ratio) else "-"


def verdict_sentence(comparison: Comparison) -> str:
    """Which splitter to choose and why."""
    return f"Choose {comparison.verdict.split}: {comparison.verdict.why}."
