"""What `skewless learn` does: read a stream, train on its first rows, compare on the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from skewless import split
from skewless.core.arrays import Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.learn.batches import invented, resampled
from skewless.learn.environment import Environment
from skewless.learn.train import Point, Schedule, Training
from skewless.simulate.balance import balance_table, balances
from skewless.simulate.source import open_stream
from skewless.split.base import MOST_WORKERS
from skewless.workload import Zipf

KEYS = 128  # most keys of an episode; the policy is for any number, and short episodes teach faster
UNSEEN = 0.2  # part of the micro-batches that the policy is not trained on
SAVE_EVERY = 60.0  # seconds between checkpoints


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
    """How far the training came, and how the policy compares."""

    updates: int
    tables: list[Table]


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
        seen = max(1, round((1 - UNSEEN) * len(batches)))
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
    tables = [
        balance_table(balances(batches, task.workers, partly), f"{name}: {task.workers} blocks")
        for name, batches in unseen.items()
    ]
    return Trained(len(training.curve), tables)


def _check(task: Task) -> None:
    if not 1 <= task.workers <= MOST_WORKERS:
        raise SkewlessError(f"--workers is {task.workers}; give 1 to {MOST_WORKERS}")
    if task.updates < 1 or (task.minutes is not None and task.minutes <= 0):
        raise SkewlessError(f"--updates {task.updates} and --minutes {task.minutes} leave no time to train")
    if not task.out.resolve().parent.is_dir():
        raise SkewlessError(f"--out is {task.out}, but there is no folder {task.out.resolve().parent}")
    if task.data is None and (task.key or task.batch is not None):
        raise SkewlessError("--key and --batch are for --data, a stream of your own; give it, or omit them")


def _micro_batches(task: Task) -> list[Int64Array]:
    assert task.data is not None  # or there is nothing to read
    with open_stream(task.data, task.key) as stream:
        keys = np.concatenate(list(stream.blocks()))
    batch = task.batch or max(1, len(keys) // 10)
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
    words = ["skewless learn"]
    words += [f"--data {task.data}"] if task.data is not None else []
    words += [f"--key {each}" for each in task.key]
    words += [f"--workers {task.workers}", f"--updates {task.updates}", f"--seed {task.seed}"]
    return " ".join(words)
