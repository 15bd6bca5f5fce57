"""Correlation clustering: which records of voters are of the same person, in windows of 60 s that slide by 20 s.

People write their names with typos. Two names vote for each other by how similar they are, sim = 1 - edit distance /
length of the longer one: the vote is 2 sim - 1, from -1 to 1. A clustering is good if the votes inside its clusters sum
up to much; how many clusters there are is not given. As in Dalton's evaluation, those who combine rows run VOTE, which
compares all pairs, and those who merge what they found run GREEDY. One county has more than a third of all records, so
`bounded` shares it among several workers, and each of them has fewer pairs to compare.

Both are heuristics: which worker had which records can make a difference where names are hard to tell apart. Here
almost all are easy. The script prints what ran, how many people were found, and the records of some.

    python examples/clustering.py

References
----------
M. Elsner, W. Schudy: Bounding and comparing methods for correlation clustering beyond ILP. ILP-NLP 2009 (VOTE).
A. Gruenheid, X. L. Dong, D. Srivastava: Incremental record linkage. PVLDB 7(9), 2014 (GREEDY).
E. Zapridou, I. Mytilinis, A. Ailamaki: Dalton: learned partitioning for distributed data streams. PVLDB 16(3), 2022, 5.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from micro_batches import stream, write
from pyspark.sql import DataFrame

import skewless as sk
from skewless.workload import Names, zipf_with_top

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
VOTERS = "county string, ts timestamp, voter long, name string"
TOP = 0.3845  # the largest share of a post code among Dalton's voters
CLUSTERS = pa.list_(pa.list_(pa.struct([("name", pa.string()), ("voter", pa.int64())])))
GRAIN = 2.0**-32  # votes are multiples of this, so that their sums are exact in whatever order they are added

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Record = tuple[str, int]
Voter = tuple[str, datetime, int, str]


def all_votes(names: Sequence[str]) -> Floats:
    """The vote of every pair of names: 1 where they are equal, -1 where no letter is, and 0 for an item and itself."""
    distinct, which = np.unique(names, return_inverse=True)
    lengths = np.char.str_len(distinct)
    longer = np.maximum(np.maximum.outer(lengths, lengths), 1)
    votes = 1 - 2 * edit_distances(distinct, lengths) / longer
    votes = (np.rint(votes / GRAIN) * GRAIN)[np.ix_(which, which)]
    np.fill_diagonal(votes, 0)
    return votes


def edit_distances(names: npt.NDArray[np.str_], lengths: Labels) -> Labels:
    """The edit distances of all pairs: the usual table of two names, filled for all pairs at once."""
    n, longest = len(names), int(lengths.max())
    letters = names.view(np.uint32).reshape(n, -1)
    found = np.tile(lengths, (n, 1))  # from an empty name
    above = [np.full((n, n), j, np.int16) for j in range(longest + 1)]
    for i in range(1, longest + 1):
        row = [np.full((n, n), i, np.int16)]
        for j in range(1, longest + 1):
            replaced = above[j - 1] + (letters[:, None, i - 1] != letters[None, :, j - 1])
            row.append(np.minimum(np.minimum(above[j], row[j - 1]) + 1, replaced))
        (whole,) = np.nonzero(lengths == i)
        found[whole] = np.stack(row)[lengths[None, :], whole[:, None], np.arange(n)[None, :]]
        above = row
    return found


def vote(votes: Floats) -> Labels:
    """VOTE: the number of each item's cluster.

    Items come one after the other, and each joins the cluster whose members give it the most votes. If none gives it
    more than 0, it opens a cluster.
    """
    labels, clusters = np.zeros(len(votes), dtype=np.int64), 1
    for item in range(1, len(votes)):
        given = np.bincount(labels[:item], votes[item, :item], minlength=clusters)
        best = int(given.argmax())
        labels[item] = best if given[best] > 0 else clusters
        clusters = max(clusters, int(labels[item]) + 1)
    return labels


def greedy(votes: Floats, labels: Labels) -> None:
    """GREEDY: change the clusters as long as the votes inside them sum up to more.

    Clusters wait in a queue. Those that a step changed go to its end. Each step gains votes, so the queue is empty some
    time, and then no cluster can be merged with another one, no item put alone, and none moved, with a gain.
    """
    queue = deque(np.unique(labels).tolist())
    while queue:
        changed = improve(votes, labels, queue.popleft())
        queue.extend(cluster for cluster in changed if cluster not in queue)


def improve(votes: Floats, labels: Labels, cluster: int) -> tuple[int, ...]:
    """Merge a cluster, or else split it, or else move an item; the clusters that changed, none if nothing gains."""
    if cluster not in labels:  # it was merged into another one
        return ()
    for step in (merge_clusters, split_cluster, move_item):
        changed = step(votes, labels, cluster)
        if changed:
            return changed
    return ()


def merge_clusters(votes: Floats, labels: Labels, cluster: int) -> tuple[int, ...]:
    """Merge it with the cluster that it has the most votes with, if there are more for it than against it."""
    between = np.bincount(labels, votes[labels == cluster].sum(axis=0))
    between[cluster] = 0
    best = int(between.argmax())
    if between[best] <= 0:
        return ()
    labels[labels == best] = cluster
    return (cluster,)


def split_cluster(votes: Floats, labels: Labels, cluster: int) -> tuple[int, ...]:
    """Take out the item that has the most votes against it, and then those who would rather be with what left."""
    (members,) = np.nonzero(labels == cluster)
    inside = votes[np.ix_(members, members)]
    given = inside.sum(axis=1)
    if given.min() >= 0:
        return ()
    left = np.zeros(len(members), dtype=bool)
    left[given.argmin()] = True
    while True:
        gain = np.where(left, 0, inside @ left - inside @ ~left)
        if gain.max() <= 0:
            break
        left[gain.argmax()] = True
    new = int(np.bincount(labels, minlength=len(labels)).argmin())  # a number that no cluster has
    labels[members[left]] = new
    return cluster, new


def move_item(votes: Floats, labels: Labels, cluster: int) -> tuple[int, ...]:
    """Move the one item that gains the most by it, out of the cluster or into it."""
    clusters = np.arange(labels.max() + 1)
    given = votes @ (labels[:, None] == clusters)
    gain = given - given[np.arange(len(labels)), labels][:, None]
    out_or_in = (labels == cluster)[:, None] != (clusters == cluster)
    gain = np.where(out_or_in, gain, 0)
    item, to = divmod(int(gain.argmax()), len(clusters))
    if gain[item, to] <= 0:
        return ()
    came_from, labels[item] = int(labels[item]), to
    return came_from, to


class Clusters(sk.Aggregate):
    """The records of a group as clusters.

    Records and clusters are sorted, so that the order of rows makes no difference. A county whose records of a window
    were all in one state has nothing to merge, and is as VOTE left it.
    """

    def partial(self, table: pa.Table) -> pa.Table:
        """Run VOTE over the rows of each group."""
        voter, name = self.columns

        def voted(rows: list[dict[str, Any]]) -> list[list[Record]]:
            records = sorted((row[name], row[voter]) for row in rows)
            return gathered(records, vote(all_votes([name for name, _voter in records])))

        return each_group(table, voted)

    def merge(self, table: pa.Table) -> pa.Table:
        """Run GREEDY over the clusters of each group's states."""

        def merged(rows: list[dict[str, Any]]) -> list[list[Record]]:
            found = sorted(
                [tuple(record.values()) for record in cluster] for row in rows for cluster in row["clusters"]
            )
            records = [record for cluster in found for record in cluster]
            labels = np.repeat(np.arange(len(found)), [len(cluster) for cluster in found])
            greedy(all_votes([name for name, _voter in records]), labels)
            return gathered(records, labels)

        return each_group(table, merged)

    def finish(self, table: pa.Table) -> pa.Table:
        """The clusters as they are."""
        return table


