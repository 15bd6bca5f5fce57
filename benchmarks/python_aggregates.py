"""Aggregates as users write them in Python, row by row: what they cost stands for the work of a cluster."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

import pyarrow as pa

import skewless as sk


class Add(sk.Aggregate):
    """Adds up numbers."""

    def partial(self, table: pa.Table) -> pa.Table:
        """Add up the rows of each group, one after the other."""
        totals: dict[int, int] = {}
        for group, value in _pairs(table):
            totals[group] = totals.get(group, 0) + self.number(value)
        return _states(totals)

    def number(self, value: int | str) -> int:
        """What to add for a value."""
        return int(value)

    def merge(self, table: pa.Table) -> pa.Table:
        """Add up the states of each group, one after the other."""
        totals: dict[int, int] = {}
        for group, value in _pairs(table):
            totals[group] = totals.get(group, 0) + value
        return _states(totals)

    def finish(self, table: pa.Table) -> pa.Table:
        """The sum."""
        return table


class Read(Add):
    """Adds up the words of tweets that come as JSON."""

    def number(self, value: int | str) -> int:
        """The number of words of a tweet."""
        return len(json.loads(value)["text"].split())


class Compare(Add):
    """Adds up the edit distances of all pairs of texts of a group, as those who cluster them have to."""

    def partial(self, table: pa.Table) -> pa.Table:
        """Compare every text with every other one of its group."""
        texts = defaultdict(list)
        for group, text in _pairs(table):
            texts[group].append(text)
        return _states({group: sum(edits(*pair) for pair in combinations(each, 2)) for group, each in texts.items()})


def edits(one: str, other: str) -> int:
    """The edit distance of two texts.

    >>> edits("kitten", "sitting")
    3
    """
    above = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, against in enumerate(other, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != against)))
        above = row
    return above[-1]


def _pairs(table: pa.Table) -> Iterable[tuple[int, object]]:
    groups, values = (table.column(i).to_pylist() for i in (0, 1))
    return zip(groups, values, strict=True)


def _states(totals: dict[int, int]) -> pa.Table:
    return pa.table({"group": pa.array(list(totals), pa.int64()), "total": pa.array(list(totals.values()), pa.int64())})
