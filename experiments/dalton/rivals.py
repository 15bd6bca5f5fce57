"""The partitioning algorithms that Dalton is compared with, and how each of them is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from experiments.figure import Scaled
from skewless import split
from skewless.split import Dalton, Splitter


@dataclass(frozen=True)
class Rival:
    """A partitioning algorithm as an experiment runs it.

    Attributes
    ----------
    make
        A splitter for so many workers, and windows of so many slides of time.
    forwards
        Whether combiners emit the results of keys that were never split themselves.
    whole
        Whether it never splits a key, so that there is nothing to reduce and all servers are combiners.
    """

    make: Callable[[int, int], Splitter]
    forwards: bool = False
    whole: bool = False


RIVALS: dict[str, Rival] = {
    "hash": Rival(lambda n, slides: split.Hash(n), forwards=True, whole=True),
    "cam": Rival(lambda n, slides: split.CAM(n, slide=None, slides=slides), forwards=True, whole=True),
    "shuffle": Rival(lambda n, slides: split.Shuffle(n)),
    "two-choices": Rival(lambda n, slides: split.TwoChoices(n)),
    "cm": Rival(lambda n, slides: split.CM(n, slide=None, slides=slides)),
    "d-choices": Rival(lambda n, slides: split.DChoices(n, slide=None)),
    "w-choices": Rival(lambda n, slides: split.WChoices(n, slide=None)),
    "dagreedy, no forwarding": Rival(lambda n, slides: split.DAGreedy(n, slide=None, slides=slides)),
    "dagreedy": Rival(lambda n, slides: split.DAGreedy(n, slide=None, slides=slides), forwards=True),
    "dalton as printed": Rival(lambda n, slides: Dalton.as_printed(n, slide=None, slides=slides), forwards=True),
    "dalton": Rival(lambda n, slides: Dalton(n, slide=None, slides=slides), forwards=True),
    "bounded": Rival(lambda n, slides: split.Bounded(n, slide=None, slides=slides)),
}
"""DAGreedy has forwarding, as in the paper; `bounded` is ours, and no rival of the paper."""

DEFAULTS = Scaled(
    "dalton",
    "a key is hot from 1 fair share of a worker; a random worker is tried; a key may be on all workers",
    "our defaults: hot from 0.1 of a fair share; the less loaded of two random workers is tried; a key may be on 4 "
    "times as many workers as its share fills, plus 2. The paper's are used only where a name says so (as printed, or "
    "with the paper's parameters)",
)
"""What `dalton` is in the figures, for their setups."""

PAPERS = ("hash", "cam", "shuffle", "two-choices", "cm", "dagreedy")
"""The rivals of the paper for tuples as they come."""

BATCHED: dict[str, Rival] = {
    **{name: Rival(rival.make) for name, rival in RIVALS.items() if name != "dagreedy, no forwarding"},
    "prompt": Rival(lambda n, slides: split.Prompt(n)),
}
"""The same for micro-batches, in which nothing is forwarded and everybody reduces."""

PAPERS_BATCHED = ("hash", "cam", "shuffle", "two-choices", "cm", "prompt")
SHOWN = ("hash", "shuffle", "two-choices", "cm", "w-choices", "dagreedy", "dalton", "bounded")
"""Those that pictures show."""
