"""VOTE and GREEDY of the script on clustering, against the same step by step in plain Python with exact fractions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.workload import Names
from support.scripts import load

Clustering = set[frozenset[int]]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load("clustering")


@cache
def distance(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    replaced = distance(a[1:], b[1:]) + (a[0] != b[0])
    return min(replaced, distance(a[1:], b) + 1, distance(a, b[1:]) + 1)


class Plain:
    """Clusters as sets of items, and the steps of both algorithms as loops over them.

    Of several that are equally good, the cluster of the lowest number and the first item are taken.
    """

    def __init__(self, votes: Any) -> None:
        self.votes = [[Fraction(float(vote)) for vote in row] for row in votes]
        self.clusters: dict[int, set[int]] = {}

    def between(self, some: set[int], others: set[int]) -> Fraction:
        return sum((self.votes[a][b] for a in some for b in others if a != b), Fraction(0))

    def objective(self, clustering: Clustering) -> Fraction:
        return sum((self.between(set(some), set(some)) / 2 for some in clustering), Fraction(0))

    def found(self) -> Clustering:
        return {frozenset(members) for members in self.clusters.values()}

    def vote(self) -> None:
        for item in range(len(self.votes)):
            given = {number: self.between({item}, members) for number, members in self.clusters.items()}
            best = max(sorted(given), key=given.__getitem__, default=-1)
            if best < 0 or given[best] <= 0:
                best = len(self.clusters)
            self.clusters.setdefault(best, set()).add(item)

    def greedy(self, labels: list[int]) -> Iterator[tuple[str, Clustering]]:
        """What each step does, and the clustering after it."""
        self.clusters = {number: {i for i, at in enumerate(labels) if at == number} for number in set(labels)}
        queue = sorted(self.clusters)
        while queue:
            number = queue.pop(0)
            if number not in self.clusters:
                continue
            done = self.merge(number) or self.split(number) or self.move(number)
            if done:
                kind, changed = done
                queue += [each for each in changed if each not in queue]
                yield kind, self.found()

    def merge(self, number: int) -> tuple[str, tuple[int, ...]] | None:
        others = sorted(set(self.clusters) - {number})
        gains = {other: self.between(self.clusters[number], self.clusters[other]) for other in others}
        best = max(others, key=gains.__getitem__, default=number)
        if best == number or gains[best] <= 0:
            return None
        self.clusters[number] |= self.clusters.pop(best)
        return "merge", (number,)

    def split(self, number: int) -> tuple[str, tuple[int, ...]] | None:
        stay = self.clusters[number]
        worst = min(sorted(stay), key=lambda item: self.between({item}, stay))
        if self.between({worst}, stay) >= 0:
            return None
        left = {worst}
        stay = stay - left
        while True:
            gains = {item: self.between({item}, left) - self.between({item}, stay) for item in sorted(stay)}
            best = max(gains, key=gains.__getitem__)
            if gains[best] <= 0:
                break
            left, stay = left | {best}, stay - {best}
        new = min(set(range(len(self.votes))) - set(self.clusters))
        self.clusters[number], self.clusters[new] = stay, left
        return "split", (number, new)

    def move(self, number: int) -> tuple[str, tuple[int, ...]] | None:
        of = {item: at for at, members in self.clusters.items() for item in members}
        best, most = None, Fraction(0)
        for item, to in itertools.product(range(len(self.votes)), sorted(self.clusters)):
            if of[item] != to and number in (of[item], to):
                gain = self.between({item}, self.clusters[to]) - self.between({item}, self.clusters[of[item]])
                if gain > most:
                    best, most = (item, to), gain
        if best is None:
            return None
        item, to = best
        self.clusters[of[item]].remove(item)
        self.clusters[to].add(item)
        return "move", (of[item], to)


def clustering(labels: Any) -> Clustering:
    return {frozenset(np.flatnonzero(labels == number).tolist()) for number in set(labels.tolist())}


def steps_of(example: ModuleType, votes: Any, labels: Any) -> list[Clustering]:
    """The clusterings that GREEDY goes through."""
    seen = []

    def noted(*given: Any) -> tuple[int, ...]:
        changed: tuple[int, ...] = improve(*given)
        if changed:
            seen.append(clustering(labels))
        return changed

    improve = example.improve
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(example, "improve", noted)
        example.greedy(votes, labels)
    return seen


@st.composite
def matrices(draw: st.DrawFn) -> Any:
    """Symmetric votes in quarters, so that many sums are equal or 0, with any clusters to start from."""
    n = draw(st.integers(1, 7))
    upper = np.zeros((n, n))
    upper[np.triu_indices(n, 1)] = draw(
        st.lists(st.integers(-4, 4), min_size=n * (n - 1) // 2, max_size=n * (n - 1) // 2)
    )
    labels = draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    return (upper + upper.T) / 4, np.array(labels)


@given(st.lists(st.text("abcé", max_size=6), min_size=1, max_size=8))
def test_a_vote_is_twice_the_similarity_minus_one(example: ModuleType, names: list[str]) -> None:
    votes = example.all_votes(names)
    for (i, a), (j, b) in itertools.product(enumerate(names), repeat=2):
        similarity = 1 - distance(a, b) / max(len(a), len(b), 1)
        assert votes[i, j] == pytest.approx(2 * similarity - 1 if i != j else 0, abs=2**-32)
        assert votes[i, j] * 2**32 == round(votes[i, j] * 2**32)  # so that sums are exact


@given(matrices())
def test_an_item_joins_the_cluster_with_the_most_votes_or_opens_one(example: ModuleType, made: Any) -> None:
    votes, _labels = made
    plain = Plain(votes)
    plain.vote()
    assert clustering(example.vote(votes)) == plain.found()


@given(matrices())
def test_greedy_takes_the_same_steps_and_each_gains(example: ModuleType, made: Any) -> None:
    votes, labels = made
    plain = Plain(votes)
    expected = [found for _kind, found in plain.greedy(labels.tolist())]
    values = [plain.objective(found) for found in [clustering(labels), *expected]]
    assert all(after > before for before, after in itertools.pairwise(values))
    assert steps_of(example, votes, labels) == expected
    assert plain.objective(clustering(labels)) == values[-1]


@given(matrices())
def test_nothing_is_left_to_merge_to_split_off_or_to_move(example: ModuleType, made: Any) -> None:
    votes, labels = made
    plain = Plain(votes)
    example.greedy(votes, labels)
    best = plain.objective(clustering(labels))
    for a, b in itertools.permutations(range(len(labels)), 2):  # numbers of clusters, some of them of none
        assert plain.objective(clustering(np.where(labels == a, b, labels))) <= best
    for item, to in itertools.product(range(len(labels)), repeat=2):
        changed = labels.copy()
        changed[item] = to  # with another cluster, or alone
        assert plain.objective(clustering(changed)) <= best


def test_all_three_kinds_of_steps_are_taken(example: ModuleType) -> None:
    # 0 and 1 belong together, and so do 2, 3 and 4; 4 is for 1 as much as it is against 0.
    votes = np.full((5, 5), -1.0)
    for a, b, vote in [(0, 1, 1.0), (2, 3, 1.0), (2, 4, 1.0), (3, 4, 1.0), (1, 4, 1.0)]:
        votes[a, b] = votes[b, a] = vote
    np.fill_diagonal(votes, 0)
    kinds = set()
    for labels in ([0, 1, 2, 3, 4], [0, 0, 0, 0, 0], [0, 0, 1, 1, 0]):
        plain, found = Plain(votes), np.array(labels)
        expected = list(plain.greedy(labels))
        kinds |= {kind for kind, _clustering in expected}
        assert steps_of(example, votes, found) == [after for _kind, after in expected]
        assert clustering(found) == {frozenset({0, 1}), frozenset({2, 3, 4})}
    assert kinds == {"merge", "split", "move"}


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_names_with_typos_are_clustered_alike_in_one_part_and_in_several(example: ModuleType, parts: int) -> None:
    names, keys = Names(people=5, typos=2, seed=4), np.zeros(120, dtype=np.int64)
    rows = [pa.array(np.arange(120)), pa.array(names.texts(keys))]
    kernel = example.Clusters("voter", "name").bind([pa.int64(), pa.string()])
    state = kernel.empty(1)
    for part in range(parts):
        some = pa.array(np.arange(120) % parts == part)
        columns = [column.filter(some) for column in rows]
        state = kernel.join(kernel.partial(keys[: len(columns[0])], 1, columns), state)
    (found,) = kernel.finish(state).to_pylist()
    assert {frozenset(record["voter"] for record in cluster) for cluster in found} == clustering(names.persons(keys))
