"""ShuffleBench's case: many consumers, each a black box with state of its own, and records that have to reach them.

ShuffleBench (Henning et al., ICPE 2024; github.com/dynatrace-research/ShuffleBench) routes records of 1,024 bytes to
consumers. A consumer keeps a count, a sum, the times of its first and last record, and fills the rest of its state with
the record. Every tenth record it gives its state away and starts anew. How often consumers match is Zipf's, with the
exponent s that is swept here. Its defaults are 1,000 consumers, s = 0, and state of 32 bytes; state is 128 bytes here,
and the records are those that matched, so that matching is not measured.

Measured: `process` with the same black box against Spark's three ways to write it in Python. Claim tested: with `even`
its busiest worker has fewer rows than by Spark's hash at every s. Spark's `flatMapGroupsWithState`, the black box in
Java and no Python at all, is measured beside them where there is a Java compiler.

What measuring taught: with 50 rows of each of 1,000 keys there are few calls to save. `process` is about as fast as
Spark's ways, 0.7 to 1.2 times, and not faster at every s. It evens out the rows of the workers up to s = 1; at 1.5 one
key has more than three workers' share.

`make bench-shuffle` runs this and writes it to docs/results/shuffle.md.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import skewless as sk
from benchmarks.jvm import CLASS_PATH
from benchmarks.process import run, write
from skewless.core.hashing import murmur3

WORKERS, CONSUMERS, ROWS, RECORD, STATE, OUTPUT = 8, 1_000, 50_000, 1_024, 128, 10
BATCHES, WARM = 7, 3
EXPONENTS = (0.0, 0.5, 1.0, 1.5)
COLUMNS = "consumer long, time long, data binary"
GIVEN = "event binary"
SPARKS = ("transformWithState", "transformWithStateInPandas", "applyInPandasWithState")
WAYS = (*SPARKS, "process, hash", "process, even")
JVM = "flatMapGroupsWithState, JVM"
_HEAD = struct.Struct(">qqqq")


def accept(state: bytes | None, time: int, data: bytes) -> tuple[bytes | None, bytes | None]:
    """The black box: the state after a record, and the event that it gives, if it does.

    >>> state = None
    >>> for time in range(OUTPUT):
    ...     state, event = accept(state, time, bytes(RECORD))
    >>> state, _HEAD.unpack(event[:32]), len(event)
    (None, (10, 0, 0, 9), 128)
    """
    count, total, first, _last = _HEAD.unpack_from(state) if state else (0, 0, time, time)
    (value,) = struct.unpack_from(">q", data)
    total = (total + value + 2**63) % 2**64 - 2**63  # it may overflow
    state = _HEAD.pack(count + 1, total, first, time) + data[: STATE - _HEAD.size]
    return (None, state) if count + 1 == OUTPUT else (state, None)


def accept_all(state: bytes | None, records: Iterable[tuple[int, bytes]]) -> tuple[bytes | None, list[bytes]]:
    """The same for some records, in turn."""
    events = []
    for time, data in records:
        state, event = accept(state, time, bytes(data))
        if event is not None:
            events.append(event)
    return state, events


class Consumer(sk.Processor):
    """The black box as a processor."""

    state = "data binary"

    def process(self, key: tuple[Any, ...], rows: sk.Rows, state: sk.State) -> Iterator[tuple[bytes]]:
        """Records of a consumer."""
        state["data"], events = accept_all(state["data"], zip(rows["time"], rows["data"], strict=True))
        for event in events:
            yield (event,)


class RowConsumer(StatefulProcessor):
    """The black box for Spark's `transformWithState`."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark has state ready."""
        self._state = handle.getValueState("data", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        """Records of a consumer."""
        for event in self._accept((row.time, row.data) for row in rows):
            yield Row(consumer=key[0], event=event)

    def _accept(self, records: Iterable[tuple[int, bytes]]) -> list[bytes]:
        old = self._state.get()
        state, events = accept_all(bytes(old[0]) if old else None, records)
        if state is None:
            self._state.clear()
        else:
            self._state.update((state,))
        return events

    def close(self) -> None:
        """Nothing to close."""


class PandasConsumer(RowConsumer):
    """The black box for Spark's `transformWithStateInPandas`."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 - Spark's names
        """Records of a consumer."""
        events = self._accept(_records(rows))
        if events:
            yield pd.DataFrame({"consumer": key[0], "event": events})


def apply_consumer(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """The black box for Spark's `applyInPandasWithState`."""
    data, events = accept_all(bytes(state.get[0]) if state.exists else None, _records(frames))
    if data is not None:
        state.update((data,))
    elif state.exists:
        state.remove()
    yield pd.DataFrame({"consumer": [key[0]] * len(events), "event": events})


def _records(frames: Iterator[pd.DataFrame]) -> Iterator[tuple[int, bytes]]:
    return (record for frame in frames for record in zip(frame["time"], frame["data"], strict=True))


def table(spark: SparkSession, folder: Path) -> list[str]:
    """Every way at every exponent."""
    ways = (*WAYS, JVM) if spark.conf.get(CLASS_PATH, None) else WAYS
    lines = [
        f"{CONSUMERS:,} consumers on {WORKERS} workers, {ROWS:,} records of {RECORD:,} bytes a micro-batch, state of",
        f"{STATE} bytes where ShuffleBench has 32, an event every {OUTPUT} records. Records are those that matched a",
        f"consumer: matching is not measured. Microseconds a record, means of {BATCHES - WARM} micro-",
        f"batches after {WARM} that do not count; in brackets the speed over that of the fastest of Spark's in Python.",
        "",
        f"| s | {' | '.join(ways)} | busiest over mean, hash of Spark | even |",
        "|" + "---|" * (len(ways) + 3),
    ]
    for s in EXPONENTS:
        files = folder / f"s-{s}"
        consumers = write_stream(files, s)
        times, busiest = {}, float("nan")
        for way in ways:
            seconds, _bytes, query = run(spark, files, COLUMNS, partial(built, way), BATCHES, WARM)
            times[way] = seconds / ROWS * 1e6
            print(f"s = {s}: {way}: {times[way]:.0f} us", flush=True)
            if way == "process, even":
                busiest = sk.watch(query).imbalance or busiest
        shutil.rmtree(files)
        rival = min(times[way] for way in SPARKS)
        figures = [f"{times[way]:.0f}" + ("" if way in SPARKS else f" ({rival / times[way]:.1f}x)") for way in ways]
        lines.append(f"| {s} | {' | '.join(figures)} | {by_hash(consumers):.2f} | {busiest:.2f} |")
        print(lines[-1], flush=True)
    return lines


def built(way: str, rows: DataFrame, work: Path) -> DataFrame:
    """The query of a way."""
    grouped, schema = rows.groupBy("consumer"), f"consumer long, {GIVEN}"
    if way == "transformWithStateInPandas":
        return grouped.transformWithStateInPandas(PandasConsumer(), schema, "update", "none")
    if way == "transformWithState":
        return grouped.transformWithState(RowConsumer(), schema, "update", "none")
    if way == "applyInPandasWithState":
        return grouped.applyInPandasWithState(
            apply_consumer, schema, "data binary", "update", GroupStateTimeout.NoTimeout
        )
    if way == JVM:
        events = rows.sparkSession._jvm.skewless.benchmarks.Consumers.events(rows._jdf, STATE, OUTPUT)  # type: ignore[attr-defined]
        return DataFrame(events, rows.sparkSession)
    placer = way.split(", ")[1]
    return sk.keyed(rows, "consumer", place=placer).process(Consumer(), GIVEN, folder=str(work / "placement"))


def write_stream(folder: Path, s: float) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The files of the micro-batches; the consumers of the last one's records."""
    folder.mkdir()
    shares = np.arange(1, CONSUMERS + 1) ** -s
    consumers = np.zeros(0, np.int64)
    for i in range(BATCHES):
        chance = np.random.default_rng(i)
        consumers = chance.choice(CONSUMERS, ROWS, p=shares / shares.sum())
        data = chance.bytes(ROWS * RECORD)
        records = [data[at : at + RECORD] for at in range(0, len(data), RECORD)]
        rows = {"consumer": consumers, "time": np.arange(ROWS) + i * ROWS, "data": pa.array(records, pa.binary())}
        write(folder, i, pa.table(rows))
    return consumers


def by_hash(consumers: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    """The rows of the busiest partition over the mean, where Spark hashes keys."""
    rows = np.bincount(murmur3(consumers) % WORKERS, minlength=WORKERS)
    return float(rows.max() / rows.mean())
