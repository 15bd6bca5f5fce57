"""Key placement: every algorithm that gives a key to one worker, because its state does not merge and has to move."""

from __future__ import annotations

import inspect
from typing import Any

from skewless.errors import SkewlessError
from skewless.place.base import Frequencies, Placer
from skewless.place.consistent import Consistent
from skewless.place.even import Even
from skewless.place.function import PartitioningFunction
from skewless.place.placement import Move, Placement, moves
from skewless.place.readj import Readj
from skewless.place.recent import Recent
from skewless.place.redist import Redist
from skewless.place.resources import Resources, Tolerance
from skewless.place.scan import Scan
from skewless.place.slots import Slots
from skewless.place.uniform import Uniform

__all__ = [
    "NAMES",
    "Consistent",
    "Even",
    "Frequencies",
    "Move",
    "PartitioningFunction",
    "Placement",
    "Placer",
    "Readj",
    "Recent",
    "Redist",
    "Resources",
    "Scan",
    "Slots",
    "Tolerance",
    "Uniform",
    "make",
    "moves",
]

_CLASSES: dict[str, type[Placer]] = {
    each.name: each for each in (Uniform, Consistent, Scan, Redist, Readj, Slots, Even)
}
NAMES = tuple(_CLASSES)
_ALSO = {"hash": "uniform"}


def make(name: str, **options: Any) -> Placer:
    """The placer of that name; "hash" is another name for "uniform".

    >>> make("readj", sigma=0.05).name
    'readj'
    >>> make("readjust")
    Traceback (most recent call last):
        ...
    skewless.errors.SkewlessError: no placer 'readjust'; there are uniform, consistent, scan, redist, readj, slots, even
    """
    kind = _CLASSES.get(_ALSO.get(name, name))
    if kind is None:
        raise SkewlessError(f"no placer {name!r}; there are {', '.join(NAMES)}")
    known = list(inspect.signature(kind.__init__).parameters)[1:]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise SkewlessError(f"{name} has no option {', '.join(map(repr, unknown))}; it takes {', '.join(known)}")
    return kind(**options)
