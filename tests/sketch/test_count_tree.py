from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.sketch.count_tree import LEFT, PRIORITY, RIGHT, TOP, CountTree

unhurried = settings(deadline=None)  # the first example may compile the kernels


def ranked(tree: CountTree) -> list[tuple[int, int]]:
    order = tree.walk()
    return list(zip(tree.keys(order).tolist(), tree.counts(order).tolist(), strict=True))


def in_order(counts: dict[int, int]) -> list[tuple[int, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def depth(tree: CountTree) -> int:
    """Levels of the tree; fails if a node is below one of lower priority."""
    deepest, level = 0, [int(tree.nodes[TOP, RIGHT])]
    while level := [node for node in level if node != TOP]:
        deepest += 1
        below = [(node, int(tree.nodes[node, side])) for node in level for side in (LEFT, RIGHT)]
        assert all(tree.nodes[a, PRIORITY] >= tree.nodes[b, PRIORITY] for a, b in below if b != TOP)
        level = [b for _, b in below]
    return deepest


@unhurried
@given(
    st.dictionaries(st.integers(-50, 50), st.integers(0, 9), max_size=60),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 12)), max_size=80),
)
def test_the_walk_is_sorted_after_any_inserts_and_updates(
    counts: dict[int, int], changes: list[tuple[int, int]]
) -> None:
    tree = CountTree()
    nodes = tree.insert(np.array(list(counts), np.int64), np.array(list(counts.values()), np.int64))
    assert ranked(tree) == in_order(counts)
    keys = list(counts)
    for pick, count in changes if keys else []:
        which = pick % len(keys)
        counts[keys[which]] = count
        tree.update(nodes[which : which + 1], np.array([count]))
        assert ranked(tree) == in_order(counts)
    depth(tree)


@pytest.mark.parametrize("direction", [1, -1])
def test_counts_that_come_sorted_do_not_make_a_long_chain(direction: int) -> None:
    tree = CountTree()
    size = 20_000
    nodes = tree.insert(np.arange(size), direction * np.arange(size))
    assert depth(tree) < 4 * np.log2(size)
    tree.update(nodes, -direction * np.arange(size))
    assert depth(tree) < 4 * np.log2(size)
    assert [key for key, _ in ranked(tree)] == list(range(size))[::direction]


def test_a_node_keeps_its_number_while_the_tree_grows() -> None:
    tree = CountTree()
    first = tree.insert(np.array([7]), np.array([1]))
    tree.insert(np.arange(100, 200), np.arange(100))
    tree.update(first, np.array([1_000]))
    assert ranked(tree)[0] == (7, 1_000)
    assert len(tree) == 101


def test_a_cleared_tree_is_empty_and_usable() -> None:
    tree = CountTree()
    tree.insert(np.arange(40), np.arange(40))
    tree.clear()
    assert ranked(tree) == []
    tree.insert(np.array([3, 4]), np.array([1, 2]))
    assert ranked(tree) == [(4, 2), (3, 1)]


@pytest.mark.parametrize("node", [0, -1, 3])
def test_a_stranger_is_not_updated(node: int) -> None:
    tree = CountTree()
    tree.insert(np.array([3, 4]), np.array([1, 2]))
    with pytest.raises(SkewlessError, match="tree of 2"):
        tree.update(np.array([node]), np.array([5]))


@pytest.mark.parametrize("size", [1, 14, 15, 16, 17, 31, 32, 100])
def test_there_is_a_row_for_every_node_and_one_above_the_root(size: int) -> None:
    tree = CountTree()
    for piece in np.array_split(np.arange(size), 3):
        tree.insert(piece, piece)
        assert len(tree) < len(tree.nodes)
    assert [key for key, _ in ranked(tree)] == list(range(size))[::-1]


def test_every_node_needs_its_count() -> None:
    tree = CountTree()
    with pytest.raises(SkewlessError, match="1 counts for 2 nodes"):
        tree.insert(np.array([3, 4]), np.array([1]))
    nodes = tree.insert(np.array([3, 4]), np.array([1, 2]))
    with pytest.raises(SkewlessError, match="3 counts for 2 nodes"):
        tree.update(nodes, np.array([1, 2, 3]))
