"""Trains the policy that the package ships: `python -m experiments.partly.shipped FOLDER`.

Several seeds are trained, and a policy is kept every few updates. Which of them is shipped is decided by streams that
neither training nor a figure uses: those whose BSI keeps to the limit on all of them, and of these the one with the
fewest fragments. It replaces the shipped file, and shipped.json with the numbers of every candidate, only if it is
better by the same rule than what is shipped on the same streams.

It needs the extra `learn`. Policies that are in the folder already are not trained again, so that seeds can be trained
beside each other: `python -m experiments.partly.shipped FOLDER 1`, and at the end without a seed. Seeds that are not
among those of the choice only tell how often a training fails: with `python -m experiments.partly.shipped FOLDER 3 4 5`
their policies are measured on the same streams and noted beside the candidates, and none of them is shipped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from experiments.partly.setting import BLOCKS, CHOOSING, streams
from skewless import split
from skewless.core.arrays import Int64Array
from skewless.simulate.balance import Balance, balance
from skewless.split.weights import Weights

RECORD = Path(__file__).with_name("shipped.json")
SHIPPED = Path(split.__file__).with_name("partly.npz")
SEEDS = (1, 2)
UPDATES, FIRST, EVERY = 300, 100, 10
KEYS = 128  # most keys of an episode
Rivals = tuple[list[Int64Array], dict[str, Balance]]
LIMIT = 0.015  # of a block, beyond 1.1 times Prompt's BSI
MEETS = 0.02  # the same, as figures ask for it


@dataclass(frozen=True)
class Candidate:
    """A policy on the streams that decide.

    Attributes
    ----------
    beyond
        What the BSI of a micro-batch has beyond 1.1 times Prompt's, at most, as a part of a block.
    bci
        The mean BCI over that of hash, the most of all streams.
    fragments
        Fragments beyond one a key over those of Prompt, of all streams.
    """

    seed: int
    update: int
    beyond: float
    bci: float
    fragments: float


def train(seed: int, folder: Path) -> None:
    """Train with this seed, and keep a policy every few updates."""
    from skewless.learn.environment import Environment
    from skewless.learn.train import Point, Schedule, Training

    training = Training(Environment(blocks=BLOCKS, keys=KEYS), schedule=Schedule(updates=UPDATES), seed=seed)
    checkpoint = folder / f"checkpoint-{seed}.npz"
    if checkpoint.exists():
        training.load(checkpoint)

    def tell(point: Point) -> None:
        if point.update % EVERY:
            return
        training.save(checkpoint)
        print(point, flush=True)
        if point.update >= FIRST:
            made = training.weights(command="python -m experiments.partly.shipped", update=point.update)
            made.save(folder / f"policy-{seed}-{point.update}.npz")

    training.run(tell)


def measured(seed: int, update: int, weights: Path, rivals: Sequence[Rivals]) -> Candidate:
    """The policy of a file on the streams that decide."""
    divide = split.PartLy(BLOCKS, weights=weights).partition
    found = [{**others, "partly": balance(batches, divide, BLOCKS)} for batches, others in rivals]
    beyond = max(float((each["partly"].bsi - 1.1 * each["prompt"].bsi).max()) for each in found)
    bci = max(float(each["partly"].bci.mean() / each["hash"].bci.mean()) for each in found)
    extra = [sum(float((each[name].ksr - 1).sum()) for each in found) for name in ("partly", "prompt")]
    return Candidate(seed, update, round(beyond, 5), round(bci, 4), round(extra[0] / extra[1], 4))


def choose(candidates: list[Candidate]) -> Candidate:
    """Of those within the limit the one with the fewest fragments; if there is none, the most even one."""
    within = [each for each in candidates if each.beyond <= LIMIT and each.bci <= 1]
    if within:
        return min(within, key=lambda each: each.fragments)
    return min(candidates, key=lambda each: each.beyond)


def main(folder: Path, seeds: list[int]) -> None:
    """Train these seeds, and measure those that are not of the choice; or, if none is given, ship the best."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds or SEEDS:
        if not (folder / f"policy-{seed}-{UPDATES}.npz").exists():
            train(seed, folder)
    others = [seed for seed in seeds if seed not in SEEDS]
    if seeds and not others:
        return
    told = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if others:
        beside = {str(seed): [asdict(each) for each in candidates_of([seed], folder)] for seed in others}
        told["beside"] = told.get("beside", {}) | beside
        share = {seed: f"{sum(map(meets, found))} of {len(found)}" for seed, found in told["beside"].items()}
        print(f"policies within {MEETS:.0%} of a block and the BCI of hash, by seed: {share}")
    else:
        candidates = candidates_of(SEEDS, folder)
        best, now = choose(candidates), shipped()
        if now is not None and choose([now, best]) is now:
            print(f"the best is {best}, which is no better than what is shipped: {now}. Nothing was written.")
            return
        told |= {"chosen": asdict(best), "candidates": [asdict(each) for each in candidates]}
        SHIPPED.write_bytes((folder / f"policy-{best.seed}-{best.update}.npz").read_bytes())
        print(best)
    RECORD.write_text(json.dumps(told, indent=1) + "\n")


def meets(told: Mapping[str, float]) -> bool:
    """Whether a candidate of the record is as even as the figures ask for, in tuples and in keys."""
    return told["beyond"] <= MEETS and told["bci"] <= 1


def candidates_of(seeds: Sequence[int], folder: Path) -> list[Candidate]:
    """The policies of these seeds in a folder, on the streams that decide."""
    updates = np.arange(FIRST, UPDATES + 1, EVERY).tolist()
    files = {(seed, update): folder / f"policy-{seed}-{update}.npz" for seed in seeds for update in updates}
    rivals = _rivals()
    return [measured(*which, file, rivals) for which, file in files.items()]


def shipped() -> Candidate | None:
    """What the package ships now, on the same streams; nothing if it has no policy."""
    if not SHIPPED.exists():
        return None
    made = Weights.load(SHIPPED).made
    return measured(made["seed"], made["update"], SHIPPED, _rivals())


@cache
def _rivals() -> tuple[Rivals, ...]:
    prompt, hashed = split.Prompt(BLOCKS).partition, split.Hash(BLOCKS).route
    return tuple(
        (batches, {"prompt": balance(batches, prompt, BLOCKS), "hash": balance(batches, hashed, BLOCKS)})
        for batches in streams("small", CHOOSING).values()
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(each) for each in sys.argv[2:]])
