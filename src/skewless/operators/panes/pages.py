"""The panes of a worker, several neighbours to a blob: a call to the state store costs more than some bytes in it."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from skewless.aggregate.kernel import Fields, Kernel, concat, take
from skewless.core import blob
from skewless.core.store import Store
from skewless.core.windows import Windows
from skewless.operators.panes.pane import Pane

_PAGE, _AFTER = "page/{}", "after/{}"
_PAGES = 8  # in a window, or thereabouts
_MOST = 64  # panes to a page


class Pages:
    """Panes by number, read when they are asked for and written, a page at a time, if they changed.

    Parameters
    ----------
    kernels
        What the panes hold.
    windows
        They say how many panes a window has.
    store
        Where pages are kept.
    """

    def __init__(self, kernels: Sequence[Kernel], windows: Windows, store: Store) -> None:
        self.numbers: list[int] = []
        """Of the panes there are, ascending."""
        self._kernels, self._store = kernels, store
        self._width = max(1, min(_MOST, windows.size // windows.pane // _PAGES))
        self._panes: dict[int, Pane] = {}
        self._changed: set[int] = set()  # pages, as are the next two
        self._turned: set[int] = set()
        self._left: set[int] = set()

    def __contains__(self, number: int) -> bool:
        at = bisect.bisect_left(self.numbers, number)
        return at < len(self.numbers) and self.numbers[at] == number

    def __getitem__(self, number: int) -> Pane:
        if number not in self._panes:
            self._read(number // self._width)
        return self._panes[number]

    def __setitem__(self, number: int, pane: Pane) -> None:
        if number not in self:
            bisect.insort(self.numbers, number)
        self._panes[number] = pane
        self._changed.add(number // self._width)

    def __delitem__(self, number: int) -> None:
        self.numbers.remove(number)
        self._panes.pop(number, None)
        self._left.add(number // self._width)

    def before(self, number: int) -> int:
        """How many panes come before this number."""
        return bisect.bisect_left(self.numbers, number)

    def with_after(self, number: int) -> Pane:
        """A pane that is in front of the two stacks, with what comes after it."""
        pane = self[number]
        if pane.after is None:
            self._read_after(number // self._width)
        return pane

    def turned(self, numbers: Iterable[int]) -> None:
        """These panes were given a new `after`."""
        self._turned.update(number // self._width for number in numbers)

    def save(self) -> None:
        """Write the pages that changed, and drop those that are empty."""
        store = self._store
        for page in sorted(self._changed | self._turned | self._left):
            numbers = self._on(page)
            if not numbers:
                store.drop(_PAGE.format(page))
                store.drop(_AFTER.format(page))
                continue
            if page in self._changed:
                store.put(_PAGE.format(page), self._dump(numbers))
            front = [number for number in numbers if self[number].after] if page in self._turned else []
            if front:
                store.put(_AFTER.format(page), self._dump_after(front))
        self._changed, self._turned, self._left = set(), set(), set()

    def _on(self, page: int) -> list[int]:
        """The numbers of the panes on a page."""
        return self.numbers[self.before(page * self._width) : self.before((page + 1) * self._width)]

    def _read(self, page: int) -> None:
        columns = blob.load(self._store.need(_PAGE.format(page))).columns
        keys, at = np.asarray(columns[1]).astype(np.int64), 2
        states: list[Fields] = []
        for kernel in self._kernels:
            states.append(kernel.load(columns[at : at + len(kernel.types)]))
            at += len(kernel.types)
        for number, part in _parts(columns[0]):
            if number in self and number not in self._panes:
                self._panes[number] = Pane(keys[part], [take(fields, part) for fields in states])

    def _read_after(self, page: int) -> None:
        columns = blob.load(self._store.need(_AFTER.format(page))).columns
        later: list[Fields | None] = []
        at = 1
        for kernel in self._kernels:
            width = 0 if kernel.inverts else len(kernel.types)
            later.append(kernel.load(columns[at : at + width]) if width else None)
            at += width
        for number, part in _parts(columns[0]):
            if number in self and self[number].after is None:
                self[number].after = [None if fields is None else take(fields, part) for fields in later]

    def _dump(self, numbers: Sequence[int]) -> bytes:
        panes = [self[number] for number in numbers]
        columns = [_repeated(numbers, panes), pa.array(np.concatenate([pane.keys for pane in panes]), type=pa.int32())]
        for i, kernel in enumerate(self._kernels):
            columns += kernel.dump(concat([pane.states[i] for pane in panes]))
        return blob.dump(columns)

    def _dump_after(self, numbers: Sequence[int]) -> bytes:
        panes = [self[number] for number in numbers]
        columns = [_repeated(numbers, panes)]
        for i, kernel in enumerate(self._kernels):
            later = [pane.after[i] for pane in panes if pane.after]
            columns += kernel.dump(concat([fields for fields in later if fields])) if not kernel.inverts else []
        return blob.dump(columns)


def _repeated(numbers: Sequence[int], panes: Sequence[Pane]) -> pa.Array:
    """The number of each pane, once for each of its keys."""
    return pa.array(np.repeat(np.array(numbers, dtype=np.int64), [len(pane.keys) for pane in panes]))


def _parts(numbers: pa.Array) -> list[tuple[int, slice]]:
    """Where each pane is in the columns of a page."""
    each = np.asarray(numbers)
    if not len(each):
        return []
    bounds = np.flatnonzero(np.diff(each, prepend=each[0] - 1, append=each[-1] + 1))
    return [(int(each[start]), slice(start, stop)) for start, stop in itertools.pairwise(bounds)]
