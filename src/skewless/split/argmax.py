"""A table of values that always knows the largest of each row.

Each row is a tournament tree in one array: leaf `leaves + a` holds the value of arm a, node i the larger of nodes 2i
and 2i + 1, so node 1 is the winner. A change climbs one path, log2(n) nodes, without a branch to mispredict: value and
arm are one integer. The high bits are those of the value as a double, made positive so that they sort as integers; the
low bits are the arm, counted down, so that of equal values the lowest arm wins.
"""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Float, FloatArray, Int, Int64Array
from skewless.core.kernel import inner

ARM_BITS = 16  # the values keep 36 bits of their mantissa: about 1e-10
ARM_MASK = (1 << ARM_BITS) - 1
SHIFT = 4.0  # added to a value; every value must lie in (-4, 4)


def new_tree(rows: int, arms: int) -> Int64Array:
    """A tree for each of `rows` rows."""
    return np.zeros((rows, 2 * leaves_for(arms)), dtype=np.int64)


def leaves_for(arms: int) -> int:
    """Leaves of a tree with this many arms: a power of two, at least 2."""
    return max(2, 1 << (arms - 1).bit_length())


def tree_values(tree: Int64Array, row: int, arms: int) -> FloatArray:
    """The values of all arms of a row."""
    leaves = tree.shape[1] >> 1
    values: FloatArray = (tree[row, leaves : leaves + arms] & ~ARM_MASK).view(np.float64) - SHIFT
    return values


@inner
def _packed(value: Float, arm: Int) -> Int:
    return (np.float64(value + SHIFT).view(np.int64) & ~ARM_MASK) | (ARM_MASK - arm)


@inner
def tree_fill(tree: Int64Array, row: Int, arms: Int, value: Float) -> None:
    """Give every arm of `row` the same value."""
    leaves = tree.shape[1] >> 1
    for arm in range(leaves):
        tree[row, leaves + arm] = _packed(value, arm) if arm < arms else 0
    settle(tree, row)


@inner
def tree_get(tree: Int64Array, row: Int, arm: Int) -> Float:
    """The value of an arm."""
    return np.int64(tree[row, (tree.shape[1] >> 1) + arm] & ~ARM_MASK).view(np.float64) - SHIFT


@inner
def tree_best(tree: Int64Array, row: Int) -> Int:
    """The arm of `row` with the largest value; among equal values, the lowest arm."""
    return ARM_MASK - (tree[row, 1] & ARM_MASK)


@inner
def tree_set(tree: Int64Array, row: Int, arm: Int, value: Float) -> None:
    """Change the value of an arm."""
    climb(tree, row, (tree.shape[1] >> 1) + arm, _packed(value, arm))


@inner
def settle(tree: Int64Array, row: Int) -> None:
    """Make every node above the leaves of `row` the larger of its two children."""
    for node in range((tree.shape[1] >> 1) - 1, 0, -1):
        tree[row, node] = max(tree[row, 2 * node], tree[row, 2 * node + 1])


@inner
def climb(tree: Int64Array, row: Int, node: Int, packed: Int) -> None:
    """Change a leaf, and the nodes above it."""
    tree[row, node] = packed
    while node > 1:
        packed = max(packed, tree[row, node ^ 1])
        node >>= 1
        tree[row, node] = packed
