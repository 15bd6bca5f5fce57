"""The scripts under `examples`, against plain Python on the same rows."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import skewless as sk
from skewless.workload import Names
from support.scripts import EXAMPLES, load

SHARED = "micro_batches"


def stream_of(spark: SparkSession, example: ModuleType, schema: str, folder: Path, batches: Sequence[Any]) -> DataFrame:
    """The rows as the script itself would read them."""
    example.write(str(folder), schema, batches)
    stream: DataFrame = example.stream(spark, str(folder), schema)
    return stream


def result_of(spark: SparkSession, result: DataFrame, folder: Path, batches: int) -> list[tuple[Any, ...]]:
    """All rows that a query gives, sorted."""
    query = run(result, folder)
    assert sum(progress["numInputRows"] > 0 for progress in query.recentProgress) == batches
    return rows_in(spark, folder)


def run(result: DataFrame, folder: Path) -> StreamingQuery:
    """A query that has taken all there is."""
    query = (
        result.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    return query


def rows_in(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    """What such a query wrote, sorted."""
    rows = spark.read.parquet(str(folder / "out")).toArrow().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=by_window)


def by_window(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A window that a row starts with, as its start: dictionaries have no order."""
    return (row[0]["start"], *row[1:]) if isinstance(row[0], dict) else row


def by_key(batches: Sequence[Sequence[tuple[Any, ...]]]) -> dict[Any, list[tuple[Any, ...]]]:
    """The rows of each key, in the order of time."""
    keys = defaultdict(list)
    for row in sorted((row for batch in batches for row in batch), key=lambda row: row[1]):
        keys[row[0]].append(row)
    return keys


def test_sessions_are_those_of_the_sorted_clicks(spark: SparkSession, tmp_path: Path) -> None:
    example = load("sessionise")
    batches = example.make_clicks(batches=3, rows=200)
    expected = []
    for user, rows in by_key(batches).items():
        times = [ts for _user, ts in rows]
        starts = [i for i, ts in enumerate(times) if i == 0 or ts - times[i - 1] >= example.GAP]
        for start, stop in zip(starts, [*starts[1:], len(times)], strict=True):
            if user != "nobody":
                expected.append((user, times[start], times[stop - 1], stop - start))
    assert len(expected) > 60
    batches[2].append(("user 0", example.START))  # is late, by hours
    clicks = stream_of(spark, example, example.CLICKS, tmp_path / "in", batches)
    sessions = example.sessions(clicks, str(tmp_path / "query"))
    assert result_of(spark, sessions, tmp_path, 4) == sorted(expected)


def test_a_session_ends_by_the_watermark_alone_or_by_the_next_click(spark: SparkSession, tmp_path: Path) -> None:
    example = load("sessionise")
    at = [example.START + timedelta(minutes=minutes) for minutes in range(300)]
    first = [("ann", at[0]), ("ann", at[40]), ("bob", at[5]), ("eve", at[50])]
    # The watermark is now at minute 40: bob's session is over, and ann's second one is not.
    then = [("ann", at[69]), ("eve", at[80])]
    clicks = stream_of(spark, example, example.CLICKS, tmp_path / "in", [first, then])
    sessions = example.sessions(clicks, str(tmp_path / "query"))
    found = result_of(spark, sessions, tmp_path, 2)
    assert found == [("ann", at[0], at[0], 1), ("bob", at[5], at[5], 1), ("eve", at[50], at[50], 1)]


def test_repeated_rows_are_dropped_for_as_long_as_the_ttl(spark: SparkSession, tmp_path: Path) -> None:
    example = load("deduplicate")
    batches = example.make_payments(batches=4, rows=200)
    expected = []
    for rows in by_key(batches).values():
        for i, row in enumerate(rows):
            if i == 0 or row[1] - rows[i - 1][1] >= example.TTL:
                expected.append(row)
    ids = [row[0] for row in expected]
    assert len(set(ids)) < len(ids) < sum(map(len, batches)) / 2  # some pass again, most do not
    payments = stream_of(spark, example, example.ROWS, tmp_path / "in", batches)
    passed = example.deduplicated(payments, str(tmp_path / "query"))
    assert result_of(spark, passed, tmp_path, 4) == sorted(expected)


