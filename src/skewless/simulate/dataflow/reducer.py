"""The reducer of AutoFlow (Algorithm 2): adds rows up, and hands slots over without stopping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from skewless.core.errors import SkewlessError
from skewless.simulate.dataflow.barrier import Barriers
from skewless.simulate.dataflow.message import Control, Row, State


class Reached(NamedTuple):
    """What a reducer does when a control message has come from all its channels.

    Attributes
    ----------
    counts
        The rows of each slot since the control message before, for the scheduler.
    states
        The states that leave for another reducer.
    rows
        Rows that were kept and are added now, because their state was there first.
    """

    counts: dict[int, int]
    states: list[State]
    rows: list[Row]


class Reducer:
    """Keeps the total of each key in its slots.

    The receiver of a slot knows with the first message that the slot is to come, and keeps its rows until the state is
    there. The sender goes on adding rows from channels that have not delivered the message; when all have, no more can
    come, and the state leaves. All rows of other slots are added at once on both.

    Slots may move again before their state has come: then it is passed on when it does. Rows are kept for the control
    message that they came after, so that each move adds its own.

    Parameters
    ----------
    me
        The number of this reducer.
    channels
        The input channels.
    slots
        The slots that it owns at first.

    Examples
    --------
    >>> left, right, move = Reducer(0, 2, [1]), Reducer(1, 2, []), Control(6, sender=0, receiver=1, slots=(1,))
    >>> left.row(1, Row(1, key=7, value=4))
    True
    >>> left.control(0, move), right.control(0, move)
    (None, None)
    >>> right.row(0, Row(1, key=7, value=8))            # kept
    False
    >>> state, = left.control(1, move).states
    >>> _ = right.control(1, move)
    >>> rows, onward = right.receive(state)
    >>> rows, right.slots
    ([Row(slot=1, key=7, value=8, at=0.0, number=0)], {1: {7: 12}})
    """

    def __init__(self, me: int, channels: int, slots: Iterable[int]) -> None:
        self.me = me
        self.slots: dict[int, dict[int, int]] = {slot: {} for slot in slots}
        self._barriers = Barriers(channels)
        self._counts: dict[int, int] = {}
        self._coming: dict[int, list[int]] = {}  # times of the control messages by which a slot comes here
        self._kept: dict[tuple[int, int], list[Row]] = {}  # by time and slot
        self._waiting: set[tuple[int, int]] = set()  # barriers that are complete without their state
        self._early: dict[tuple[int, int], State] = {}  # states that came before their barrier was complete
        self._onward: dict[int, list[tuple[int, int]]] = {}  # times and receivers of slots that are to go on

    def row(self, channel: int, row: Row) -> bool:
        """Take a row: whether it was added, and not kept."""
        coming = self._coming.get(row.slot) if self._coming else None
        if coming:
            time = self._barriers.latest(channel, coming)
            if time is not None:
                self._kept[time, row.slot].append(row)
                return False
        self._add(row)
        return True

    def control(self, channel: int, control: Control) -> Reached | None:
        """Take a control message: what follows if it is the last; None before."""
        if control.receiver == self.me:
            for slot in control.slots:
                if (control.time, slot) not in self._kept:
                    self._kept[control.time, slot] = []
                    self._coming.setdefault(slot, []).append(control.time)
        if not self._barriers.arrive(channel, control.time):
            return None
        reached = Reached(self._counts, [], [])
        self._counts = {}
        for slot in control.slots:
            if control.sender == self.me:
                self._leave(slot, control.time, control.receiver, reached.states)
            elif control.receiver == self.me:
                early = self._early.pop((control.time, slot), None)
                self._waiting.add((control.time, slot))
                if early is not None:
                    rows, onward = self.receive(early)
                    reached.rows.extend(rows)
                    reached.states.extend(onward)
        return reached

    def receive(self, state: State) -> tuple[list[Row], list[State]]:
        """Take the state of a slot: the rows that were kept for it and are added, and the states that go on."""
        place = state.time, state.slot
        if place not in self._waiting:
            self._early[place] = state
            return [], []
        self._waiting.remove(place)
        self._coming[state.slot].remove(state.time)
        if not self._coming[state.slot]:
            del self._coming[state.slot]
        rows, onward = self._kept.pop(place), list[State]()
        self.slots[state.slot] = state.totals
        for row in rows:
            self._add(row)
        going = self._onward.get(state.slot)
        if going:
            time, receiver = going.pop(0)
            if not going:
                del self._onward[state.slot]
            onward.append(State(time, state.slot, self.slots.pop(state.slot), receiver))
        return rows, onward

    @property
    def kept(self) -> int:
        """The rows that are kept now."""
        return sum(len(rows) for rows in self._kept.values())

    def _leave(self, slot: int, time: int, receiver: int, states: list[State]) -> None:
        # A slot that comes by an earlier message is not here yet; one that comes back by a later one still is.
        if any(coming < time for coming in self._coming.get(slot, ())):
            self._onward.setdefault(slot, []).append((time, receiver))
        else:
            states.append(State(time, slot, self.slots.pop(slot), receiver))

    def _add(self, row: Row) -> None:
        totals = self.slots.get(row.slot)
        if totals is None:
            raise SkewlessError(f"reducer {self.me} got a row of slot {row.slot}, whose state it does not have")
        totals[row.key] = totals.get(row.key, 0) + row.value
        self._counts[row.slot] = self._counts.get(row.slot, 0) + 1
