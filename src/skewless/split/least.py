"""The least loaded of all workers, kept up to date as loads change.

It is a tree of `argmax` with one row, whose arms are the workers and whose values are their loads below zero, as whole
numbers: the largest value is the least load.
"""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int, Int64Array
from skewless.core.kernel import inner, lean_kernel
from skewless.split.argmax import ARM_BITS, ARM_MASK, climb, new_tree, settle, tree_best

NOBODY = np.iinfo(np.int64).min


def new_least(loads: Int64Array) -> Int64Array:
    """A tree over these loads."""
    tree = new_tree(1, len(loads))
    least_reset(tree, loads)
    return tree


@lean_kernel
def least_reset(tree: Int64Array, loads: Int64Array) -> None:
    """Set the tree to these loads."""
    leaves = tree.shape[1] >> 1
    for worker in range(leaves):
        packed = NOBODY if worker >= loads.shape[0] else (-loads[worker] << ARM_BITS) | (ARM_MASK - worker)
        tree[0, leaves + worker] = packed
    settle(tree, 0)


@inner
def least_loaded(tree: Int64Array) -> Int:
    """The worker with the least load; among equal loads, the one with the lowest number."""
    return tree_best(tree, 0)


@inner
def least_add(tree: Int64Array, worker: Int, weight: Int) -> None:
    """Add to the load of a worker."""
    leaf = (tree.shape[1] >> 1) + worker
    climb(tree, 0, leaf, tree[0, leaf] - (weight << ARM_BITS))
