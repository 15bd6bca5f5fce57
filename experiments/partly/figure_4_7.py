"""PartLy, Figure 4.7: how even blocks are in tuples, relative to shuffling, and in keys, relative to hashing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.partly.setting import BATCHES, BLOCKS, TUPLES, streams
from experiments.picture import legend
from skewless.simulate.balance import RIVALS, Balance, balances

ALL = ("partly", *RIVALS)
Found = Mapping[str, Mapping[str, Balance]]


def run(scale: Scale, tell: Tell) -> Outcome:
    """Divide micro-batches of all streams by all techniques."""
    found = {}
    for name, batches in streams(scale).items():
        tell(name)
        found[name] = balances(batches, BLOCKS)
    beyond = {name: _beyond(each) for name, each in found.items()}
    crowd = {name: _over(each, "bci", "hash") for name, each in found.items()}
    splits = _total(found, "splits", "partly") / _total(found, "splits", "prompt")
    fragments = _extra(found, "partly") / _extra(found, "prompt")
    rivals = [name for name in RIVALS if name not in ("prompt", "shuffle")]
    least = min(np.mean([each[name].bsi.mean() for each in found.values()]) for name in rivals)
    checks = (
        Check(
            "largest BSI of PartLy beyond 1.1 times Prompt's, in percent of a block, the most of all streams",
            max(beyond.values()),
            high=2.0,
            why="; ".join(f"{name}: {value:.2f} %" for name, value in beyond.items() if value > 2),
        ),
        Check(
            "mean BCI of PartLy over that of hash, the most of all streams",
            max(crowd.values()),
            high=1.0,
            why="; ".join(f"{name}: {value:.2f}" for name, value in crowd.items() if value > 1),
        ),
        Check(
            "mean BSI of PartLy over the least of bounded, cAM, PK5 and hash",
            float(np.mean([each["partly"].bsi.mean() for each in found.values()]) / least),
            high=1.0,
        ),
        Check(
            "keys that PartLy splits over those that Prompt does, all streams (thesis: 0.62)",
            splits,
            high=0.8,
            essential=False,
            why=f"This Prompt serves the smallest residuals first, which leaves it few keys to split; PartLy's "
            f"fragments beyond one a key are {fragments:.2f} of Prompt's.",
        ),
        Check(
            "mean BSI of PartLy over Prompt's, the least of all streams",
            min(_over(each, "bsi", "prompt") for each in found.values()),
            high=1.0,
            essential=False,
            why="Prompt fills blocks to the tuple, which no way of dividing keys by fixed shares can do.",
        ),
    )
    worst = max(each["partly"].bsi.max() for each in found.values())
    return Outcome(
        (
            Scaled("blocks", "24", f"{BLOCKS}"),
            Scaled("tuples of a micro-batch", "not said", f"{TUPLES[scale]:,}, {BATCHES[scale]} micro-batches"),
            Scaled("keys of a micro-batch", "few hundreds to thousands", "300 to 5,000"),
            Scaled("streams", "Tweets, TPC-H, GCM", "words, lineitem, cluster with unseen seeds; Zipf up to 2.0"),
        ),
        f"PartLy's BSI is at most {worst:.2%} of a block; its BCI is {min(crowd.values()):.2f} to "
        f"{max(crowd.values()):.2f} of hash's. It splits {splits:.2f} times as many keys as Prompt and has "
        f"{fragments:.2f} times as many fragments beyond one a key.",
        checks,
        tuple(_table(name, each) for name, each in found.items()),
        lambda figure: _draw(figure, found),
    )


def _beyond(found: Mapping[str, Balance]) -> float:
    """What the BSI of a micro-batch by PartLy has beyond 1.1 times Prompt's, at most, in percent of a block."""
    return float(100 * (found["partly"].bsi - 1.1 * found["prompt"].bsi).max())


def _over(found: Mapping[str, Balance], cost: str, other: str, name: str = "partly") -> float:
    return float(getattr(found[name], cost).mean() / max(getattr(found[other], cost).mean(), 1e-9))


def _total(found: Found, cost: str, name: str) -> float:
    return float(sum(getattr(each[name], cost).sum() for each in found.values()))


def _extra(found: Found, name: str) -> float:
    """Fragments beyond one a key, relative to the keys."""
    return float(sum((each[name].ksr - 1).sum() for each in found.values()))


def _table(title: str, found: Mapping[str, Balance]) -> Table:
    return Table(
        f"{title} keys" if title[-1].isdigit() else title,
        (
            "technique",
            "BSI, % of a block",
            "BSI over shuffle's",
            "BCI, keys",
            "BCI over hash's",
            "fragments a key",
            "keys split",
        ),
        tuple(
            (
                name,
                Measured.of(100 * each.bsi),
                _over(found, "bsi", "shuffle", name),
                Measured.of(each.bci),
                _over(found, "bci", "hash", name),
                Measured.of(each.ksr),
                Measured.of(each.splits),
            )
            for name, each in found.items()
        ),
    )


def _draw(figure: Any, found: Found) -> None:
    panels = figure.subplots(1, 2)
    for axes, cost, title in ((panels[0], "bsi", "BSI, part of a block"), (panels[1], "bci", "BCI over that of hash")):
        for number, name in enumerate(ALL):
            to = "hash" if cost == "bci" else ""
            heights = [
                max(1e-5, _over(each, cost, to, name) if to else each[name].bsi.mean()) for each in found.values()
            ]
            places = [at + 0.11 * number - 0.33 for at in range(len(found))]
            axes.bar(places, heights, 0.1, label=name)
        axes.set_xticks(range(len(found)), list(found), rotation=60, ha="right", fontsize=7)
        axes.set_yscale("log")
        axes.set_title(title, fontsize=9)
    legend(figure, panels[0])


FIGURE = Figure(
    "partly-4.7",
    "Partitioning quality of a learned policy",
    "PartLy matches or outperforms the techniques before it in the imbalance of blocks, in tuples relative to shuffle "
    "and in keys relative to hash, and splits 38 % fewer keys than Prompt.",
    run,
)
