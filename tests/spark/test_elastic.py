"""Workers that follow the load on Spark: only active ones get rows, and results do not depend on how many there are.

An interval of a millisecond has every micro-batch take too long, so that workers are added after each but the first,
which is cold. Under availableNow micro-batches follow each other at once, so that with an interval of a week the number
stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import skewless as sk
from skewless.api.watch import Watch
from skewless.api.windowed import KeyedWindows
from skewless.elastic import Range
from skewless.spark import session
from skewless.split import Splitter
from support.streams import partitions, read_files, run, settings, start, stream_of, write_files

ROWS, BATCHES = 240, 9
BUSY = Range(1, 4, "1 millisecond", stride="one", d=1)


def clicks() -> list[pa.Table]:
    """Micro-batches of a skewed stream."""
    keys = np.random.default_rng(3).zipf(1.5, BATCHES * ROWS) % 50
    times = 1_700_000_000_000_000 + np.arange(len(keys)) * 100_000
    table = pa.table(
        {"page": keys, "value": np.arange(len(keys)), "ts": pa.array(times).cast(pa.timestamp("us", "UTC"))}
    )
    return [table.slice(batch * ROWS, ROWS) for batch in range(BATCHES)]


@pytest.mark.parametrize(
    "split", ["bounded", "dalton", *(pytest.param(name, marks=pytest.mark.long) for name in ("prompt", "hash"))]
)
def test_only_active_workers_get_rows(spark: SparkSession, tmp_path: Path, split: str) -> None:
    found: list[set[int]] = []
    values: list[int] = []

    def each(df: DataFrame, batch: int, watching: Watch) -> None:
        watching.wait(batch)  # what was decided after the one before is in force in the next one at the latest
        rows = df.select("value", F.spark_partition_id().alias("worker")).collect()
        values.extend(row["value"] for row in rows)
        found.append({row["worker"] for row in rows})

    keyed = sk.keyed(stream_of(spark, tmp_path / "in", clicks()), "page", workers=BUSY, split=split)
    query = start(keyed.repartition(), tmp_path / "to", each)
    query.awaitTermination()
    active = [len(workers) for workers in found]
    assert found == [set(range(number)) for number in active]  # tail keys too: there are enough to meet every worker
    assert (active[0], active[-1]) == (1, 4)
    assert set(np.diff(active).tolist()) <= {0, 1}
    assert sorted(values) == list(range(BATCHES * ROWS))
    watching = sk.watch(query)
    assert watching.wait(BATCHES)
    assert sorted(watching.loads) == [0, 1, 2, 3]
    assert (watching.workers, watching.ratio and watching.ratio > 1) == (4, True)
    assert re.fullmatch(r"3 workers became 4 after micro-batch \d \(W = .*\), because .*", watching.decision or "")
    assert "4 of 1 to 4 workers are active; W was" in watching.explain()


def test_a_file_of_the_number_of_workers_that_is_gone_stops_the_query_and_loses_no_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = clicks()
    rows = stream_of(spark, tmp_path / "in", batches[:1])
    result = sk.keyed(rows, "page", workers=BUSY, split="bounded").repartition(folder=str(tmp_path / "folder"))
    given, watching = run(result, tmp_path / "to")
    assert watching.wait(1)
    (file,) = [path for path in (tmp_path / "folder").glob("workers-*.json") if "-of-" not in path.name]
    kept = file.read_bytes()
    for known in (tmp_path / "folder").glob("workers-of-*"):
        known.unlink()  # from which a run that starts would write the file anew
    write_files(tmp_path / "in", batches[1:2], first=1)
    for left in (b" " * len(kept), None):
        file.unlink() if left is None else file.write_bytes(left)
        ignored = {"spark.sql.files.ignoreMissingFiles": str(left is None).lower()}
        with (
            settings(spark, ignored),
            pytest.raises(StreamingQueryException, match=r"the number of workers at .* is damaged; call agg\(...\) or"),
        ):
            run(result, tmp_path / "to")
    file.write_bytes(kept)
    later, _ = run(result, tmp_path / "to")
    values = [[row[1] for rows in each.values() for row in rows] for each in (given, later)]
    assert [sorted(each) for each in values] == [[*range(ROWS)], [*range(ROWS, 2 * ROWS)]]


@pytest.mark.parametrize("split", ["bounded", pytest.param("dalton", marks=pytest.mark.long)])
def test_windows_do_not_depend_on_the_number_of_workers(spark: SparkSession, tmp_path: Path, split: str) -> None:
    rows = stream_of(spark, tmp_path / "in", clicks())

    def waiting(batch: int, watching: Watch) -> None:
        watching.wait(batch)

    keyed = sk.keyed(rows, "page", workers=BUSY, split=split)
    result = keyed.window("ts", "20 seconds", "10 seconds", "0 seconds").agg(n=sk.count(), p=sk.quantile("value", 0.5))
    given, watching = run(result, tmp_path / "to", waiting)
    watching.wait(BATCHES)
    assert watching.workers == 4
    window = F.window("ts", "20 seconds", "10 seconds")
    oracle = spark.read.parquet(str(tmp_path / "in")).groupBy(window, "page").agg(F.count(F.lit(1)).alias("n"))
    expected = {(row["window"]["start"], row["page"]): row["n"] for row in oracle.collect()}
    found = {(row[0]["start"], row[1]): row[2] for rows in given.values() for row in rows}
    assert len(found) > 50
    assert found.items() <= expected.items()
    last = max(expected)[0]
    assert {key for key in expected if (last - key[0]).total_seconds() > 20} <= set(found)


def test_windows_that_changed_are_sparks_own_however_many_workers_are_active(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = stream_of(spark, tmp_path / "in", clicks()[:7])
    watermarked = rows.withWatermark("ts", "5 seconds").groupBy(F.window("ts", "20 seconds", "10 seconds"), "page")
    theirs = watermarked.agg(F.count(F.lit(1)).alias("n"), F.sum("value").alias("s"))
    keyed = sk.keyed(rows, "page", workers=BUSY, split="bounded")
    windows = keyed.window("ts", "20 seconds", "10 seconds", "5 seconds")
    active: list[int | None] = []

    def waiting(batch: int, watching: Watch) -> None:
        watching.wait(batch)
        active.append(watching.workers)

    found, watching = run(windows.changes(n=sk.count(), s=sk.sum("value")), tmp_path / "to", waiting, "update")
    watching.wait(7)
    assert watching.workers == 4
    assert active[0] != active[6]  # it changed while windows were open
    expected, _ = run(theirs, tmp_path / "theirs", mode="update")
    assert {batch: sorted(given) for batch, given in found.items() if given} == {
        batch: sorted(given) for batch, given in expected.items() if given
    }


class Seen(sk.Processor):
    """Counts the rows of a key."""

    state = "n long"

    def process(self, key: tuple[int], rows: sk.Rows, state: sk.State) -> Iterator[tuple[int]]:
        """One row for each key in a micro-batch."""
        state["n"] = (state["n"] or 0) + len(rows)
        yield (state["n"],)


def test_state_moves_to_the_workers_that_are_active_and_a_later_run_has_as_many(
    spark: SparkSession, tmp_path: Path
) -> None:
    def waiting(batch: int, watching: Watch) -> None:
        watching.wait(batch)

    with partitions(spark, 4):
        tables = clicks()
        source = stream_of(spark, tmp_path / "in", tables)
        keyed = sk.keyed(source, "page", workers=BUSY)
        result = keyed.process(Seen(), "n long", folder=str(tmp_path / "folder"))
        given, watching = run(result, tmp_path / "to", waiting)
        watching.wait(BATCHES)
        assert watching.workers is not None
        assert watching.workers > 1
        assert watching.placement.workers > 1
        more = [table.slice(0, 100) for table in tables[:1]]
        stream_of(spark, tmp_path / "more", more)
        (tmp_path / "more" / "000.parquet").rename(tmp_path / "in" / "100.parquet")
        again = sk.keyed(read_files(spark, tmp_path / "in"), "page", workers=Range(1, 4, "7 days"))
        result = again.process(Seen(), "n long", folder=str(tmp_path / "folder"))
        later, rewatching = run(result, tmp_path / "to")
        rewatching.wait(1)
        assert rewatching.workers == watching.workers
    rows = [row for batch in (*given.values(), *later.values()) for row in batch]
    last = {key: max(n for each, n in rows if each == key) for key, _ in rows}
    keys = np.concatenate([table["page"].to_numpy() for table in (*tables, *more)])
    assert last == dict(zip(*(each.tolist() for each in np.unique(keys, return_counts=True)), strict=True))


def test_a_later_run_of_routed_rows_has_as_many_workers_and_the_number_stays_under_available_now(
    spark: SparkSession, tmp_path: Path
) -> None:
    values: list[int] = []
    workers: dict[int, set[int]] = {}

    def each(df: DataFrame, batch: int, watching: Watch) -> None:
        watching.wait(batch % 8)  # the later run begins with the eighth
        rows = df.select("value", F.spark_partition_id().alias("worker")).collect()
        values.extend(row["value"] for row in rows)
        workers[batch] = {row["worker"] for row in rows}

    tables = clicks()
    folder = str(tmp_path / "folder")
    first = sk.keyed(stream_of(spark, tmp_path / "in", tables[:8]), "page", workers=BUSY)
    query = start(first.repartition(folder=folder), tmp_path / "to", each)
    query.awaitTermination()
    before = sk.watch(query)
    before.wait(8)
    stream_of(spark, tmp_path / "more", [tables[8].slice(i * 60, 60) for i in range(4)])
    for i in range(4):
        (tmp_path / "more" / f"{i:03}.parquet").rename(tmp_path / "in" / f"10{i}.parquet")
    again = sk.keyed(read_files(spark, tmp_path / "in"), "page", workers=Range(1, 4, "7 days", d=2))
    query = start(again.repartition(folder=folder), tmp_path / "to", each)
    query.awaitTermination()
    watching = sk.watch(query)
    watching.wait(4)
    assert sorted(values) == list(range(BATCHES * ROWS))
    assert watching.workers == before.workers == 4
    assert (workers[0], workers[8]) == ({0}, {0, 1, 2, 3})  # from its first micro-batch on
    assert "two micro-batches began within one interval of 7 days" in watching.explain()


def test_a_batch_has_the_most_workers(spark: SparkSession) -> None:
    df = spark.createDataFrame(clicks()[0])
    keyed = sk.keyed(df, "page", workers=(1, 4), interval="1 second")
    assert keyed.repartition().select(F.spark_partition_id()).distinct().count() == 4
    assert "over 4 workers where rows move. Bare rows" in keyed.explain()


def test_explain_says_what_follows_and_what_is_fixed(spark: SparkSession, tmp_path: Path) -> None:
    rows = stream_of(spark, tmp_path / "in", clicks()[:1])
    keyed = sk.keyed(rows, "page", workers=(2, 16), interval="1 second", name="clicks")
    assert "over 2 to 16 workers where rows move. How many of these are active follows the load, measured by an " in (
        keyed.explain()
    )
    windows = keyed.window("ts", "20 seconds", "10 seconds", "0 seconds")
    heavy, light = windows.explain(p=sk.quantile("value", 0.5)), windows.explain(n=sk.count())
    assert heavy.startswith("clicks: bounded over 2 to 16 workers, ")
    fixed = "an interval of 1 second; the 2 partitions of state stay as Spark has them at the start. Idle workers have "
    assert fixed in heavy
    for said in (keyed.explain(), heavy):
        assert (
            "dynamic allocation gives no executor back that gets one of them more often than its idle timeout" in said
        )
    assert "dynamic allocation" not in light  # where no rows move, no worker is idle
    assert light.endswith("As no rows move, 2 to 16 workers have no use; split='bounded', or another, moves rows.")


def test_a_range_that_no_rows_move_by_is_warned_of_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = stream_of(spark, tmp_path / "in", clicks()[:1])

    def windows(workers: int | tuple[int, int], **options: str) -> KeyedWindows:
        return sk.keyed(rows, "page", workers=workers, **options).window("ts", "20 seconds", "10 seconds", "0 seconds")

    windows(4).agg(n=sk.count())  # which has warned of the session's settings, if there is something to say
    monkeypatch.setattr(session, "_warned", set(session._warned))
    ranged = windows((2, 13), interval="1 second")
    ranged.explain(n=sk.count())
    windows((2, 13), interval="1 second", split="bounded").agg(n=sk.count())  # neither warns, or the test would fail
    said = re.escape("As no rows move, 2 to 13 workers have no use; split='bounded', or another, moves rows.")
    with pytest.warns(UserWarning, match=f"^{said}$") as told:
        ranged.agg(n=sk.count())
    assert [each.filename for each in told] == [__file__]
    ranged.changes(n=sk.count())
    ranged.agg(n=sk.count())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"workers": (2, 16)},
            r'workers is (2, 16), a range that follows the load, and no interval= .* interval="1 sec',
        ),
        ({"workers": (2, 4, 8), "interval": "1 second"}, "workers is (2, 4, 8); give a number, or the fewest and the"),
        ({"workers": (4, 2), "interval": "1 second"}, "workers is (4, 2); give the smaller number first"),
        ({"workers": (2, 4), "interval": "soon"}, "interval: 'soon' is not an interval"),
        (
            {"workers": 4, "interval": "1 second"},
            "interval is '1 second', by which a range of workers follows the load",
        ),
        ({"workers": BUSY, "interval": "1 second"}, "the range has '1 millisecond'; give it once"),
        (
            {"workers": (2, 16), "interval": "1 second", "split": sk.split.Dalton(4)},
            "the splitter is for 4 workers, but workers is (2, 16); give it once",
        ),
        (
            {"workers": (2, 16), "interval": "1 second", "split": "local"},
            "moves no rows, so workers=(2, 16) has no use",
        ),
    ],
)
def test_what_cannot_follow_is_refused_in_words(
    spark: SparkSession, options: dict[str, str | Splitter], message: str
) -> None:
    pattern = ".*".join(re.escape(part) for part in message.split(".*"))
    with pytest.raises(sk.SkewlessError, match=pattern):
        sk.keyed(spark.range(9), "id", **options)  # type: ignore[arg-type]  # some are wrong on purpose


def test_calls_with_a_fixed_number_of_workers_refuse_a_range(spark: SparkSession, tmp_path: Path) -> None:
    rows = stream_of(spark, tmp_path / "in", clicks()[:1])
    keyed = sk.keyed(rows, "page", workers=(1, 2), interval="1 second")
    fixed = re.escape("workers is (1, 2), a range that follows the load; whole windows are assigned to one number of")
    with pytest.raises(sk.SkewlessError, match=fixed):
        keyed.window("ts", "20 seconds", watermark="0 seconds").apply(lambda *_: None, "n long")
    with pytest.raises(sk.SkewlessError, match=fixed):
        sk.windowed(rows, "ts", "20 seconds", watermark="0 seconds", workers=(1, 2))  # type: ignore[arg-type]
    with pytest.raises(sk.SkewlessError, match="workers is 8; a processor can have up to 2"):
        sk.keyed(rows, "page", workers=(1, 8), interval="1 second").process(Seen(), "n long", folder=str(tmp_path))
    with pytest.raises(sk.SkewlessError, match="place is 'hash', which places keys once and for ever, and 1 to 2 "):
        sk.keyed(rows, "page", workers=(1, 2), interval="1 second", place="hash").process(
            Seen(), "n long", folder=str(tmp_path / "hash")
        )


def test_a_session_without_unix_sockets_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_warned", set())
    settings = {session.CHECKSUM: "true", session.RETRY: "true"}  # a running session cannot change this one
    made = SimpleNamespace(
        version="4.3.0", conf=SimpleNamespace(get=lambda name, usual=None: settings.get(name, usual))
    )
    with pytest.warns(UserWarning, match="socket.enabled is off: a task with Python in it takes about 20 ms longer"):
        session.prepare_routing(made)  # type: ignore[arg-type]  # what it asks a session for
    settings[session.SOCKETS] = "true"
    session.prepare_routing(made)  # type: ignore[arg-type]  # which would fail with a warning
