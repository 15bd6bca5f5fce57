"""The owner of a share of the keys: takes partial states pane by pane, and gives windows when they close."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from skewless.aggregate.kernel import Fields, take
from skewless.core import blob
from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.store import Store
from skewless.operators.panes.changes import changes
from skewless.operators.panes.key_numbers import Slots
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.output import Output
from skewless.operators.panes.pages import Pages
from skewless.operators.panes.pane import Pane
from skewless.operators.panes.partials import FIRST_KEY, merged
from skewless.operators.panes.sweep import Sweep

_SUMMARY = "summary"


class Owner:
    """The windows of one owner.

    A window is closed once: when the watermark has reached its end. Rows of closed windows are late and count only in
    windows that are still open, as in Spark.

    Parameters
    ----------
    layout
        Of the query.
    store
        Where state is kept between one batch and the next; None to keep it in memory only.
    """

    def __init__(self, layout: Layout, store: Store | None = None) -> None:
        self.spec, self.kernels, self._layout, self._store = layout.spec, layout.kernels, layout, store
        self._slots = Slots(layout.keys)
        self._swept = () if layout.updating else self.kernels
        self._sweep = Sweep(self._swept, 0)
        self._next: int | None = None
        """The first window that is not closed; None before any watermark."""
        self._panes = Pages(self.kernels, self.spec, store)
        self._touched: dict[int, Int64Array] = {}
        data = store.get(_SUMMARY) if store else None
        if store and data is not None:
            self._load(data, store)

    def add(self, tables: Sequence[pa.RecordBatch]) -> None:
        """Take partial states as `Partials` gives them."""
        tables = [table for table in map(self._in_time, tables) if table.num_rows]
        if not tables:
            return
        table = merged(tables, self._layout) if len(tables) > 1 else tables[0]
        at = FIRST_KEY + len(self._layout.keys)
        slots = self._slots.of(table.columns[FIRST_KEY:at])
        self._sweep.grow(len(self._slots))
        states = []
        for kernel in self.kernels:
            states.append(kernel.load(table.columns[at : at + len(kernel.types)]))
            at += len(kernel.types)
        self._spread(np.asarray(table.column(1)), slots, states)

    def close(self, watermark: int | None) -> Iterator[pa.RecordBatch]:
        """Close the windows that end by the watermark (all, if None), and give their rows.

        The columns are the start of the window, its end, the keys and the values.
        """
        output = Output(self._layout, self._slots)
        while True:
            window = self._next
            if not self._sweep.holds:  # nothing is in the window: go to the first that holds a pane
                ahead = self._ahead()
                if ahead is None:
                    break
                earliest = self.spec.first(ahead)
                window = earliest if window is None else max(window, earliest)
            assert window is not None  # what holds panes has had a window before
            if watermark is not None and self.spec.end(window) > watermark:
                break
            self._move_to(window)
            output.add(window, self._sweep)
            if output.full:
                yield output.flush()
        if output.rows:
            yield output.flush()
        if watermark is not None:
            self._expire(watermark)

    def updates(self, watermark: int | None) -> Iterator[pa.RecordBatch]:
        """The rows of every window and key that `add` changed, and nothing else; then forget what the watermark closes.

        The columns are those of `close`.
        """
        if self._touched:
            windows = sorted(
                {
                    window
                    for number in self._touched
                    for window in range(self.spec.first(number), self.spec.last(number) + 1)
                    if self._next is None or window >= self._next
                }
            )
            start, stop = self.spec.panes(windows[0])[0], self.spec.panes(windows[-1])[1]
            near = self._panes.numbers[self._panes.before(start) : self._panes.before(stop)]
            panes = {number: self._panes[number] for number in near}
            yield from changes(self._layout, self._slots, panes, self._touched, windows)
        self._touched = {}
        if watermark is not None:
            self._expire(watermark)

    def save(self) -> None:
        """Write to the store what changed."""
        store = self._store
        assert store is not None  # an owner without a store is not asked to
        self._panes.save()
        columns = [pa.array(self._slots.uses), pa.array(self._sweep.panes)]
        for kernel, front, back in zip(self._swept, self._sweep.front, self._sweep.back, strict=True):
            columns += kernel.dump(back)
            columns += kernel.dump(front) if front is not None else []
        notes = {
            "mark": self._layout.mark,
            "next": self._next,
            "turned": self._sweep.turned,
            "panes": self._panes.numbers,
            "chunks": self._slots.save(store),
        }
        store.put(_SUMMARY, blob.dump(columns, {"notes": json.dumps(notes)}))

    def _load(self, data: bytes, store: Store) -> None:
        batch = blob.load(data)
        notes = json.loads(blob.notes(batch)["notes"])
        if notes["mark"] != self._layout.mark:
            raise SkewlessError(
                "the checkpoint is of another query: its windows, key or aggregates were "
                f"{notes['mark']}, now they are {self._layout.mark}; use a new checkpoint for a changed query"
            )
        columns = batch.columns
        self._slots = Slots.load(self._layout.keys, np.array(columns[0]), notes["chunks"], store)
        self._sweep = sweep = Sweep(self._swept, 0)
        sweep.panes = np.array(columns[1])
        at = 2
        for i, kernel in enumerate(self._swept):
            width = len(kernel.types)
            sweep.back[i] = kernel.load(columns[at : at + width])
            at += width
            if not kernel.inverts:
                sweep.front[i] = kernel.load(columns[at : at + width])
                at += width
        self._next, sweep.turned, self._panes.numbers = notes["next"], notes["turned"], notes["panes"]

    def _in_time(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """Without the panes of which every window is closed."""
        if self._next is None:
            return table
        oldest = self.spec.panes(self._next)[0]
        late = np.asarray(table.column(1)) < oldest
        return table.filter(pa.array(~late)) if late.any() else table

    def _spread(self, panes: Int64Array, slots: Int64Array, states: list[Fields]) -> None:
        """Give each pane its part of the new states."""
        order = np.lexsort((slots, panes))
        panes, slots = panes[order], slots[order]
        states = [take(fields, order) for fields in states]
        bounds = np.flatnonzero(np.diff(panes, prepend=panes[0] - 1, append=panes[-1] + 1))
        reach = None if self._next is None else self.spec.panes(self._next - 1)[1]
        behind = False
        for start, stop in itertools.pairwise(bounds):
            number, part = int(panes[start]), slice(start, stop)
            pane = Pane(slots[part], [take(fields, part) for fields in states])
            if self._layout.updating:
                self._touched[number] = np.union1d(self._touched.get(number, pane.slots), pane.slots)
            if number in self._panes:
                old = self._panes[number]
                self._slots.uses[pane.slots[~np.isin(pane.slots, old.slots)]] += 1
                pane = old.merged(pane, self.kernels)
            else:
                self._slots.uses[pane.slots] += 1
            self._panes[number] = pane
            behind = behind or (reach is not None and number < reach)
        if behind and not self._layout.updating:
            self._rebuild()

    def _entered(self) -> int:
        """How many of the panes the sweep holds: the first ones."""
        return 0 if self._next is None else self._panes.before(self.spec.panes(self._next - 1)[1])

    def _ahead(self) -> int | None:
        """The first pane that the sweep has not reached."""
        at = self._entered()
        return self._panes.numbers[at] if at < len(self._panes.numbers) else None

    def _move_to(self, window: int) -> None:
        """Let the sweep hold the panes of this window, which is then closed."""
        start, stop = self.spec.panes(window)
        self._leave(start)
        for number in self._panes.numbers[self._entered() : self._panes.before(stop)]:
            self._sweep.enter(self._panes[number])
        self._next = window + 1

    def _leave(self, start: int) -> None:
        """Forget the panes before this one: no open window holds them."""
        for number in self._panes.numbers[: self._panes.before(start)]:
            if not self._layout.updating:
                front = self._sweep.turned is not None and number < self._sweep.turned
                pane = self._panes.with_after(number) if front else self._panes[number]
                inside = self._panes.numbers[: self._entered()]
                if self._sweep.leave(number, pane, ((i, self._panes[i]) for i in reversed(inside))):
                    self._panes.turned(inside)
            self._slots.uses[self._panes[number].slots] -= 1
            del self._panes[number]

    def _expire(self, watermark: int) -> None:
        """Everything that ends by the watermark is closed."""
        after = self.spec.open_at(watermark)
        if self._next is None or after > self._next:
            self._leave(self.spec.panes(after)[0])
            self._next = after

    def _rebuild(self) -> None:
        """Rows came for panes that the sweep holds already: start it anew."""
        self._sweep = Sweep(self.kernels, len(self._slots))
        for number in self._panes.numbers[: self._entered()]:
            self._sweep.enter(self._panes[number])
