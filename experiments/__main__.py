"""Makes figures of the papers: `make figures`, `make figures FIG=dalton-9`, `make figures-full`.

Results go to docs/results/figures.json after every figure. The pages docs/figures.md and docs/figures/<paper>.md are
rendered from them, so that figures that are not made again, or that fail, keep what they had.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments import page, picture, registry, results
from experiments.figure import Figure, Scale, Tell
from skewless.core.errors import SkewlessError


def make(ids: Sequence[str], modules: Mapping[str, str], scale: Scale, docs: Path, console: Console) -> list[str]:
    """Make these figures one after the other, and return those that failed."""
    failed = []
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(ids))

        def told(figure: str) -> Tell:
            return lambda doing: progress.update(task, description=escape(f"{figure}: {doing}"))

        for each in ids:
            told(each)("starting")
            try:
                record = _made(registry.load(modules[each]), scale, docs, told(each))
            except Exception as error:  # whatever it is, the other figures are made
                failed.append(each)
                console.print(f"[red]{each:<12}[/] failed: {escape(repr(error))}")
                console.print_exception(max_frames=6)
            else:
                keep(docs, modules, record)
                color = {"agrees": "green", "partly": "yellow"}.get(record.verdict, "red")
                told_seconds = f"{record.seconds:,.1f} s"
                line = f"{each:<12} [{color}]{record.verdict:<8}[/] {told_seconds:>9}  {escape(record.found)}"
                console.print(line, soft_wrap=True)
            progress.advance(task)
    return failed


def keep(docs: Path, modules: Mapping[str, str], *new: results.Record) -> None:
    """Put new records to those that are there, and render the page; figures that are no more are dropped."""
    file = docs / "results" / "figures.json"
    records = [record for record in results.read(file) if record.id in modules]
    for record in new:
        records = results.put(records, record)
    results.write(file, records)
    for path, text in page.render(results.read(file)).items():
        (docs / path).parent.mkdir(parents=True, exist_ok=True)
        (docs / path).write_text(text)


def _made(figure: Figure, scale: Scale, docs: Path, tell: Tell) -> results.Record:
    start = time.process_time()
    outcome = figure.run(scale, tell)
    seconds = time.process_time() - start
    name = f"figures/{figure.id}-{scale}.svg"
    picture.save(outcome.draw, docs / name)
    return results.Record(
        figure.id,
        scale,
        figure.title,
        figure.claim,
        outcome.setup,
        outcome.found,
        outcome.checks,
        outcome.tables,
        name,
        seconds,
    )


def main(arguments: Sequence[str] | None = None, docs: Path = Path("docs")) -> int:
    """Make what is asked for; the exit code is 1 if a figure failed, and 2 if there is none of that name."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Makes figures of the papers.")
    parser.add_argument("figures", nargs="*", help="ids such as dalton-9, or papers such as dalton; all if none")
    parser.add_argument("--full", action="store_true", help="at the paper's sizes")
    parser.add_argument("--render", action="store_true", help="make nothing, only render the page from the results")
    given = parser.parse_args(arguments)
    console = Console(highlight=False)
    modules = registry.modules()
    try:
        if not docs.is_dir():
            raise SkewlessError(f"there is no {docs} here; run this from the top of the repository, as make does")
        if given.render:
            keep(docs, modules)
            return 0
        ids = registry.choose([each for text in given.figures for each in text.split(",")], list(modules))
        failed = make(ids, modules, "full" if given.full else "small", docs, console)
    except SkewlessError as error:
        console.print(f"figures: {escape(str(error))}", soft_wrap=True)
        return 2
    if failed:
        console.print(f"{len(failed)} of {len(ids)} failed: {', '.join(failed)}. The others are kept.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
