"""The worker of a share of the keys: takes partial states pane by pane, and gives windows when they close."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.aggregate.kernel import Fields, take
from skewless.core.arrays import Int64Array
from skewless.core.store import Store
from skewless.core.turn import Turn
from skewless.operators.notes import read_notes, write_notes
from skewless.operators.panes.changes import changes
from skewless.operators.panes.key_numbers import KeyNumbers
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.output import Output
from skewless.operators.panes.pages import Pages
from skewless.operators.panes.pane import Pane
from skewless.operators.panes.partials import FIRST_KEY, merged
from skewless.operators.panes.sweep import Sweep
from skewless.operators.worker import Worker


class PanesWorker(Worker):
    """The windows of one worker's keys.

    A window is closed once: when the watermark has reached its end. Rows of closed windows are late and count only in
    windows that are still open, as in Spark.

    Parameters
    ----------
    layout
        The shape of the aggregation.
    turn
        Whose turn it is.
    store
        Where state is kept between one micro-batch and the next.
    """

    def __init__(self, layout: Layout, turn: Turn, store: Store) -> None:
        self.windows, self.kernels, self._layout, self._store = layout.windows, layout.kernels, layout, store
        self._keys = KeyNumbers(layout.keys)
        self._swept = () if layout.updating else self.kernels
        self._sweep = Sweep(self._swept, 0)
        self._next: int | None = None
        """The first window that is not closed; None before any watermark."""
        self._panes = Pages(self.kernels, self.windows, store)
        self._touched: dict[int, Int64Array] = {}
        noted = read_notes(store, layout.mark, "windows, key and aggregates")
        if noted:
            self._load(*noted)

    @property
    def wake(self) -> int | None:
        """The end of the first open window: though it may hold no rows, later ones are late then."""
        return None if self._next is None else self.windows.span(self._next)[1]

    def run(
        self, control: int | None, tables: Sequence[pa.RecordBatch], watermark: int | None
    ) -> Iterator[pa.RecordBatch]:
        """Take partial states, and give the windows that closed, or changed: start, keys and values."""
        self.add(tables)
        yield from self.updates(watermark) if self._layout.updating else self.close(watermark)
        self.save()

    def add(self, tables: Sequence[pa.RecordBatch]) -> None:
        """Take partial states as `Partials` gives them."""
        tables = [table for table in map(self._in_time, tables) if table.num_rows]
        if not tables:
            return
        table = merged(tables, self._layout) if len(tables) > 1 else tables[0]
        at = FIRST_KEY + len(self._layout.keys)
        keys = self._keys.of(table.columns[FIRST_KEY:at])
        self._sweep.grow(len(self._keys))
        states = []
        for kernel in self.kernels:
            states.append(kernel.load(table.columns[at : at + len(kernel.types)]))
            at += len(kernel.types)
        self._spread(np.asarray(table.column(1)), keys, states)

    def close(self, watermark: int | None) -> Iterator[pa.RecordBatch]:
        """Close the windows that end by the watermark, if there is one, and give their rows: start, keys, values."""
        if watermark is None:
            return
        output = Output(self._layout, self._keys)
        while True:
            window = self._next
            if not self._sweep.holds:  # nothing is in the window: go to the first that holds a pane
                ahead = self._ahead()
                if ahead is None:
                    break
                earliest = self.windows.with_pane(ahead).start
                window = earliest if window is None else max(window, earliest)
            assert window is not None  # what holds panes has had a window before
            if self.windows.span(window)[1] > watermark:
                break
            self._move_to(window)
            output.add(window, self._sweep)
            if output.full:
                yield output.flush()
        if output.rows:
            yield output.flush()
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
                    for window in self.windows.with_pane(number)
                    if self._next is None or window >= self._next
                }
            )
            start, stop = self.windows.panes_of(windows[0]).start, self.windows.panes_of(windows[-1]).stop
            near = self._panes.numbers[self._panes.before(start) : self._panes.before(stop)]
            panes = {number: self._panes[number] for number in near}
            yield from changes(self._layout, self._keys, panes, self._touched, windows)
        self._touched = {}
        if watermark is not None:
            self._expire(watermark)

    def save(self) -> None:
        """Write to the store what changed."""
        self._panes.save()
        columns = [pa.array(self._keys.uses), pa.array(self._sweep.panes)]
        for kernel, front, back in zip(self._swept, self._sweep.front, self._sweep.back, strict=True):
            columns += kernel.dump(back)
            columns += kernel.dump(front) if front is not None else []
        notes = {
            "next": self._next,
            "turned": self._sweep.turned,
            "panes": self._panes.numbers,
            "chunks": self._keys.save(self._store),
        }
        write_notes(self._store, self._layout.mark, notes, columns)

    def _load(self, notes: dict[str, Any], columns: list[pa.Array]) -> None:
        self._keys = KeyNumbers.load(self._layout.keys, np.array(columns[0]), notes["chunks"], self._store)
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
        oldest = self.windows.panes_of(self._next).start
        late = np.asarray(table.column(1)) < oldest
        return table.filter(pa.array(~late)) if late.any() else table

    def _spread(self, panes: Int64Array, keys: Int64Array, states: list[Fields]) -> None:
        """Give each pane its part of the new states."""
        order = np.lexsort((keys, panes))
        panes, keys = panes[order], keys[order]
        states = [take(fields, order) for fields in states]
        bounds = np.flatnonzero(np.diff(panes, prepend=panes[0] - 1, append=panes[-1] + 1))
        reach = None if self._next is None else self.windows.panes_of(self._next - 1).stop
        behind = False
        for start, stop in itertools.pairwise(bounds):
            number, part = int(panes[start]), slice(start, stop)
            pane = Pane(keys[part], [take(fields, part) for fields in states])
            if self._layout.updating:
                self._touched[number] = np.union1d(self._touched.get(number, pane.keys), pane.keys)
            if number in self._panes:
                old = self._panes[number]
                self._keys.uses[pane.keys[~np.isin(pane.keys, old.keys)]] += 1
                pane = old.merged(pane, self.kernels)
            else:
                self._keys.uses[pane.keys] += 1
            self._panes[number] = pane
            behind = behind or (reach is not None and number < reach)
        if behind and not self._layout.updating:
            self._rebuild()

    def _entered(self) -> int:
        """How many of the panes the sweep holds: the first ones."""
        return 0 if self._next is None else self._panes.before(self.windows.panes_of(self._next - 1).stop)

    def _ahead(self) -> int | None:
        """The first pane that the sweep has not reached."""
        at = self._entered()
        return self._panes.numbers[at] if at < len(self._panes.numbers) else None

    def _move_to(self, window: int) -> None:
        """Let the sweep hold the panes of this window, which is then closed."""
        inside = self.windows.panes_of(window)
        self._leave(inside.start)
        for number in self._panes.numbers[self._entered() : self._panes.before(inside.stop)]:
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
            self._keys.uses[self._panes[number].keys] -= 1
            del self._panes[number]

    def _expire(self, watermark: int) -> None:
        """Everything that ends by the watermark is closed."""
        after = self.windows.open_at(watermark)
        if self._next is None or after > self._next:
            self._leave(self.windows.panes_of(after).start)
            self._next = after

    def _rebuild(self) -> None:
        """Rows came for panes that the sweep holds already: start it anew."""
        self._sweep = Sweep(self.kernels, len(self._keys))
        for number in self._panes.numbers[: self._entered()]:
            self._sweep.enter(self._panes[number])