def test_anomalies_are_far_from_the_weighed_values_before(spark: SparkSession, tmp_path: Path) -> None:
    example = load("anomalies")
    batches, model = example.make_values(batches=3, rows=300), example.Model()
    expected = []
    for rows in by_key(batches).values():
        values = np.array([value for _sensor, _ts, value in rows])
        for n, row in enumerate(rows):
            # The first value has the weight that all before it would have had.
            weights = model.alpha * (1 - model.alpha) ** np.arange(n - 1.0, -1, -1)
            weights[:1] /= model.alpha
            mean = weights @ values[:n] if n else values[0]
            deviation = np.sqrt(weights @ (values[:n] - mean) ** 2)
            expected.append((*row, mean, n >= model.warm and abs(values[n] - mean) > model.k * deviation))
    values = stream_of(spark, example, example.VALUES, tmp_path / "in", batches)
    marked = example.marked(values, str(tmp_path / "query"))
    found = result_of(spark, marked, tmp_path, 3)
    assert len(found) == len(expected) == 900
    for row, wanted in zip(found, sorted(expected), strict=True):
        assert (*row[:3], row[4]) == (*wanted[:3], wanted[4])
        assert row[3] == pytest.approx(wanted[3], rel=1e-9)
    assert 3 < sum(row[4] for row in found) < 30


def test_auctions_move_and_their_sums_stay_right(spark: SparkSession, tmp_path: Path) -> None:
    example = load("auctions")
    workers = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    batches = example.make_bids(workers, batches=4, rows=4000)
    (tmp_path / "in").mkdir()
    bids = spark.readStream.schema(example.BIDS).parquet(str(tmp_path / "in"))
    totals = example.totals(bids, str(tmp_path / "query"))
    out = totals.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = out.start(str(tmp_path / "out"))
    watching = sk.watch(query)
    versions, imbalances = [], []
    for number, table in enumerate(batches):
        example.write(str(tmp_path / "in"), table, number)
        query.processAllAvailable()
        assert watching.wait(number + 1)
        versions.append(watching.placement.version)
        imbalances.append(watching.imbalance)
    query.stop()
    assert versions == [0, 1, 1, 1]  # announced after the first micro-batch, and in force after the second
    assert min(imbalances[:2]) > 1.4
    assert max(imbalances[2:]) < 1.1
    sums: dict[int, tuple[int, int]] = {}
    expected = []
    for table in batches:
        for auction, price in zip(table["auction"].to_pylist(), table["price"].to_pylist(), strict=True):
            count, total = sums.get(auction, (0, 0))
            sums[auction] = count + 1, total + price
        expected += [(auction, *sums[auction]) for auction in set(table["auction"].to_pylist())]
    found = spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == sorted(expected)


