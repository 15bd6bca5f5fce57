"""A balanced search tree of keys by count: Prompt's CountTree."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.kernel import inner, kernel, lean_kernel
from skewless.sketch.keys import key_hash

KEY, COUNT, PRIORITY, LEFT, RIGHT = 0, 1, 2, 3, 4
TOP = 0  # row 0 is above the root: its RIGHT is the root, its COUNT the number of nodes in use
SMALLEST = 16


class CountTree:
    """Keeps keys in order of their counts, most frequent first, while the counts change.

    It is a treap: a search tree by (count descending, key ascending) that is at the same time a heap by a hash of the
    node. So it has the shape of a tree built in random order, of expected depth O(log K) whatever the order of arrival.
    A node never moves in memory, so a number is a lasting pointer to it. A count changes by removal and insertion,
    O(log K) each.

    Examples
    --------
    >>> tree = CountTree()
    >>> nodes = tree.insert(np.array([10, 20, 30]), np.array([1, 5, 3]))
    >>> tree.update(nodes[:1], np.array([4]))
    >>> order = tree.walk()
    >>> tree.keys(order).tolist(), tree.counts(order).tolist()
    ([20, 10, 30], [5, 4, 3])

    References
    ----------
    A. S. Abdelhamid, A. R. Mahmood, A. Daghistani, W. G. Aref. Prompt: Dynamic Data-Partitioning for Distributed
    Micro-batch Stream Processing Systems. SIGMOD 2020.
    R. Seidel, C. R. Aragon. Randomized Search Trees. Algorithmica 16, 1996.
    """

    def __init__(self) -> None:
        """See the class."""
        self.nodes: Int64Array = np.zeros((SMALLEST, 5), np.int64)

    def __len__(self) -> int:
        """Keys in the tree."""
        return int(self.nodes[TOP, COUNT])

    def insert(self, keys: Int64Array, counts: Int64Array) -> Int64Array:
        """Insert new keys with their counts, and return their nodes."""
        _check_lengths(keys, counts)
        first = len(self) + 1
        keys, counts = np.ascontiguousarray(keys, np.int64), np.ascontiguousarray(counts, np.int64)
        while first + len(keys) > len(self.nodes):
            self.grow()
        _insert_all(keys, counts, self.nodes)
        return np.arange(first, len(self) + 1, dtype=np.int64)

    def update(self, nodes: Int64Array, counts: Int64Array) -> None:
        """Change the counts of nodes."""
        _check_lengths(nodes, counts)
        if len(nodes) and not (nodes.min() > TOP and nodes.max() <= len(self)):
            raise SkewlessError(f"nodes {nodes} are not all in this tree of {len(self)}: pass what insert returned")
        _update_all(np.ascontiguousarray(nodes, np.int64), np.ascontiguousarray(counts, np.int64), self.nodes)

    def walk(self) -> Int64Array:
        """All nodes in order, highest count first."""
        return _walk(self.nodes)

    def keys(self, nodes: Int64Array) -> Int64Array:
        """The keys of these nodes."""
        return self.nodes[:, KEY][nodes]

    def counts(self, nodes: Int64Array) -> Int64Array:
        """The counts of these nodes."""
        return self.nodes[:, COUNT][nodes]

    def grow(self) -> None:
        """Make room for twice as many nodes."""
        self.nodes = np.concatenate((self.nodes, np.empty_like(self.nodes)))

    def clear(self) -> None:
        """Forget all keys and keep the memory."""
        self.nodes[TOP] = 0


def _check_lengths(nodes: Int64Array, counts: Int64Array) -> None:
    if len(nodes) != len(counts):
        raise SkewlessError(f"{len(counts)} counts for {len(nodes)} nodes: give one count for each")


@inner
def _before(nodes: Int64Array, a: int, b: int) -> bool:
    if nodes[a, COUNT] != nodes[b, COUNT]:
        return bool(nodes[a, COUNT] > nodes[b, COUNT])
    return bool(nodes[a, KEY] < nodes[b, KEY])


@lean_kernel
def _attach(nodes: Int64Array, node: int) -> None:
    """Insert `node` at the height of its priority, and divide the subtree that was there between its two sides."""
    above, side = TOP, RIGHT
    at = nodes[above, side]
    while at != TOP and nodes[at, PRIORITY] > nodes[node, PRIORITY]:
        above, side = at, LEFT if _before(nodes, node, at) else RIGHT
        at = nodes[above, side]
    nodes[above, side] = node
    left, left_side, right, right_side = node, LEFT, node, RIGHT
    while at != TOP:
        if _before(nodes, at, node):
            nodes[left, left_side] = at
            left, left_side = at, RIGHT
            at = nodes[at, RIGHT]
        else:
            nodes[right, right_side] = at
            right, right_side = at, LEFT
            at = nodes[at, LEFT]
    nodes[left, left_side] = TOP
    nodes[right, right_side] = TOP


@lean_kernel
def _detach(nodes: Int64Array, node: int) -> None:
    """Remove `node`, and merge its two sides in its place."""
    above, side = TOP, RIGHT
    while nodes[above, side] != node:
        above = nodes[above, side]
        side = LEFT if _before(nodes, node, above) else RIGHT
    left, right = nodes[node, LEFT], nodes[node, RIGHT]
    while left != TOP and right != TOP:
        if nodes[left, PRIORITY] > nodes[right, PRIORITY]:
            nodes[above, side] = left
            above, side = left, RIGHT
            left = nodes[left, RIGHT]
        else:
            nodes[above, side] = right
            above, side = right, LEFT
            right = nodes[right, LEFT]
    nodes[above, side] = left if right == TOP else right


@lean_kernel
def insert(nodes: Int64Array, key: int, count: int) -> int:
    """Insert a new key and return its node; check `full` before."""
    node = nodes[TOP, COUNT] + 1
    nodes[TOP, COUNT] = node
    nodes[node, KEY] = key
    nodes[node, COUNT] = count
    nodes[node, PRIORITY] = key_hash(node)
    _attach(nodes, node)
    return int(node)


@inner
def full(nodes: Int64Array) -> bool:
    """Whether the next new key needs a larger array."""
    return bool(nodes[TOP, COUNT] + 1 == len(nodes))


@lean_kernel
def update(nodes: Int64Array, node: int, count: int) -> None:
    """Change the count of one node."""
    _detach(nodes, node)
    nodes[node, COUNT] = count
    _attach(nodes, node)


@kernel
def _walk(nodes: Int64Array) -> Int64Array:
    order = np.empty(nodes[TOP, COUNT], np.int64)
    waiting = np.empty(nodes[TOP, COUNT], np.int64)
    depth = 0
    at = nodes[TOP, RIGHT]
    for rank in range(len(order)):
        while at != TOP:
            waiting[depth] = at
            depth += 1
            at = nodes[at, LEFT]
        depth -= 1
        order[rank] = waiting[depth]
        at = nodes[order[rank], RIGHT]
    return order


@lean_kernel
def _insert_all(keys: Int64Array, counts: Int64Array, nodes: Int64Array) -> None:
    for i in range(len(keys)):
        insert(nodes, keys[i], counts[i])


@lean_kernel
def _update_all(which: Int64Array, counts: Int64Array, nodes: Int64Array) -> None:
    for i in range(len(which)):
        update(nodes, which[i], counts[i])
