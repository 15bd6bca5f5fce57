"""Renders the details of a paper's figures: of each its setup, its checks, why some do not hold, and its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from experiments import costs
from experiments.figure import Check, Scale, command
from experiments.results import Record
from experiments.text import table_of, written

NAMES: dict[Scale, str] = {"small": "Small scale", "full": "Full scale"}
_HOLDS = {True: "yes", False: "**no**"}


def render(paper: str, figures: Sequence[Sequence[Record]], note: str = "") -> list[str]:
    """The lines of a paper's page, below a note; of each figure there are records of one scale or both."""
    lines = [
        f"# {paper}",
        "",
        "How to read this page, and the other papers, is in [Figures of the papers](../figures.md).",
    ]
    if note:
        lines += ["", note]
    for runs in figures:
        lines += ["", *_section(runs)]
    return lines


def _section(runs: Sequence[Record]) -> Iterator[str]:
    said = runs[0]
    yield f"## {said.id}"
    yield ""
    yield f"{said.title}. The paper: {said.claim}"
    for run in runs:
        yield ""
        yield from _scale(run)


def _scale(run: Record) -> Iterator[str]:
    yield f"**{NAMES[run.scale]}: {run.verdict}.** {run.found}"
    yield ""
    yield f"Made by `{command(run.id, run.scale)}` in {run.seconds:,.0f} s of one core."
    if outdated(run):
        yield "What work costs was measured anew since then, so that this run cannot be compared with newer ones."
    yield ""
    yield from table_of(("", "the paper", "here"), [tuple(line) for line in run.setup])
    yield ""
    yield f"![{run.title}]({PurePosixPath(run.picture).name})"
    yield ""
    checks = [
        (check.name + ("" if check.essential else " (a detail)"), told(check), check.bound, _HOLDS[check.holds])
        for check in run.checks
    ]
    yield from table_of(("check", "measured", "bound", "holds"), checks)
    if run.why:
        yield ""
        yield "Where it does not:"
        yield ""
        yield from (f"- {line}" for line in run.why.splitlines())
    for table in run.tables:
        yield ""
        yield f"{table.title}:"
        yield ""
        yield from table_of(table.columns, table.rows)


def told(check: Check) -> str:
    """The value of a check, with as many digits as it takes to see whether it keeps the bound.

    >>> told(Check("late", 0.7512, high=0.75)), told(Check("late", 0.8912, high=0.75))
    ('0.751', '0.89')
    """
    text, digits = written(check.value), 3
    while replace(check, value=float(text.replace(",", ""))).holds != check.holds and digits < 16:
        text, digits = f"{check.value:,.{digits}f}", digits + 1
    return text


def outdated(record: Record) -> bool:
    """Whether a figure was made with other costs than those that are measured today."""
    return any(costs.outdated(line.ours) for line in record.setup)


def anchor(heading: str) -> str:
    """The anchor of a heading.

    >>> anchor("prompt-2.6")
    'prompt-26'
    """
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