def windows_of(ts: datetime, start: datetime, size: timedelta, slide: timedelta) -> list[datetime]:
    """The starts of the windows that hold a time; `start` is one of them, or the start of any other window."""
    last = start + (ts - start) // slide * slide
    return [last - i * slide for i in range(size // slide)]


def closed(rows: Sequence[tuple[Any, ...]], watermark: timedelta, size: timedelta, start: datetime) -> bool:
    """Whether the watermark that follows from all rows has reached the end of a window."""
    return start + size <= max(row[1] for row in rows) - watermark


def test_views_are_those_of_every_closed_window(spark: SparkSession, tmp_path: Path) -> None:
    example = load("page_views")
    batches = example.make_clicks(batches=4, rows=200)
    rows = [row for batch in batches for row in batch]
    size, slide, watermark = timedelta(minutes=10), timedelta(minutes=1), timedelta(minutes=2)
    times = defaultdict(list)
    for page, ts, milliseconds in rows:
        for start in windows_of(ts, example.START, size, slide):
            times[start, page].append(milliseconds)
    assert 50 < max(map(len, times.values())) <= 200  # skewed, and the quantile of up to 200 values is exact
    expected = [
        (
            {"start": start, "end": start + size},
            page,
            len(taken),
            max(taken),
            sorted(taken)[math.ceil(0.95 * len(taken)) - 1],
        )
        for (start, page), taken in times.items()
        if closed(rows, watermark, size, start)
    ]
    assert 50 < len(expected) < len(times)
    views = example.views(stream_of(spark, example, example.CLICKS, tmp_path / "in", batches))
    found = result_of(spark, views, tmp_path, 4)
    assert found == sorted(expected, key=by_window)


@pytest.mark.parametrize("split", ["bounded", "auto"])
def test_words_are_counted_in_every_closed_window(spark: SparkSession, tmp_path: Path, split: str) -> None:
    example = load("word_count")
    batches = example.make_tweets(batches=3, rows=40, words=30)
    rows = [row for batch in batches for row in batch]
    size, slide, watermark = timedelta(seconds=60), timedelta(seconds=1), timedelta(seconds=5)
    words: dict[datetime, Counter[str]] = defaultdict(Counter)
    for text, ts in rows:
        for start in windows_of(ts, example.START, size, slide):
            words[start].update(text.split())
    expected = [
        ({"start": start, "end": start + size}, word, n)
        for start, counter in words.items()
        if closed(rows, watermark, size, start)
        for word, n in counter.items()
    ]
    assert len({row[0]["start"] for row in expected}) > 60
    assert max(n for _window, _word, n in expected) > 60
    counts = example.counts(stream_of(spark, example, example.TWEETS, tmp_path / "in", batches), split)
    assert result_of(spark, counts, tmp_path, 3) == sorted(expected, key=by_window)


def people_in_windows(example: ModuleType, batches: Any, persons: dict[int, Any]) -> list[tuple[Any, ...]]:
    """For each window and county, the records of each person there."""
    size, slide = timedelta(seconds=60), timedelta(seconds=20)
    people: dict[Any, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for county, ts, voter, name in sorted(
        (row for batch in batches for row in batch), key=lambda row: (row[3], row[2])
    ):
        for start in windows_of(ts, example.START, size, slide):
            people[start, county][persons[voter]].append({"name": name, "voter": voter})
    expected = []
    for start, county in sorted(people):
        clusters = sorted(people[start, county].values(), key=lambda some: (some[0]["name"], some[0]["voter"]))
        expected.append(({"start": start, "end": start + size}, county, clusters))
    return expected


# Names so far apart that every vote between two people is against, and every vote between records of one is for.
APART = Names(people=4, typos=2, seed=4)


def test_a_hot_county_is_split_and_its_people_are_found(spark: SparkSession, tmp_path: Path) -> None:
    example = load("clustering")
    batches, persons = example.make_voters(batches=4, rows=60, counties=5, names=APART)
    voters = stream_of(spark, example, example.VOTERS, tmp_path / "in", batches)
    query = run(example.people(voters), tmp_path)
    watching = sk.watch(query)
    assert watching.wait(len(batches))
    hot = sum(county == "county 0" for county, *_others in batches[-1])
    assert max(watching.loads.values()) < hot  # a worker with all of the county would have at least as many rows
    rows = [row for batch in batches for row in batch]
    expected = [
        row
        for row in people_in_windows(example, batches, persons)
        if closed(rows, timedelta(seconds=10), timedelta(seconds=60), row[0]["start"])
    ]
    assert len(expected) >= 15
    assert rows_in(spark, tmp_path) == expected


@pytest.mark.parametrize("split", ["shuffle", "hash", "local"])
def test_people_far_apart_are_found_whatever_the_split(spark: SparkSession, tmp_path: Path, split: str) -> None:
    example = load("clustering")
    batches, persons = example.make_voters(batches=4, rows=60, counties=5, names=APART)
    for county in {row[0] for batch in batches for row in batch}:
        voters = [(persons[voter], name) for batch in batches for at, _ts, voter, name in batch if at == county]
        votes = example.all_votes([name for _person, name in voters])
        for i, (person, _name) in enumerate(voters):
            assert all((votes[i, j] > 0) == (person == voters[j][0]) for j in range(len(voters)) if j != i)
    example.write(str(tmp_path / "in"), example.VOTERS, batches)
    voters = spark.read.parquet(str(tmp_path / "in"))
    found = example.people(voters, split, None if split == "local" else 3).toArrow().to_pylist()
    found = sorted((tuple(row.values()) for row in found), key=lambda row: (row[0]["start"], row[1]))
    assert found == people_in_windows(example, batches, persons)


def test_break_ins_are_successes_after_failures_in_a_window(spark: SparkSession, tmp_path: Path) -> None:
    example = load("break_ins")
    batches = example.make_logins(batches=3, rows=300)
    rows = [row for batch in batches for row in batch]
    size, slide, watermark = timedelta(minutes=5), timedelta(minutes=1), timedelta(minutes=1)
    logins = defaultdict(list)
    for account, ts, address, succeeded in sorted(rows, key=lambda row: row[1]):
        for start in windows_of(ts, example.START, size, slide):
            logins[start, account].append((address, succeeded))
    expected = []
    for (start, account), tried in logins.items():
        outcomes = "".join("+" if succeeded else "-" for _address, succeeded in tried)
        for i, (address, succeeded) in enumerate(tried):
            failures = i - len(outcomes[:i].rstrip("-"))
            if succeeded and failures >= example.FAILURES and closed(rows, watermark, size, start):
                expected.append(({"start": start, "end": start + size}, account, failures, address))
    assert len(expected) > 20
    assert len({row[1] for row in expected}) > 1
    break_ins = example.break_ins(stream_of(spark, example, example.LOGINS, tmp_path / "in", batches))
    assert result_of(spark, break_ins, tmp_path, 3) == sorted(expected, key=by_window)


@pytest.mark.parametrize("most", [0, 5])
def test_entries_are_booked_once_and_in_order(spark: SparkSession, tmp_path: Path, most: int) -> None:
    example = load("ledger")
    batches = example.make_entries(batches=4, rows=25)
    came = [entry for batch in batches for entry in batch]
    assert came != sorted(came)
    booked, cost = example.book(
        stream_of(spark, example, example.ENTRIES, tmp_path / "in", batches), str(tmp_path / "checkpoint"), most
    )
    assert sorted(booked) == sorted(came)
    numbers = [number for number, _amount in booked]
    # How many places an entry comes after one with a higher number.
    apart = [j - i for j, number in enumerate(numbers) for i in range(j) if numbers[i] > number]
    assert max(apart, default=0) <= most
    assert bool(apart) == bool(most)
    assert "none late" in cost


PRINTED = [
    ("page_views", "bounded over 4 workers"),
    ("word_count", ", 0 of them by one split only"),
    ("clustering", "are all records of one person"),
    ("break_ins", "windows have a break-in"),
    ("ledger", "entries booked with max_disorder=5"),
    ("sessionise", "sessions, of which"),
    ("deduplicate", "passed; most often"),
    ("anomalies", "these are not as expected"),
    ("auctions", "next is placement 1"),
]


SCRIPTS = [pytest.param(*PRINTED[0], 2, id=f"{PRINTED[0][0]}, two batches")]
SCRIPTS += [pytest.param(*each, None, id=each[0], marks=pytest.mark.long) for each in PRINTED]


@pytest.mark.parametrize(("name", "words", "batches"), SCRIPTS)
def test_the_script_prints_its_result(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    words: str,
    batches: int | None,
) -> None:
    # In the session there is: another one for each script takes far longer than all else here.
    monkeypatch.setattr(sk, "session", lambda *_cores, **_settings: spark)
    monkeypatch.setattr(SparkSession, "stop", lambda _spark: None)
    example = load(name)
    if batches is not None:
        (made,) = (each for each in vars(example) if each.startswith("make_"))
        monkeypatch.setattr(example, made, partial(getattr(example, made), batches=batches))
    example.main()
    assert words in capsys.readouterr().out


def test_every_script_is_tested() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")} - {SHARED}
    assert names == {name for name, _words in PRINTED}


def test_every_script_is_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"]({path.name})" in listed for path in EXAMPLES.glob("*.py"))
