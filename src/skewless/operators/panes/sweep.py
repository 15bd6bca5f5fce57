"""The aggregate of a window that slides over panes: each pane enters once and leaves once.

What inverts exactly is subtracted when it leaves. The rest uses two stacks, for all keys at once, as they slide
together: `back` joins the panes that entered since the stacks were turned; `front` holds, for each key, the join of
the panes before that. Turning walks the panes of the window from the newest to the oldest and leaves in each, for its
own keys, the join of what comes after it, so that a pane that leaves only has to put that in front. Every pane is
touched three times, whatever the number of panes in a window, and nothing is ever subtracted from a rounded sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from skewless.aggregate.kernel import Fields, Kernel, put, take
from skewless.core.arrays import Int64Array
from skewless.operators.panes.pane import Pane


class Sweep:
    """The running aggregates of all keys.

    Parameters
    ----------
    kernels
        What to aggregate.
    keys
        How many keys there are.
    """

    def __init__(self, kernels: Sequence[Kernel], keys: int) -> None:
        self.kernels = kernels
        self.panes = np.zeros(keys, dtype=np.int32)
        """In how many panes of the window each key has rows."""
        self.front: list[Fields | None] = [None if kernel.inverts else kernel.empty(keys) for kernel in kernels]
        self.back: list[Fields] = [kernel.empty(keys) for kernel in kernels]
        self.turned: int | None = None
        """Panes before this one are in front; None while the front is empty."""

    def __len__(self) -> int:
        return len(self.panes)

    @property
    def holds(self) -> bool:
        """Whether a pane is in the window."""
        return bool(self.panes.any())

    def grow(self, keys: int) -> None:
        """Make room for more keys."""
        more = keys - len(self)
        if more <= 0:
            return
        self.panes = np.concatenate([self.panes, np.zeros(more, dtype=np.int32)])
        self.front = [
            None if fields is None else _longer(kernel, fields, more)
            for kernel, fields in zip(self.kernels, self.front, strict=True)
        ]
        self.back = [_longer(kernel, fields, more) for kernel, fields in zip(self.kernels, self.back, strict=True)]

    def enter(self, pane: Pane) -> None:
        """The window now reaches over this pane, newer than all it held."""
        self.panes[pane.keys] += 1
        for kernel, back, states in zip(self.kernels, self.back, pane.states, strict=True):
            put(back, pane.keys, kernel.join(take(back, pane.keys), states))

    def leave(self, number: int, pane: Pane, window: Iterable[tuple[int, Pane]]) -> bool:
        """The window no longer holds this pane, its oldest; true if the stacks were turned, which changes panes.

        `window` has all panes of the window with their numbers, from the newest to the oldest, this one included; it is
        read only for turning.
        """
        turns = (self.turned is None or number >= self.turned) and not all(kernel.inverts for kernel in self.kernels)
        if turns:
            self._turn(window)
        self.panes[pane.keys] -= 1
        after = pane.after or [None] * len(self.kernels)
        for i, (kernel, states, later) in enumerate(zip(self.kernels, pane.states, after, strict=True)):
            front = self.front[i]
            if front is None:
                back = self.back[i]
                put(back, pane.keys, kernel.leave(take(back, pane.keys), states))
            else:
                assert later is not None  # turning saw to it
                put(front, pane.keys, later)
        return turns

    def totals(self, keys: Int64Array) -> list[tuple[Fields, Fields | None]]:
        """For each kernel what to join to have the aggregates of these keys."""
        return [
            (take(back, keys), None if front is None else take(front, keys))
            for front, back in zip(self.front, self.back, strict=True)
        ]

    def _turn(self, newest_first: Iterable[tuple[int, Pane]]) -> None:
        fresh = [None if kernel.inverts else kernel.empty(len(self)) for kernel in self.kernels]
        self.turned = None
        for number, pane in newest_first:
            self.turned = number + 1 if self.turned is None else self.turned
            pane.after = []
            for kernel, fields, states in zip(self.kernels, fresh, pane.states, strict=True):
                if fields is None:
                    pane.after.append(None)
                else:
                    later = take(fields, pane.keys)
                    pane.after.append(later)
                    put(fields, pane.keys, kernel.join(later, states))
        self.front = fresh
        self.back = [
            kernel.empty(len(self)) if front is not None else back
            for kernel, front, back in zip(self.kernels, fresh, self.back, strict=True)
        ]


def _longer(kernel: Kernel, fields: Fields, more: int) -> Fields:
    return tuple(np.concatenate([have, extra]) for have, extra in zip(fields, kernel.empty(more), strict=True))
