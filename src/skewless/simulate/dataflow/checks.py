"""What a dataflow is given is checked before it runs: numbers, the owners of slots, and what is to move."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from skewless.core.arguments import check_whole
from skewless.core.errors import SkewlessError
from skewless.simulate.dataflow.result import Stream
from skewless.simulate.dataflow.scheduler import Instruction


def check_seconds(name: str, value: Any, *, above: bool = False) -> None:
    """Refuse what is no time from 0 up, or above 0.

    >>> check_seconds("work", float("nan"))
    Traceback (most recent call last):
    skewless.core.errors.SkewlessError: work is nan s; give at least 0
    """
    number = float(value) if isinstance(value, Real) else float("nan")
    if not (number > 0 if above else number >= 0) or number == float("inf"):
        raise SkewlessError(f"{name} is {value} s; give {'more than' if above else 'at least'} 0")


def check_owners(stream: Stream, owners: Sequence[int], workers: int) -> None:
    """Refuse owners that are no workers, and rows of slots that have no owner.

    >>> import numpy as np
    >>> check_owners(Stream(np.zeros(1), np.array([4]), np.zeros(1), np.zeros(1)), [0, 1], workers=2)
    Traceback (most recent call last):
    skewless.core.errors.SkewlessError: a row is of slot 4, but there are owners for slots 0 to 1; give one for each
    """
    check_whole("workers", workers, 1)
    for slot, owner in enumerate(owners):
        if not 0 <= owner < workers:
            raise SkewlessError(f"the owner of slot {slot} is {owner}; name one of the workers 0 to {workers - 1}")
    if len(stream):
        slot = int(stream.slot.min() if stream.slot.min() < 0 else stream.slot.max())
        if not 0 <= slot < len(owners):
            known = f"owners for slots 0 to {len(owners) - 1}" if owners else "no owners"
            raise SkewlessError(f"a row is of slot {slot}, but there are {known}; give one for each")


def owners_after(pairs: Sequence[Instruction], owners: Sequence[int], workers: int) -> list[int]:
    """The owners once these instructions are done; refuses those that name no worker, or a slot of another sender.

    >>> owners_after([Instruction(0, 1, (0,))], [0, 1, 1], workers=2)
    [1, 1, 1]
    >>> owners_after([Instruction(0, 1, (2,))], [0, 1, 1], workers=2)
    Traceback (most recent call last):
    skewless.core.errors.SkewlessError: the scheduler moves slot 2 from worker 0, but it is on worker 1; name that one
    """
    after = list(owners)
    for pair in pairs:
        if not 0 <= pair.receiver < workers:
            raise SkewlessError(
                f"the scheduler moves slots to worker {pair.receiver}; name one of the workers 0 to {workers - 1}"
            )
        for slot in pair.slots:
            if not 0 <= slot < len(owners):
                raise SkewlessError(
                    f"the scheduler moves slot {slot}; name one of the slots 0 to {len(owners) - 1} that there are"
                )
            if after[slot] != pair.sender:
                raise SkewlessError(
                    f"the scheduler moves slot {slot} from worker {pair.sender}, but it is on worker "
                    f"{after[slot]}; name that one"
                )
            if pair.sender == pair.receiver:
                raise SkewlessError(
                    f"the scheduler moves slot {slot} to worker {pair.receiver}, which has it; leave it out"
                )
            after[slot] = pair.receiver
    return after
