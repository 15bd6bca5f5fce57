"""The mapper of AutoFlow (Algorithm 1): routes rows by a table that control messages change."""

from __future__ import annotations

from collections.abc import Sequence

from skewless.simulate.dataflow.barrier import Barriers
from skewless.simulate.dataflow.message import Control, Message, Row


class Mapper:
    """Sends each row to the reducer that owns its slot.

    When a control message says that slots move, the channels that have delivered it are ahead of the others. Rows of
    these slots that come from them are kept until all channels have delivered the message. Then the table changes, the
    message goes to all reducers, and after it the rows that were kept go to the new owner. All other rows are sent at
    once.

    The printed algorithm differs in three places, where the text and Figure 3 are followed. Its `else` in line 9, which
    counts the message of a further channel, belongs to the `if` of line 4. Line 26 compares a time with a counter; what
    is meant is whether the row's channel has delivered the message. And line 18 sends the kept rows before line 21
    sends the message, so that they could reach the new owner before it knows that the slot is to come.

    Parameters
    ----------
    channels
        The input channels.
    owners
        The reducer of each slot: the routing table.

    Examples
    --------
    >>> mapper = Mapper(2, [0, 0])
    >>> mapper.row(0, Row(1, key=7, value=5))
    0
    >>> mapper.control(0, Control(8, sender=0, receiver=1, slots=(1,)))
    >>> mapper.row(0, Row(1, key=7, value=6)) is None       # kept, as its channel has delivered the message
    True
    >>> mapper.row(1, Row(1, key=7, value=7))               # the other channel has not
    0
    >>> mapper.control(1, Control(8, sender=0, receiver=1, slots=(1,)))
    [Row(slot=1, key=7, value=6, at=0.0, number=0)]
    >>> mapper.table
    [0, 1]
    """

    def __init__(self, channels: int, owners: Sequence[int]) -> None:
        self.table = list(owners)
        self._barriers = Barriers(channels)
        self._moving: dict[int, list[int]] = {}  # the times of the control messages that move a slot
        self._kept: dict[int, list[Row]] = {}

    def row(self, channel: int, row: Row) -> int | None:
        """The reducer that a row goes to; None if it is kept."""
        if self._moving and row.slot in self._moving:
            time = self._barriers.latest(channel, self._moving[row.slot])
            if time is not None:
                self._kept[time].append(row)
                return None
        return self.table[row.slot]

    def control(self, channel: int, control: Control) -> list[Row] | None:
        """The rows to send after the control message, once it is to be sent; None before."""
        if control.slots and control.time not in self._kept:
            self._kept[control.time] = []
            for slot in control.slots:
                self._moving.setdefault(slot, []).append(control.time)
        if not self._barriers.arrive(channel, control.time):
            return None
        for slot in control.slots:
            self.table[slot] = control.receiver
            self._moving[slot].remove(control.time)
            if not self._moving[slot]:
                del self._moving[slot]
        return self._kept.pop(control.time, [])

    @property
    def kept(self) -> int:
        """The rows that are kept now."""
        return sum(len(rows) for rows in self._kept.values())


def sent(mapper: Mapper, channel: int, message: Message, reducers: int) -> list[tuple[int, Message]]:
    """What the mapper sends when it takes a message: the reducers and the messages, in order.

    >>> sent(Mapper(1, [0, 1]), 0, Control(3), reducers=2)
    [(0, Control(time=3, sender=-1, receiver=-1, slots=())), (1, Control(time=3, sender=-1, receiver=-1, slots=()))]
    """
    if isinstance(message, Row):
        target = mapper.row(channel, message)
        return [] if target is None else [(target, message)]
    rows = mapper.control(channel, message)
    if rows is None:
        return []
    return [*((reducer, message) for reducer in range(reducers)), *((mapper.table[row.slot], row) for row in rows)]
