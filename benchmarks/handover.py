"""What moving a slot costs against the size of its state, from 1 KB to 100 MB, without Spark.

A worker gives the slot: it reads its entries, divides them by owner and writes a copy to the folder, flushed to the
disk. Another takes it: it reads the copy, divides it and writes the entries to its store. Stores are in memory here,
where Spark has RocksDB. Each key has 1 KB of state.

Claim tested: beyond a fixed cost, a move costs a few nanoseconds a byte, as `Rule.byte_cost` has it.

What measuring taught. A copy costs 1 to 9 ms to give however small it is, which is the flush and depends on the disk,
and 1 to 2 ms to take. From 1 MB on a byte costs 2 to 3 ns of processor time and from 10 MB on 3 ns of wall-clock time,
more than half of that to take it; beside other work it was twice as much.

`python -m benchmarks.handover` prints the lines, and `make bench-place` has them on docs/results/place.md.
"""

from __future__ import annotations

import tempfile
import time

import numpy as np
import pyarrow as pa

from skewless.control.placements import Placements
from skewless.control.version import Version
from skewless.core.store import MemoryStore
from skewless.core.turn import Turn
from skewless.operators.process.entries import Layout
from skewless.operators.process.handover import Handover
from skewless.operators.process.slots import SlotStore
from skewless.place import Placement

KEYS, BYTES, RUNS = (1, 100, 1_000, 10_000, 100_000), 1_000, 5
LAYOUT = Layout(pa.schema([("key", pa.int64())]), pa.schema([("data", pa.binary())]))


def table() -> list[str]:
    """The lines of Markdown; each is printed when it is there."""
    lines = [
        f"A slot whose keys have {BYTES:,} bytes of state each moves from one worker to another, without Spark, in",
        f"milliseconds of wall-clock time, medians of {RUNS} runs. A copy is flushed to the disk. The last column is",
        "the time of the processor alone, by which `Rule` reckons the bytes of a move.",
        "",
        "| keys | MB | ms to give | ms to take | ns a byte | ns a byte, processor |",
        "|---|---|---|---|---|---|",
    ]
    for keys in KEYS:
        give, take, busy = np.median([moved(keys) for _run in range(RUNS)], axis=0)
        wall, processor = ((seconds / (keys * BYTES)) * 1e9 for seconds in (give + take, busy))
        figures = f"{keys * BYTES / 1e6:g} | {give * 1e3:.1f} | {take * 1e3:.1f} | {wall:.1f} | {processor:.1f}"
        lines.append(f"| {keys:,} | {figures} |")
        print(lines[-1], flush=True)
    return lines


def moved(keys: int) -> tuple[float, float, float]:
    """The seconds in which a slot of so many keys is given, and taken, and those of the processor for both."""
    with tempfile.TemporaryDirectory() as path:
        folder = Placements.at(path)
        before, after = Placement.of(2, [0]), Placement.of(2, [1], version=1)
        folder.write_placement(before, 0, None)
        folder.write_placement(after, 0, "query")
        workers = [
            Handover(folder, Turn(worker, worker, "query"), LAYOUT, SlotStore(LAYOUT, MemoryStore()))
            for worker in (0, 1)
        ]
        workers[0].slots.replace("t0", entries(keys))
        start, idle = time.perf_counter(), time.process_time()
        workers[0].give(Version(0, announced=1), None)
        given = time.perf_counter()
        workers[1].take(before, after, carried=True)
        taken, busy = time.perf_counter(), time.process_time()
        assert workers[1].slots.whole("t0").num_rows == keys
        return given - start, taken - given, busy - idle


def entries(keys: int) -> pa.RecordBatch:
    """Entries of so many keys, of one tail slot."""
    data = np.random.default_rng(keys).bytes(keys * BYTES)
    state = pa.array([data[at : at + BYTES] for at in range(0, len(data), BYTES)], pa.binary())
    numbers = np.arange(keys)
    nothing = pa.nulls(keys, pa.int64())
    return LAYOUT.entries(numbers, [pa.array(numbers)], [state], nothing, nothing, np.zeros(keys, bool))


if __name__ == "__main__":
    print("\n".join(table()))
