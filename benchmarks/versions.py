"""Another checkout of skewless against this one, in turn, on the cases of the README.

Claim tested: a change of the code has not made it slower. Every case runs in a process of its own for each checkout,
both over the same files and with the same Python and Spark. The order is turned round from one round to the next, so
that a machine that gets faster or slower favours neither. The first micro-batches, in which the JVM compiles, do not
count. The figure is the median of all others, and the ratios of the single rounds show how far chance goes.

What measuring taught: look at how far apart the rounds are before believing a ratio. On two cores that were busy with
other work, three rounds of one case gave 1.66, 1.20 and 0.62. The machine has to be quiet for the figures to mean much.

`make bench-versions OLD=../other` runs this and prints the table: about half an hour for three rounds of all cases.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import apply, process, windows

TOP = Path(__file__).parent.parent


@dataclass(frozen=True)
class Case:
    """A stream: the kind of files that it reads, its micro-batches, and how many of the first ones do not count."""

    files: str
    batches: int
    warm: int


CASES = {
    # Half a minute, as `windows.WARM`, and then as many as there.
    "windows-auto": Case("windows", 2 * windows.BATCHES, windows.BATCHES),
    "windows-dalton": Case("windows", 2 * windows.BATCHES, windows.BATCHES),
    "process-key": Case("process", process.BATCHES, process.WARM),
    "process-slot": Case("process", process.BATCHES, process.WARM),
    "apply-pandas": Case("apply", apply.BATCHES, apply.WARM),
    "apply-arrow": Case("apply", apply.BATCHES, apply.WARM),
}
ROWS, ROUNDS = 500_000, 3
ROWS_TO_A_KEY = 5  # processors get 100,000 keys where windows get 500,000 rows


@dataclass(frozen=True)
class Ran:
    """What a process measured: the version that it ran, and the seconds of each micro-batch that counts."""

    version: str
    seconds: tuple[float, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases that are asked for, and print a table."""
    parser = argparse.ArgumentParser("python -m benchmarks.versions", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("old", type=Path, help="the top folder of the other checkout")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each case runs (%(default)s)")
    parser.add_argument(
        "--cases", default=",".join(CASES), help="separated by commas; 'windows' stands for all its own"
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="of a micro-batch; a fifth as many keys (%(default)s)")
    given = parser.parse_args(arguments)
    if not (given.old / "src" / "skewless").is_dir():
        parser.error(f"there is no src/skewless in {given.old}; name the top folder of a checkout")
    if given.rounds < 1 or given.rows < 100:
        parser.error(f"rounds is {given.rounds} and rows {given.rows}; give at least 1 and 100")
    asked = [each.strip() for each in given.cases.split(",")]
    cases = [name for name, case in CASES.items() if name in asked or case.files in asked]
    unknown = [each for each in asked if each not in CASES and each not in {case.files for case in CASES.values()}]
    if unknown:
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(CASES)}")
    folder = Path(tempfile.mkdtemp(prefix="skewless-bench-"))
    try:
        write_streams(folder, cases, given.rows)
        found = compare(folder, given.old.resolve(), cases, given.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(["", *table(found, given.rows, given.rounds)]))


def write_streams(folder: Path, cases: Sequence[str], rows: int) -> None:
    """Write the files that the cases read, once for both checkouts."""
    for kind in {CASES[name].files for name in cases}:
        batches = max(case.batches for case in CASES.values() if case.files == kind)
        if kind == "process":
            process.write_stream(folder / kind, rows // ROWS_TO_A_KEY, batches)
        else:
            {"windows": windows, "apply": apply}[kind].write_stream(folder / kind, batches, rows)


def compare(folder: Path, old: Path, cases: Sequence[str], rounds: int) -> dict[str, list[tuple[Ran, Ran]]]:
    """For each case and round, what the other checkout took and what this one took."""
    found: dict[str, list[tuple[Ran, Ran]]] = {name: [] for name in cases}
    for turn in range(rounds):
        for name in cases:
            order = [old, TOP] if turn % 2 == 0 else [TOP, old]
            ran = [run(folder, checkout, name) for checkout in order]
            before, after = ran if turn % 2 == 0 else reversed(ran)
            found[name].append((before, after))
            print(f"round {turn + 1}, {name}: {middle(before):.2f} s and {middle(after):.2f} s", flush=True)
    return found


def run(folder: Path, checkout: Path, name: str) -> Ran:
    """Run a case with a checkout's skewless, in a process of its own."""
    case, work, source = CASES[name], folder / "work", checkout / "src"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    files_a_batch = windows.FILES if case.files == "windows" else 1
    arguments = [name, folder / case.files, files_a_batch, work, source]
    # What is on this path comes before what is installed, here and in Spark's Python workers.
    path = os.pathsep.join([str(source), str(TOP)])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.one_version", *map(str, arguments)],
        cwd=work,
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{name} failed with the skewless of {source}:\n{done.stderr[-3000:]}")
    answer = json.loads(done.stdout.splitlines()[-1])
    seconds = tuple(answer["seconds"])
    if len(seconds) != case.batches:
        sys.exit(f"{name} had {len(seconds)} micro-batches with rows instead of {case.batches}, with {source}")
    return Ran(answer["version"], seconds[case.warm :])


def table(found: dict[str, list[tuple[Ran, Ran]]], rows: int, rounds: int) -> list[str]:
    """The medians of both and their ratio, as lines of Markdown."""
    first = next(iter(found.values()))[0]
    lines = [
        f"Version {first[0].version} against {first[1].version}, rounds: {rounds}. Median seconds of a micro-batch of",
        f"{rows:,} rows, or of {rows // ROWS_TO_A_KEY:,} keys for processors.",
        "",
        "| case | old | new | new/old | in each round |",
        "|---|---|---|---|---|",
    ]
    for name, pairs in found.items():
        old, new = (middle(*each) for each in zip(*pairs, strict=True))
        rounded = ", ".join(f"{middle(after) / middle(before):.2f}" for before, after in pairs)
        lines.append(f"| {name} | {old:.2f} | {new:.2f} | {new / old:.2f} | {rounded} |")
    return lines


def middle(*ran: Ran) -> float:
    """The median seconds of a micro-batch."""
    return float(np.median([seconds for each in ran for seconds in each.seconds]))


if __name__ == "__main__":
    main()
