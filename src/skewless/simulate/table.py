"""A comparison as a table for people."""

from __future__ import annotations

from math import isfinite, isnan

from rich import box
from rich.table import Table

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


def costs_table(comparison: Comparison) -> Table:
    """Prompt's costs of each splitter, a worker's rows of a window being a block; no wider than 80 columns."""
    table = Table(
        title="The same windows by Prompt's costs",
        caption="Imbalance in tuples (BSI) and in keys (BCI), fragments a key (KSR),\n"
        "their mean (MPI). Makespan: the longest map task, then the longest\n"
        "reduce task, at 1 us a tuple and partial result.",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
    )
    table.add_column("split", no_wrap=True)
    relative = [f"{cost} of\n{to}" for cost, to in (("BSI", "hash"), ("BCI", "hash"), ("BCI", "shuffle"))]
    for heading in ("BSI", "BCI", "KSR", "MPI", *relative, "makespan\nms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, result in comparison.replays.items():
        costs, hashed, shuffled = result.prompt_costs, *(comparison.relative(name, to) for to in REFERENCES)
        table.add_row(
            name,
            f"{costs.bsi:,.0f}",
            f"{costs.bci:,.1f}",
            f"{costs.ksr:.2f}",
            f"{costs.mpi:,.0f}",
            *(_share(each) for each in (hashed.bsi, hashed.bci, shuffled.bci)),
            f"{1000 * result.mean_makespan(COSTS):,.1f}",
        )
    return table


def _share(ratio: float) -> str:
    """A ratio in few characters; a dash if it is to nothing."""
    return f"{ratio:.{2 if ratio >= 0.1 else 4}f}" if isfinite(ratio) else "-"


def verdict_sentence(comparison: Comparison) -> str:
    """Which splitter to choose and why."""
    return f"Choose {comparison.verdict.split}: {comparison.verdict.why}."
