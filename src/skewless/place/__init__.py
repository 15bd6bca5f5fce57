"""Key placement: every algorithm that gives a key to one worker, because its state cannot be merged and has to move."""

from __future__ import annotations

import inspect
from typing import Any

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.place.autoflow import AutoFlow
from skewless.place.base import Placer
from skewless.place.consistent import Consistent
from skewless.place.even import Even
from skewless.place.fading import FadingCounts
from skewless.place.placement import Move, Placement, moves
from skewless.place.readj import Readj
from skewless.place.redist import Redist
from skewless.place.resources import Resources, Tolerance
from skewless.place.rule import Rule
from skewless.place.scan import Scan
from skewless.place.uniform import Uniform

__all__ = [
    "NAMES",
    "AutoFlow",
    "Consistent",
    "Counts",
    "Even",
    "FadingCounts",
    "Move",
    "Placement",
    "Placer",
    "Readj",
    "Redist",
    "Resources",
    "Rule",
    "Scan",
    "Tolerance",
    "Uniform",
    "make",
    "moves",
]

_CLASSES: dict[str, type[Placer]] = {
    each.name: each for each in (Uniform, Consistent, Scan, Redist, Readj, AutoFlow, Even)
}
NAMES = tuple(_CLASSES)


def make(name: str, **options: Any) -> Placer:
    """The placer of that name; "hash" is another name for "uniform".

    >>> make("readj", sigma=0.05).name
    'readj'
    >>> make("readjust")
    Traceback (most recent call last):
        ...
    skewless.core.errors.SkewlessError: no placer 'readjust'; there are uniform, consistent, scan, redist, readj,
    autoflow, even
    """
    kind = _CLASSES.get("uniform" if name == "hash" else name)
    if kind is None:
        raise SkewlessError(f"no placer {name!r}; there are {', '.join(NAMES)}")
    known = list(inspect.signature(kind.__init__).parameters)[1:]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise SkewlessError(f"{name} has no option {', '.join(map(repr, unknown))}; it takes {', '.join(known)}")
    return kind(**options)
