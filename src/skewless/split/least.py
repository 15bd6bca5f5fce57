"""The least loaded of all workers, kept up to date as loads change.

It is a tournament tree, as in `argmax`: leaf `leaves + w` holds the load and the number of worker w in one integer, and
every node above holds the smaller of its two children.
"""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int, Int64Array
from skewless.core.kernel import inner, lean_kernel

WORKER_BITS = 16
WORKER_MASK = (1 << WORKER_BITS) - 1
NOBODY = np.iinfo(np.int64).max


def new_least(loads: Int64Array) -> Int64Array:
    """A tree over these loads."""
    tree = np.empty(2 * max(2, 1 << (len(loads) - 1).bit_length()), dtype=np.int64)
    least_reset(tree, loads)
    return tree


@lean_kernel
def least_reset(tree: Int64Array, loads: Int64Array) -> None:
    """Set the tree to these loads."""
    leaves = tree.shape[0] >> 1
    for worker in range(leaves):
        tree[leaves + worker] = (loads[worker] << WORKER_BITS) | worker if worker < loads.shape[0] else NOBODY
    for node in range(leaves - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])


@inner
def least_loaded(tree: Int64Array) -> Int:
    """The worker with the least load; among equal loads, the one with the lowest number."""
    return tree[1] & WORKER_MASK


@inner
def least_add(tree: Int64Array, worker: Int, weight: Int) -> None:
    """Add to the load of a worker."""
    node = (tree.shape[0] >> 1) + worker
    packed = tree[node] + (weight << WORKER_BITS)
    tree[node] = packed
    while node > 1:
        packed = min(packed, tree[node ^ 1])
        node >>= 1
        tree[node] = packed