def each_group(table: pa.Table, function: Callable[[list[dict[str, Any]]], list[list[Record]]]) -> pa.Table:
    """The clusters that a function makes of the rows of each group."""
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        groups.setdefault(row["group"], []).append(row)
    clusters = pa.array([function(rows) for rows in groups.values()], type=CLUSTERS)
    return pa.table({"group": pa.array(groups, type=pa.int64()), "clusters": clusters})


def gathered(records: Iterable[Record], labels: Labels) -> list[list[Record]]:
    """The records of each cluster."""
    clusters: dict[int, list[Record]] = {}
    for record, label in zip(records, labels.tolist(), strict=True):
        clusters.setdefault(label, []).append(record)
    return sorted(map(sorted, clusters.values()))


def people(voters: DataFrame, split: str = "auto", workers: int | None = 4) -> DataFrame:
    """A row for each window and county, with a cluster of records for each person that was found."""
    windows = sk.keyed(voters, "county", workers=workers, split=split, name="voters").window(
        "ts", size="60 seconds", slide="20 seconds", watermark="10 seconds"
    )
    return windows.agg(people=Clusters("voter", "name"))


def make_voters(
    batches: int = 5, rows: int = 150, counties: int = 10, names: Names | None = None
) -> tuple[list[list[Voter]], dict[int, tuple[str, int]]]:
    """Twenty seconds of records for each micro-batch, and the person behind each: a county and a number in it."""
    names = names or Names(people=6, typos=2, seed=7)
    keys = zipf_with_top(TOP, counties, seed=names.seed).take(batches * rows)
    county = [f"county {key}" for key in keys.tolist()]
    made = [(county[i], START + timedelta(seconds=20) * i / rows, i, name) for i, name in enumerate(names.texts(keys))]
    persons = enumerate(zip(county, names.persons(keys).tolist(), strict=True))
    return [made[at : at + rows] for at in range(0, len(made), rows)], dict(persons)


