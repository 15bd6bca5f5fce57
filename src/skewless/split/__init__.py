"""Key splitting: every algorithm that may send one key to several workers, because partial results can be merged."""

from __future__ import annotations

import inspect
from typing import Any

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.split.base import Splitter
from skewless.split.best_cam import best_cam
from skewless.split.blocks import BlockPlan, allocate, partition
from skewless.split.bounded import Bounded
from skewless.split.cam import CAM
from skewless.split.cm import CM
from skewless.split.cooperate import Broadcast, Changes, CooperativeDalton, Sync
from skewless.split.d_choices import DChoices
from skewless.split.dagreedy import DAGreedy
from skewless.split.dalton import Dalton
from skewless.split.first_fit import first_fit
from skewless.split.five_choices import FiveChoices
from skewless.split.hash import Hash
from skewless.split.least_fragmentation import least_fragmentation
from skewless.split.partly import PartLy
from skewless.split.prompt import Prompt
from skewless.split.q_table import QTableReducer
from skewless.split.receiver import Receiver
from skewless.split.shuffle import Shuffle
from skewless.split.time_based import time_blocks
from skewless.split.two_choices import TwoChoices
from skewless.split.w_choices import WChoices

__all__ = [
    "CAM",
    "CM",
    "NAMES",
    "BlockPlan",
    "Bounded",
    "Broadcast",
    "Changes",
    "CooperativeDalton",
    "Counts",
    "DAGreedy",
    "DChoices",
    "Dalton",
    "FiveChoices",
    "Hash",
    "PartLy",
    "Prompt",
    "QTableReducer",
    "Receiver",
    "Shuffle",
    "Splitter",
    "Sync",
    "TwoChoices",
    "WChoices",
    "allocate",
    "best_cam",
    "first_fit",
    "least_fragmentation",
    "make",
    "partition",
    "time_blocks",
]

_CLASSES: dict[str, type[Splitter]] = {
    each.name: each
    for each in (
        Hash,
        Shuffle,
        TwoChoices,
        FiveChoices,
        DChoices,
        WChoices,
        CAM,
        CM,
        DAGreedy,
        Dalton,
        Prompt,
        PartLy,
        Bounded,
    )
}
NAMES = tuple(_CLASSES)
_WINDOW = ("slide", "slides")  # accepted by all, though some remember no window


def make(name: str, workers: int, **options: Any) -> Splitter:
    """The splitter of that name.

    `slide` and `slides` may be given for any of them; those that keep no window ignore them.

    >>> make("dalton", workers=8, epsilon=0.05).workers
    8
    >>> make("dolton", workers=8)
    Traceback (most recent call last):
        ...
    skewless.core.errors.SkewlessError: no splitter 'dolton'; there are hash, shuffle, two-choices,
    five-choices, d-choices, w-choices, cam, cm, dagreedy, dalton, prompt, partly, bounded
    """
    if name not in _CLASSES:
        raise SkewlessError(f"no splitter {name!r}; there are {', '.join(NAMES)}")
    known = list(inspect.signature(_CLASSES[name].__init__).parameters)[1:]
    options = {option: value for option, value in options.items() if option in known or option not in _WINDOW}
    unknown = [option for option in options if option not in known]
    if unknown:
        takes = ", ".join(option for option in known if option != "workers") or "no options"
        raise SkewlessError(f"{name} has no option {', '.join(map(repr, unknown))}; it takes {takes}")
    # Each class takes its own options, which were just checked against its signature.
    return _CLASSES[name](workers, **options)
