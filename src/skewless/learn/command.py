"""What `skewless learn` does: read a stream, train on its first rows, compare on the last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import W_OK, access
from pathlib import Path
from shlex import join

import numpy as np
from rich.table import Table

from skewless import split
from skewless.core.arrays import Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.learn.batches import invented, resampled
from skewless.learn.environment import Environment
from skewless.learn.train import Point, Schedule, Training
from skewless.simulate.balance import Balance, balance_table, balances
from skewless.simulate.source import open_stream
from skewless.split.base import MOST_WORKERS
from skewless.workload import Zipf

KEYS = 128  # most keys of an episode; the policy is for any number, and short episodes teach faster
UNSEEN = 0.2  # part of the micro-batches that the policy is not trained on
SAVE_EVERY = 60.0  # seconds between checkpoints
LARGEST_SEED = 2**32 - 1
BEYOND = 0.02  # of a block: how much the BSI may be beyond 1.1 times Prompt's before a warning


@dataclass(frozen=True)
class Task:
    """The options of the command."""

    data: str | None
    key: tuple[str, ...]
    workers: int
    batch: int | None
    updates: int
    minutes: float | None
    seed: int
    out: Path
    checkpoint: Path | None


@dataclass(frozen=True)
class Trained:
    """How far the training came, how the policy compares, and what is wrong with it."""

    updates: int
    tables: list[Table]
    warnings: list[str]


def train(task: Task, show: Callable[[int, str], None] = lambda *_: None) -> Trained:
    """Train, write the policy, and compare it on rows that it has not seen."""
    _check(task)
    env = Environment(blocks=task.workers, keys=max(KEYS, 4 * task.workers))
    schedule = Schedule(updates=task.updates)
    if task.data is None:
        training = Training(env, schedule=schedule, source=invented, seed=task.seed)
        unseen = {f"Zipf {s:g}, {n:,} keys": _zipf(s, n) for s, n in ((0.8, 1_000), (1.4, 2_000), (2.0, 500))}
    else:
        batches = _micro_batches(task)
        seen = min(len(batches) - 1, max(1, round((1 - UNSEEN) * len(batches))))
        source = resampled([Counts.of(keys) for keys in batches[:seen]], task.workers)
        training = Training(env, schedule=schedule, source=source, seed=task.seed)
        unseen = {f"{task.data}, the last {len(batches) - seen} of {len(batches)} micro-batches": batches[seen:]}
    if task.checkpoint is not None and task.checkpoint.exists():
        training.load(task.checkpoint)
    saved = training.curve[-1].seconds if training.curve else 0.0

    def tell(point: Point) -> None:
        nonlocal saved
        told = f"{point.update} of {task.updates}, stage {point.stage + 1} of 3, BSI {point.bsi:.1%} of a block"
        show(point.update, f"{told}, {point.extra:.2f} extra fragments a block")
        if task.checkpoint is not None and point.seconds - saved > SAVE_EVERY:
            training.save(task.checkpoint)
            saved = point.seconds

    training.run(tell, seconds=float("inf") if task.minutes is None else 60 * task.minutes)
    if task.checkpoint is not None:
        training.save(task.checkpoint)
    training.weights(command=_command(task)).save(task.out)
    partly = split.PartLy(task.workers, weights=task.out)
    found = {name: balances(batches, task.workers, partly) for name, batches in unseen.items()}
    tables = [balance_table(each, f"{name}: {task.workers} blocks") for name, each in found.items()]
    warnings = [warning for name, each in found.items() for warning in shortcomings(name, each)]
    return Trained(len(training.curve), tables, warnings)


def shortcomings(name: str, found: Mapping[str, Balance]) -> list[str]:
    """What a policy lacks on rows that it has not seen, in words; nothing if it keeps to what Prompt and hash do."""
    told = []
    beyond = float((found["partly"].bsi - 1.1 * found["prompt"].bsi).max())
    crowd = float(found["partly"].bci.mean() / max(found["hash"].bci.mean(), 1e-9))
    if beyond > BEYOND:
        told.append(f"{name}: its largest block is {beyond:.1%} of a block beyond 1.1 times Prompt's")
    if crowd > 1:
        told.append(f"{name}: its keys are {crowd:.1f} times as uneven as those of hash (BCI)")
    return told


def _check(task: Task) -> None:
    if not 1 <= task.workers <= MOST_WORKERS:
        raise SkewlessError(f"--workers is {task.workers}; give 1 to {MOST_WORKERS}")
    if task.updates < 1 or (task.minutes is not None and not task.minutes > 0):
        raise SkewlessError(f"--updates {task.updates} and --minutes {task.minutes} leave no time to train")
    if not task.out.resolve().parent.is_dir():
        raise SkewlessError(f"--out is {task.out}, but there is no folder {task.out.resolve().parent}")
    for option, file in (("--out", task.out), ("--checkpoint", task.checkpoint)):
        if file is None:
            continue
        folder = file.resolve().parent
        if file.is_dir():
            raise SkewlessError(f"{option} is {file}, which is a folder; give a file in it, as {file / 'mine.npz'}")
        if not folder.is_dir() or not access(file if file.exists() else folder, W_OK):
            raise SkewlessError(f"{option} is {file}, which cannot be written; give a file in a folder of yours")
    if task.checkpoint is not None and task.checkpoint.resolve() == task.out.resolve():
        raise SkewlessError(
            f"--checkpoint and --out are both {task.out}; give the policy and what training goes on from a file each"
        )
    if not 0 <= task.seed <= LARGEST_SEED:
        raise SkewlessError(f"--seed is {task.seed}; give 0 to {LARGEST_SEED}")
    if task.batch is not None and task.batch < 1:
        raise SkewlessError(f"--batch is {task.batch}; give at least 1 row")
    if task.data is None and (task.key or task.batch is not None):
        raise SkewlessError("--key and --batch are for --data, a stream of your own; give it, or omit them")


def _micro_batches(task: Task) -> list[Int64Array]:
    assert task.data is not None  # or there is nothing to read
    with open_stream(task.data, task.key) as stream:
        keys = np.concatenate(list(stream.blocks()))
    batch = max(1, len(keys) // 10) if task.batch is None else task.batch
    batches = [keys[at : at + batch] for at in range(0, len(keys) - batch + 1, batch)]
    if len(batches) < 2:
        raise SkewlessError(
            f"{task.data} has {len(keys):,} rows, which is {len(batches)} micro-batch of {batch:,}; training and "
            "comparing need at least 2, so give a smaller --batch"
        )
    return batches


def _zipf(exponent: float, keys: int) -> list[Int64Array]:
    return [next(Zipf(exponent, keys, seed=900 + i).blocks(100_000, 100_000)) for i in range(3)]


def _command(task: Task) -> str:
    given = {"--data": task.data, "--batch": task.batch, "--minutes": task.minutes}
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    words += [word for each in task.key for word in ("--key", each)]
    words += ["--workers", str(task.workers), "--updates", str(task.updates), "--seed", str(task.seed)]
    return join(["skewless", "learn", *words])
