"""The scripts under `examples`, against plain Python on the same rows."""

from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

import skewless as sk

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # workers cannot import it
    return module


def stream_of(spark: SparkSession, schema: str, folder: Path) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def result_of(spark: SparkSession, result: DataFrame, folder: Path, batches: int) -> list[tuple[Any, ...]]:
    """All rows that a query gives, sorted."""
    query = (
        result.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    assert sum(progress["numInputRows"] > 0 for progress in query.recentProgress) == batches
    return sorted(tuple(row.values()) for row in spark.read.parquet(str(folder / "out")).toArrow().to_pylist())


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
    example.write(str(tmp_path / "in"), batches)
    sessions = example.sessions(stream_of(spark, example.CLICKS, tmp_path / "in"), str(tmp_path / "query"))
    assert result_of(spark, sessions, tmp_path, 4) == sorted(expected)


def test_a_session_ends_by_the_watermark_alone_or_by_the_next_click(spark: SparkSession, tmp_path: Path) -> None:
    example = load("sessionise")
    at = [example.START + timedelta(minutes=minutes) for minutes in range(300)]
    first = [("ann", at[0]), ("ann", at[40]), ("bob", at[5]), ("eve", at[50])]
    # The watermark is now at minute 40: bob's session is over, and ann's second one is not.
    then = [("ann", at[69]), ("eve", at[80])]
    example.write(str(tmp_path / "in"), [first, then])
    sessions = example.sessions(stream_of(spark, example.CLICKS, tmp_path / "in"), str(tmp_path / "query"))
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
    example.write(str(tmp_path / "in"), batches)
    passed = example.deduplicated(stream_of(spark, example.ROWS, tmp_path / "in"), str(tmp_path / "query"))
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
    example.write(str(tmp_path / "in"), batches)
    marked = example.marked(stream_of(spark, example.VALUES, tmp_path / "in"), str(tmp_path / "query"))
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


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sessionise", "sessions, of which"),
        ("deduplicate", "passed; most often"),
        ("anomalies", "these are not as expected"),
        ("auctions", "next is placement 1"),
    ],
)
def test_the_script_prints_its_result(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    # In the session there is: another one for each script takes far longer than all else here.
    monkeypatch.setattr(sk, "session", lambda *_cores, **_settings: spark)
    monkeypatch.setattr(SparkSession, "stop", lambda _spark: None)
    load(name).main()
    assert words in capsys.readouterr().out


def test_every_script_is_tested() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {"sessionise", "deduplicate", "anomalies", "auctions"}
