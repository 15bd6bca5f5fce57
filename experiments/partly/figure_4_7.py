"""PartLy, Figure 4.7: how even blocks are in tuples, relative to shuffling, and in keys, relative to hashing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.partly import blocks_by_skew
from experiments.partly.setting import BATCHES, BLOCKS, TUPLES, streams
from experiments.picture import legend
from skewless import split
from skewless.core.arrays import Int64Array
from skewless.simulate.balance import RIVALS, Balance, balances

ALL = ("partly", *RIVALS)
WON_BY = {"BSI": "bsi", "BCI": "bci", "fragments": "ksr", "splits": "splits"}
OF_SPLITTERS = ("fragments", "splits")
LOWEST = "lowest in (fragments, splits: of those that split)"
Found = Mapping[str, Mapping[str, Balance]]


def run(scale: Scale, tell: Tell) -> Outcome:
    """Divide micro-batches of all streams by all techniques."""
    found, given = {}, streams(scale)
    for name, batches in given.items():
        tell(name)
        found[name] = balances(batches, BLOCKS)
    beyond = {name: _beyond(each) for name, each in found.items()}
    crowd = {name: _over(each, "bci", "hash") for name, each in found.items()}
    splits = {name: _over(each, "splits", "prompt") for name, each in found.items()}
    fragments = {name: _extra(each, "partly") / _extra(each, "prompt") for name, each in found.items()}
    rivals = [name for name in RIVALS if name not in ("prompt", "shuffle")]
    least = min(np.mean([each[name].bsi.mean() for each in found.values()]) for name in rivals)
    better = {name: _more_even(each, rivals) for name, each in found.items()}
    natural = [value for name, value in beyond.items() if not name.startswith("Zipf")]
    cells = blocks_by_skew.cells(tell)
    fewer = [name for name, ratio in splits.items() if ratio < 1]
    checks = (
        Check(
            "largest BSI of PartLy beyond 1.1 times Prompt's, in percent of a block, the most of all streams",
            max(beyond.values()),
            high=2.0,
            why="; ".join(
                f"{name}: {value:.2f} %, {_largest(given[name], found[name])}"
                for name, value in beyond.items()
                if value > 2
            ),
        ),
        Check(
            "the same, the most of words, cluster and lineitem alone",
            max(natural),
            high=2.0,
        ),
        Check(
            "mean BCI of PartLy over that of hash, the most of all streams",
            max(crowd.values()),
            high=1.0,
            why="; ".join(f"{name}: {value:.2f}" for name, value in crowd.items() if value > 1),
        ),
        Check(
            f"streams, of {len(found)}, on which no one of bounded, cAM, PK5 and hash has a lower mean BSI than PartLy",
            float(sum(not each for each in better.values())),
            low=float(len(found)),
            why="Lower are " + "; ".join(f"{name}: {each}" for name, each in better.items() if each) + ". PK5 gives "
            "every tuple of a key the emptiest of five blocks, which is even where no key needs more than five, at "
            "the price of several fragments a key.",
        ),
        Check(
            "mean BSI of all streams, PartLy over the least of bounded, cAM, PK5 and hash (Zipf 2 decides)",
            float(np.mean([each["partly"].bsi.mean() for each in found.values()]) / least),
            high=1.0,
            essential=False,
        ),
        Check(
            "keys that PartLy splits over those that Prompt does, the median of the streams (thesis: 0.62)",
            float(np.median(list(splits.values()))),
            high=0.8,
            essential=False,
            why="This Prompt serves the smallest residuals first, which leaves it few keys to split. By stream: "
            + _told(splits),
        ),
        Check(
            f"streams, of {len(found)}, on which PartLy splits fewer keys than Prompt",
            float(len(fewer)),
            low=float(len(found)),
            essential=False,
            why="More or as many are split with " + ", ".join(name for name in found if name not in fewer) + ".",
        ),
        Check(
            "fragments beyond one a key, PartLy over Prompt, the most of all streams",
            max(fragments.values()),
            high=1.0,
            essential=False,
            why=_told(fragments),
        ),
        Check(
            "mean BSI of PartLy over Prompt's, the least of all streams",
            min(_over(each, "bsi", "prompt") for each in found.values()),
            high=1.0,
            essential=False,
            why="Prompt fills blocks to the tuple, which no way of dividing keys by fixed shares can do.",
        ),
        blocks_by_skew.check(cells),
    )
    worst = max(each["partly"].bsi.max() for each in found.values())
    return Outcome(
        (
            Scaled(
                "blocks",
                "24",
                f"{BLOCKS}; in the last table {min(blocks_by_skew.NUMBERS)} to {max(blocks_by_skew.NUMBERS)}",
            ),
            Scaled("tuples of a micro-batch", "not said", f"{TUPLES[scale]:,}, {BATCHES[scale]} micro-batches"),
            Scaled("keys of a micro-batch", "few hundreds to thousands", "300 to 5,000"),
            Scaled("streams", "Tweets, TPC-H, GCM", "words, lineitem, cluster with unseen seeds; Zipf up to 2.0"),
        ),
        f"PartLy's BSI is at most {worst:.2%} of a block; its BCI is {min(crowd.values()):.2f} to "
        f"{max(crowd.values()):.2f} of hash's. It splits fewer keys than Prompt on {len(fewer)} of {len(found)} "
        f"streams, {min(splits.values()):.2f} to {max(splits.values()):.2f} times as many, "
        f"{np.median(list(splits.values())):.2f} times in the median; its fragments beyond one a key are "
        f"{min(fragments.values()):.2f} to {max(fragments.values()):.2f} of Prompt's. On "
        f"{sum(bool(each) for each in better.values())} of them a technique that decides tuple by tuple has a lower "
        f"BSI than PartLy, at most {max(map(_lead, found.values())):.2f} % of a block lower. Of {len(cells)} pairs of "
        f"a number of blocks and a skew it keeps to the limit in {sum(each.usable for each in cells)}.",
        checks,
        (*(_table(name, each) for name, each in found.items()), blocks_by_skew.table(cells)),
        lambda figure: _draw(figure, found),
    )


def _beyond(found: Mapping[str, Balance]) -> float:
    """What the BSI of a micro-batch by PartLy has beyond 1.1 times Prompt's, at most, in percent of a block."""
    return float(100 * (found["partly"].bsi - 1.1 * found["prompt"].bsi).max())


