"""Renders the results of figures as pages: one with a row and a picture for each figure, and one of details a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from experiments import details
from experiments.details import NAMES, anchor, outdated, told
from experiments.figure import SCALES
from experiments.registry import paper_of
from experiments.results import Record
from experiments.text import heads, row

PAPERS = {
    "autoflow": "AutoFlow (Lu et al.)",
    "dalton": "Dalton (Zapridou, Mytilinis, Ailamaki, PVLDB 2022)",
    "gedik": "Partitioning functions (Gedik, VLDB Journal 2014)",
    "partly": "PartLy (Abdelhamid, Aref)",
    "prompt": "Prompt (Abdelhamid et al., SIGMOD 2020) and Prompt+",
    "sliding": "Sliding windows (Balkesen, Tatbul, DMSN 2011)",
}
FIRST = "figures.md"

NOTES = {
    "dalton": "What is called dalton on this page has our defaults, which differ from the paper's parameters and "
    "balance better; [Splitting keys](../split.md#dalton) says what they change. Checks and rows of the paper's "
    "parameters say so: the paper's claims of how far Dalton is ahead are about these.",
}
"""What has to be known before the details of a paper are read."""

INTRODUCTION = """\
# Figures of the papers

Each figure tests a claim of a paper by checks that are computed from what was measured. The verdict is the outcome of
these checks and nothing else: a figure *agrees* if all of them hold, it *does not* if none of the essential ones does,
and it agrees *partly* otherwise. Behind the name of each figure are its setup, its checks with what was measured, why
a check does not hold, and its tables; behind each verdict is how many of the checks hold, details included. The same
as data, with every value and bound, is in [figures.json](results/figures.json); these pages are rendered from it.

`make figures` makes all figures at a small scale, `make figures FIG=gedik-3` one of them, `make figures FIG=gedik` all
of a paper, and `make figures-full` makes them at full scale: the paper's sizes, or as near to these as one core comes,
as the setup of each says. Times are those of one core, and differ from machine to machine; where several figures are
drawn from one run, the first of them has its time.
"""


def render(records: Sequence[Record]) -> dict[str, str]:
    """The pages of these records, which are sorted by figure and scale, by their paths from docs/."""
    figures = [list(same) for _, same in groupby(records, key=lambda record: record.id)]
    lines = [*INTRODUCTION.splitlines(), "", *_overview(figures), *_parting(figures)]
    pages = {}
    for paper, same in groupby(figures, key=lambda runs: paper_of(runs[0].id)):
        of_paper, title = list(same), PAPERS.get(paper, paper)
        pages[details_of(paper)] = details.render(title, of_paper, NOTES.get(paper, ""))
        lines += ["", f"## {title}"]
        for runs in of_paper:
            lines += ["", *_section(runs)]
    return {FIRST: _text(lines), **{path: _text(page) for path, page in pages.items()}}


def details_of(paper: str) -> str:
    """The page of a paper's details, from docs/.

    >>> details_of("dalton")
    'figures/dalton.md'
    """
    return f"figures/{paper}.md"


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _link(figure: str) -> str:
    return f"{details_of(paper_of(figure))}#{anchor(figure)}"


def _overview(figures: Sequence[Sequence[Record]]) -> Iterator[str]:
    yield from heads("figure", "what the paper says", "what we got", *SCALES)
    for runs in figures:
        by_scale = {run.scale: run for run in runs}
        verdicts = [_verdict(by_scale[scale]) if scale in by_scale else "not run" for scale in SCALES]
        said = runs[0]
        yield row(f"[{said.id}]({_link(said.id)})", said.claim, said.found, *verdicts)


def _verdict(run: Record) -> str:
    """With how many of its checks hold, details included."""
    return f"{run.verdict}, {sum(check.holds for check in run.checks)} of {len(run.checks)}"


def _parting(figures: Sequence[Sequence[Record]]) -> Iterator[str]:
    """Where the small and the full scale part, check by check."""
    both = [runs for runs in figures if len(runs) == len(SCALES)]
    parted = {runs[0].id: list(_parted(*runs)) for runs in both}
    if not both:
        return
    yield ""
    if not any(parted.values()):
        yield "Of the figures that were made at both scales, the same checks hold at both."
        return
    yield "Checks that hold at one scale and not at the other:"
    yield ""
    for figure, lines in parted.items():
        yield from (f"- [{figure}]({_link(figure)}): {line}." for line in lines)


def _parted(one: Record, other: Record) -> Iterator[str]:
    if one.verdict != other.verdict:
        yield f"{one.verdict} at the {one.scale} scale, {other.verdict} at the {other.scale} scale"
    for run in (one, other):
        if outdated(run):
            yield f"the {run.scale} scale was made with older costs"
    found = {check.name: check for check in other.checks}
    for check in one.checks:
        twin = found.get(check.name)
        if twin is not None and twin.holds != check.holds:
            values = ", ".join(
                f"{told(each)} at the {run.scale} scale ({'holds' if each.holds else 'does not'})"
                for each, run in ((check, one), (twin, other))
            )
            yield f"{check.name}, {check.bound}: {values}"


def _section(runs: Sequence[Record]) -> Iterator[str]:
    """A figure's picture, of the largest scale, and how many of its checks hold."""
    said, shown = runs[0], runs[-1]
    yield f"### {said.id}"
    yield ""
    verdicts = ". ".join(f"{NAMES[run.scale]}: {run.verdict}, {_held(run)}" for run in runs)
    yield f"{said.title}. {verdicts}. [Setup, checks and tables]({_link(said.id)})."
    yield ""
    yield f"![{shown.title}]({shown.picture})"


def _held(run: Record) -> str:
    essential = [check.holds for check in run.checks if check.essential]
    rest = [check.holds for check in run.checks if not check.essential]
    also = f" and {sum(rest)} of {len(rest)} details" if rest else ""
    return f"{sum(essential)} of {len(essential)} checks{also} hold"
