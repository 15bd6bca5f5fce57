"""A splitter or a placer of its own for every call, from the name or the object that was asked for."""

from __future__ import annotations

from skewless import place, split
from skewless.core.errors import SkewlessError
from skewless.place import Placer
from skewless.split import CooperativeDalton, PartLy, Splitter


def splitter_of(asked: str | Splitter, workers: int, *, streaming: bool) -> Splitter:
    """A splitter that nobody else has.

    Parameters
    ----------
    asked
        What the user asked for.
    workers
        The workers to split over, where a splitter that was asked for does not say so itself.
    streaming
        Whether the rows are a stream's.
    """
    if isinstance(asked, CooperativeDalton) and not streaming:
        raise SkewlessError(
            "tasks learn together from one micro-batch to the next, and a batch DataFrame has one only; "
            "split='dalton' plans it from its counts"
        )
    if isinstance(asked, PartLy) and asked.learning and not streaming:
        raise SkewlessError(
            "partly learns from one micro-batch to the next, and a batch DataFrame has one only; "
            "leave learning=True out"
        )
    if isinstance(asked, Splitter):
        return asked.again() if asked.was_given("workers") else asked.again(workers=workers)
    return split.make("bounded" if asked == "auto" else asked, workers)


def placer_of(asked: str | Placer, slots: int | None, usual: int) -> Placer:
    """A placer that nobody else has.

    Parameters
    ----------
    asked
        What the user asked for.
    slots
        The slots that the user asked for in this call, if any.
    usual
        The slots to take if none were asked for.
    """
    if not isinstance(asked, Placer):
        return place.make("even" if asked == "auto" else asked, slots=slots or usual)
    if not asked.was_given("slots"):
        return asked.again(slots=slots or usual)
    if slots not in (None, asked.slots):
        raise SkewlessError(f"the placer has {asked.slots} slots, but slots is {slots}; give it once")
    return asked.again()


def named(given: str | Splitter | Placer) -> str:
    """What was asked for, by its name."""
    return given if isinstance(given, str) else given.name
