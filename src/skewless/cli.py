"""The command line: `skewless compare`, `skewless learn`, `skewless run`, `skewless demo`."""

from __future__ import annotations

import json as to_json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from skewless import __version__
from skewless.core.errors import SkewlessError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def skewless(version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False) -> None:
    """Keep keyed streams balanced."""
    if version:
        typer.echo(f"skewless {__version__}")
        raise typer.Exit


@app.command()
def compare(
    source: Annotated[str, typer.Argument(help="A .parquet, .csv or .jsonl file (.gz too), or zipf:1.5[:keys=10000].")],
    key: Annotated[list[str] | None, typer.Option(help="Key column; repeat it for a composite key.")] = None,
    workers: Annotated[int, typer.Option(help="Workers to route to.")] = 8,
    split: Annotated[list[str] | None, typer.Option(help="Splitter to try; repeatable. All by default.")] = None,
    window: Annotated[int | None, typer.Option(help="Tuples in a window; a tenth of the stream by default.")] = None,
    slide: Annotated[int | None, typer.Option(help="Tuples in a slide; a tenth of a window by default.")] = None,
    tuples: Annotated[int | None, typer.Option(help="Length of a generated stream, or rows of the file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of a generated stream.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the load of each worker over time to this file.")] = None,
) -> None:
    """Try each splitter on a stream and say which suits it."""
    # Loading the kernels takes a second that --version and --help need not wait for.
    from skewless.simulate import compare as comparing
    from skewless.simulate.plot import check_plot, draw_loads
    from skewless.simulate.source import open_stream
    from skewless.simulate.table import comparison_table, costs_table, verdict_sentence

    with _errors_in_one_line(), _progress() as progress:
        if workers < 1:
            raise SkewlessError(f"--workers must be at least 1, not {workers}")
        splitters = comparing.check_splits(split or [])
        if plot is not None:
            check_plot(plot)
        reading = progress.add_task("reading", total=None)
        with open_stream(source, key or [], tuples, seed, lambda rows: progress.advance(reading, rows)) as stream:
            window, slide = comparing.window_and_slide(stream.tuples, window, slide)
            progress.update(reading, total=stream.tuples, completed=stream.tuples)
            tasks = {name: progress.add_task(name, total=stream.tuples) for name in splitters}
            comparison = comparing.compare(
                stream, splitters, workers, window, slide, lambda name, routed: progress.advance(tasks[name], routed)
            )
        if plot is not None:
            draw_loads(comparison, plot)
    if json:
        typer.echo(to_json.dumps(comparison.as_dict()))
        return
    console = Console() if sys.stdout.isatty() else Console(width=100)
    console.print(comparison_table(comparison))
    console.print(costs_table(comparison))
    console.print(verdict_sentence(comparison), highlight=False, soft_wrap=True)


@app.command()
def learn(
    data: Annotated[
        str | None,
        typer.Option(help="A .parquet, .csv or .jsonl file, or zipf:1.5; without it, invented streams of any skew."),
    ] = None,
    key: Annotated[list[str] | None, typer.Option(help="Key column; repeat it for a composite key.")] = None,
    workers: Annotated[int, typer.Option(help="Blocks of a micro-batch.")] = 24,
    batch: Annotated[int | None, typer.Option(help="Rows of a micro-batch; a tenth of the data by default.")] = None,
    updates: Annotated[int, typer.Option(help="How long to train: updates of the network.")] = 320,
    minutes: Annotated[float | None, typer.Option(help="Stop after so many minutes.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the training.")] = 1,
    out: Annotated[Path, typer.Option(help='Where to put the policy: split.PartLy(weights="...").')] = Path("mine.npz"),
    checkpoint: Annotated[Path | None, typer.Option(help="Save to this file every minute, and go on from it.")] = None,
) -> None:
    """Train PartLy's policy and say how it compares with other splitters on rows it has not seen."""
    with _errors_in_one_line():
        from skewless.learn.command import Task, train

        task = Task(data, tuple(key or ()), workers, batch, updates, minutes, seed, out, checkpoint)
        console = Console() if sys.stdout.isatty() else Console(width=100)
        with _training(updates) as show:
            trained = train(task, show)
        for table in trained.tables:
            console.print(table)
    for each in trained.warnings:
        typer.echo(f"warning: {each}")
    if trained.warnings:
        typer.echo("Do not use this policy for such a stream; train with another --seed, or longer, and compare again.")
    typer.echo(f"{trained.updates} updates; the policy is in {out}: sk.split.PartLy(weights={str(out)!r})")


@app.command()
def run(file: Annotated[Path, typer.Argument(help="A job in TOML: source, key, window, aggregates, sink.")]) -> None:
    """Run the job in a file until it ends, or until Ctrl-C."""
    from skewless.job import read

    with _errors_in_one_line():
        job = read(file)
    # Not before the job is known to be right: loading Spark takes seconds.
    from skewless.job.run import place_of
    from skewless.job.run import run as run_job

    # The console sink prints to the same terminal, which would tear a line that updates.
    updating = sys.stdout.isatty() and job.sink.format != "console"
    with _errors_in_one_line(), _shown(updating=updating) as show, _failures_in_one_line():
        outcome = run_job(job, show)
    place = place_of(job)
    where = f"; the result is in {place}" if place else ""
    typer.echo(f"{'stopped: ' if outcome.stopped else ''}{outcome.rows:,} rows in {outcome.seconds:.1f} s{where}")
    if outcome.stopped and job.sink.checkpoint:
        typer.echo(f"Run it again to go on from the checkpoint in {job.sink.checkpoint}.")


@app.command()
def demo() -> None:
    """Show a skewed clickstream going through Spark's own windows and through skewless, in about a minute."""
    from skewless.demo.main import demo as show_demo

    try:
        with _failures_in_one_line():
            identical = show_demo()
    except KeyboardInterrupt as error:
        typer.echo("stopped")
        raise typer.Exit(130) from error
    if not identical:
        raise typer.Exit(1)


@contextmanager
def _shown(*, updating: bool) -> Iterator[Callable[[str], None]]:
    """Shows lines: each in place of the last on a terminal, one below the other in a pipe."""
    if not updating:
        yield typer.echo
        return
    with Live(console=Console(), auto_refresh=False) as live:
        yield lambda line: live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except SkewlessError as error:
        typer.echo(f"skewless: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from error


@contextmanager
def _failures_in_one_line() -> Iterator[None]:
    from skewless.job.run import JobFailed

    try:
        yield
    except JobFailed as error:
        typer.echo(f"skewless: {error}", err=True)
        raise typer.Exit(1) from error


@contextmanager
def _training(updates: int) -> Iterator[Callable[[int, str], None]]:
    """A bar with the update and what was learned by then."""
    columns = (TextColumn("training"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    quiet = not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as bar:
        task = bar.add_task("compiling", total=updates)
        yield lambda update, told: bar.update(task, completed=update, description=told)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:12}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} tuples"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def main() -> None:
    """Entry point of the `skewless` command."""
    app()


if __name__ == "__main__":
    main()