def main() -> None:
    """Make some records, and show who was found in the county with the most of them."""
    spark = sk.session(2, spark_sql_session_timeZone="UTC")
    with tempfile.TemporaryDirectory() as folder:
        batches, persons = make_voters()
        write(f"{folder}/voters", VOTERS, batches)
        query = (
            people(stream(spark, f"{folder}/voters", VOTERS))
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start(f"{folder}/people")
        )
        query.awaitTermination()
        watching = sk.watch(query)
        watching.wait(len(batches))  # until the loop has learned from all of them, which never holds up the query
        print(watching)
        found = spark.read.parquet(f"{folder}/people").orderBy("window", "county").collect()
    spark.stop()
    show_people(found, persons)


def show_people(found: Sequence[Any], persons: dict[int, tuple[str, int]]) -> None:
    """Print how many clusters are exactly the records of one person, and the largest clusters of a county."""
    exact = clusters = 0
    for row in found:
        together: dict[tuple[str, int], set[int]] = {}
        for record in (record for cluster in row["people"] for record in cluster):
            together.setdefault(persons[record["voter"]], set()).add(record["voter"])
        clusters += len(row["people"])
        exact += sum({record["voter"] for record in cluster} in together.values() for cluster in row["people"])
    print(f"{clusters} clusters in {len(found)} windows of a county; {exact} are all records of one person, no other.")
    row = max(found, key=lambda row: sum(map(len, row["people"])))
    print(f"{row['county']}, from {row['window']['start']:%H:%M:%S} to {row['window']['end']:%H:%M:%S}:")
    for cluster in sorted(row["people"], key=len, reverse=True)[:8]:
        spelled = sorted({record["name"] for record in cluster})
        print(f"  {len(cluster):3} records: {', '.join(spelled[:6])}{', ...' if len(spelled) > 6 else ''}")


if __name__ == "__main__":
    main()
