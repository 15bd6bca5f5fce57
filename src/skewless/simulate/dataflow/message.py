"""What flows between operators: rows, control messages and states on their way."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A row of the stream.

    Attributes
    ----------
    slot
        The slot of its key.
    key, value
        What is added to the state of the key.
    at
        When it came from the source, in seconds.
    number
        Its place in the stream.
    """

    slot: int
    key: int
    value: int
    at: float = 0.0
    number: int = 0


class Control(NamedTuple):
    """A control message of the scheduler; an empty one only ends a period.

    All of them have another time, and every operator gets them in the order of their times.

    Attributes
    ----------
    time
        The logical time.
    sender, receiver, slots
        The reducer that gives the state of these slots away, and the one that gets it. Without slots nothing moves.
    """

    time: int
    sender: int = -1
    receiver: int = -1
    slots: tuple[int, ...] = ()


class State(NamedTuple):
    """The state of a slot on its way to another reducer.

    Attributes
    ----------
    time
        The control message that it moves by.
    slot, totals
        The slot, and the total of each of its keys.
    receiver
        The reducer that it goes to.
    """

    time: int
    slot: int
    totals: dict[int, int]
    receiver: int


Message = Row | Control