def _largest(batches: Sequence[Int64Array], found: Mapping[str, Balance]) -> str:
    """What is in the largest block of the micro-batch with the largest one, its two largest fragments first."""
    keys = batches[int(found["partly"].bsi.argmax())]
    block = split.PartLy(BLOCKS).partition(keys)
    inside, tuples = np.unique(keys[block == np.bincount(block).argmax()], return_counts=True)
    most = np.argsort(-tuples)[:2]
    parts = [
        f"{tuples[i] * BLOCKS / len(keys):.3f} of a key in {len(np.unique(block[keys == inside[i]]))}" for i in most
    ]
    return f"where the largest block has {len(inside)} keys: {' blocks and '.join(parts)}"


def _over(found: Mapping[str, Balance], cost: str, other: str, name: str = "partly") -> float:
    return float(getattr(found[name], cost).mean() / max(getattr(found[other], cost).mean(), 1e-9))


def _more_even(found: Mapping[str, Balance], rivals: Sequence[str]) -> str:
    """The rivals with a lower mean BSI than PartLy, with both in percent of a block; nothing if there are none."""
    ours = 100 * found["partly"].bsi.mean()
    lower = [(name, 100 * found[name].bsi.mean()) for name in rivals if 100 * found[name].bsi.mean() < ours]
    return ", ".join(f"{name} {bsi:.2g} % (PartLy {ours:.2g} %)" for name, bsi in lower)


def _lead(found: Mapping[str, Balance]) -> float:
    """How much lower the BSI of the best technique that decides tuple by tuple is, in percent of a block."""
    least = min(found[name].bsi.mean() for name in RIVALS if name not in ("prompt", "shuffle"))
    return float(100 * (found["partly"].bsi.mean() - least))


def _extra(found: Mapping[str, Balance], name: str) -> float:
    """Fragments beyond one a key, relative to the keys."""
    return float((found[name].ksr - 1).sum())


def _told(ratios: Mapping[str, float]) -> str:
    return "; ".join(f"{name}: {ratio:.2f}" for name, ratio in ratios.items())


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
            LOWEST,
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
                _lowest(name, found),
            )
            for name, each in found.items()
        ),
    )


def _lowest(name: str, found: Mapping[str, Balance]) -> str:
    """What nobody has a lower mean of than this technique; several that are equal are all named in their rows.

    A technique that splits no key has the fewest fragments of all, so that these are compared among the others only.
    """
    splitting = [other for other, each in found.items() if each.splits.any()]
    won = []
    for title, cost in WON_BY.items():
        rivals = splitting if title in OF_SPLITTERS else list(found)
        if name in rivals and getattr(found[name], cost).mean() <= min(getattr(found[o], cost).mean() for o in rivals):
            won.append(title)
    return ", ".join(won)


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
