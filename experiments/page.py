"""Renders the results of figures as a page: a row for each figure, then a section for each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from experiments import costs
from experiments.figure import SCALES, Cell, Check, Measured, Scale, Table, command
from experiments.results import Record

NAMES: dict[Scale, str] = {"small": "Small scale", "full": "Full scale"}

PAPERS = {
    "autoflow": "AutoFlow (Lu et al.)",
    "dalton": "Dalton (Zapridou, Mytilinis, Ailamaki, PVLDB 2022)",
    "gedik": "Partitioning functions (Gedik, VLDB Journal 2014)",
    "partly": "PartLy (Abdelhamid, Aref)",
    "prompt": "Prompt (Abdelhamid et al., SIGMOD 2020) and Prompt+",
    "sliding": "Sliding windows (Balkesen, Tatbul, DMSN 2011)",
}

INTRODUCTION = """\
# Figures of the papers

Each figure tests a claim of a paper by checks that are computed from what was measured. The verdict is the outcome of
these checks and nothing else: a figure *agrees* if all of them hold, it *does not* if none of the essential ones does,
and it agrees *partly* otherwise. The same as data, with every value and bound, is in
[figures.json](results/figures.json); this page is rendered from it.

`make figures` makes all figures at a small scale, `make figures FIG=gedik-3` one of them, `make figures FIG=gedik` all
of a paper, and `make figures-full` makes them at full scale: the paper's sizes, or as near to these as one core comes,
as the setup of each says. Times are those of one core, and differ from machine to machine; where several figures are
drawn from one run, the first of them has its time.
"""


def render(records: Sequence[Record]) -> str:
    """The page of these records, which are sorted by figure and scale."""
    figures = [list(same) for _, same in groupby(records, key=lambda record: record.id)]
    lines = [*INTRODUCTION.splitlines(), "", *_overview(figures), *_parting(figures)]
    for _, same in groupby(figures, key=lambda runs: _paper(runs[0])):
        of_paper = list(same)
        lines += ["", f"## {_paper(of_paper[0][0])}"]
        for runs in of_paper:
            lines += ["", *_section(runs)]
    return "\n".join(lines) + "\n"


def _overview(figures: Sequence[Sequence[Record]]) -> Iterator[str]:
    yield "| figure | what the paper says | what we got | small | full |"
    yield "|---|---|---|---|---|"
    for runs in figures:
        by_scale = {run.scale: run for run in runs}
        verdicts = [by_scale[scale].verdict if scale in by_scale else "not run" for scale in SCALES]
        said = runs[0]
        cells = (f"[{said.id}](#{anchor(said.id)})", said.claim, said.found, *verdicts)
        yield _row(*(_escaped(cell) for cell in cells))


def _parting(figures: Sequence[Sequence[Record]]) -> Iterator[str]:
    """Where the small and the full scale come to another verdict."""
    both = [runs for runs in figures if len(runs) == len(SCALES)]
    apart = [runs for runs in both if len({run.verdict for run in runs}) > 1]
    if not both:
        return
    yield ""
    if not apart:
        yield "Figures that were made at both scales have the same verdict at both."
        return
    yield "The verdicts of the two scales part here:"
    yield ""
    for runs in apart:
        told = ", ".join(f"{run.verdict} at the {run.scale} scale" for run in runs)
        missed = sorted({check.name for run in runs for check in run.checks if not check.holds})
        old = ", ".join(f"the {run.scale} scale was made with older costs" for run in runs if outdated(run))
        because = "; ".join([*missed, *filter(None, [old])])
        yield f"- [{runs[0].id}](#{anchor(runs[0].id)}): {told}, because of: {because}."


def _section(runs: Sequence[Record]) -> Iterator[str]:
    said = runs[0]
    yield f"### {said.id}"
    yield ""
    yield f"{said.title}. The paper: {said.claim}"
    for run in runs:
        yield ""
        yield f"**{NAMES[run.scale]}: {run.verdict}.** {run.found}"
        yield ""
        yield f"Made by `{command(run.id, run.scale)}` in {run.seconds:,.0f} s of one core."
        if outdated(run):
            yield "What work costs was measured anew since then, so that this run cannot be compared with newer ones."
        yield ""
        yield from _rows(("", "the paper", "here"), [tuple(line) for line in run.setup])
        yield ""
        yield f"![{run.title}]({run.picture})"
        yield ""
        marks = {True: "yes", False: "**no**"}
        checks = [
            (check.name + ("" if check.essential else " (a detail)"), told(check), check.bound, marks[check.holds])
            for check in run.checks
        ]
        yield from _rows(("check", "measured", "bound", "holds"), checks)
        if run.why:
            yield ""
            yield "Where it does not:"
            yield ""
            yield from (f"- {line}" for line in run.why.splitlines())
        for table in run.tables:
            yield ""
            yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield f"{table.title}:"
    yield ""
    yield from _rows(table.columns, table.rows)


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    yield _row(*columns)
    yield "|---" * len(columns) + "|"
    for row in rows:
        yield _row(*(_escaped(written(cell)) for cell in row))


def written(cell: Cell) -> str:
    """A cell as text.

    >>> written(12345), written(0.01234), written(3.14159), written(Measured(1.2345, 0.0123))
    ('12,345', '0.012', '3.14', '1.23 ± 0.01')
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Measured):
        mean = written(cell.mean)
        return f"{mean} ± {cell.error:.{len(mean.partition('.')[2])}f}"
    if isinstance(cell, int) or cell != cell or abs(cell) == float("inf"):
        return f"{cell:,}"
    size = abs(cell)
    if size >= 100:
        return f"{cell:,.0f}"
    if size >= 10:
        return f"{cell:.1f}"
    return f"{cell:.2f}" if size >= 0.1 or round(cell, 2) == cell else f"{cell:.2g}"


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


def _paper(record: Record) -> str:
    name = record.id.split("-")[0]
    return PAPERS.get(name, name)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
