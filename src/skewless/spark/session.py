"""A Spark session with the settings that keyed streams want."""

from __future__ import annotations

import os
import sys
import warnings

from pyspark.sql import SparkSession

from skewless.core.errors import SkewlessError

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
ARROW_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
NO_LIMIT = str(2**31 - 1)
SOCKETS = "spark.python.unix.domain.socket.enabled"
CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum.enabled"
RETRY = "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch"
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""On a local disk Spark's default manager starts three processes for every file of a checkpoint that this one does
not; renames are atomic there with both. On HDFS the default is the one to have."""

SETTINGS = {
    PROVIDER: ROCKSDB,
    CHANGELOG: "true",
    ARROW_ROWS: "100000",
    ARROW_BYTES: NO_LIMIT,  # any other value, the default too, has Spark add up the size of a batch after every row
    SOCKETS: "true",  # over TCP the small writes to a Python task wait for acknowledgements, about 20 ms a task
    # A task that routes rows may run again and give them other workers; see `in_task`.
    CHECKSUM: "true",
    RETRY: "true",
}
_SLOW_SOCKETS = f"{SOCKETS} is off: a task with Python in it takes about 20 ms longer; set it to true"


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add skewless's settings to a session that is being built; call it first, so that your own settings win.

    State goes to RocksDB and is checkpointed as a log of changes, and rows go to Python 100,000 at a time, whatever
    their size, through Unix sockets. Spark's web page and progress bar stay as they are.
    """
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder


def session(cores: int | None = None, *, memory: str = "2g", **settings: str) -> SparkSession:
    """A quiet local session with as many workers as there are cores: without Spark's web page and progress bar.

    Parameters
    ----------
    cores
        Threads of the local master, and shuffle partitions; all cores of this machine if not given.
    memory
        For the driver, which in local mode does all the work.
    settings
        Further Spark settings, with `_` for each dot: `spark_sql_session_timeZone="UTC"`.
    """
    if cores is not None and cores < 1:
        raise SkewlessError(f"cores is {cores}; give at least 1, or None for all of this machine")
    cores = cores or os.cpu_count() or 1
    # Spark starts its Python workers with the first python3 on the PATH, which need not be this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = configure(SparkSession.Builder().appName("skewless").master(f"local[{cores}]"))
    builder = builder.config("spark.driver.memory", memory).config("spark.sql.shuffle.partitions", str(cores))
    builder = builder.config(MANAGER, FILE_SYSTEM)
    for quiet in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(quiet, "false")
    for name, value in settings.items():
        builder = builder.config(name if "." in name else name.replace("_", "."), value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def prepare_routing(spark: SparkSession) -> None:
    """Warn once of a session in which a lost executor could change rows that tasks have routed."""
    newer = _version(spark) >= (4, 3)
    if _sockets_are_off(spark):
        _warn(_SLOW_SOCKETS)
    for name in (CHECKSUM, RETRY):
        if (spark.conf.get(name, "true" if newer else "false") or "").lower() != "true":
            _warn(f"{name} is off: rows may be lost or doubled if an executor is lost while they are routed; set it")


def prepare(spark: SparkSession) -> None:
    """See that a session made elsewhere can keep windows, and warn once of what its settings cost.

    State in RocksDB is a must for `transformWithState`, so it is set, for the queries that start from now on; a query
    that goes on from a checkpoint keeps the store it was started with.
    """
    if _sockets_are_off(spark):
        _warn(_SLOW_SOCKETS)
    if spark.conf.get(PROVIDER, None) != ROCKSDB:
        spark.conf.set(PROVIDER, ROCKSDB)
        _warn(f"windows keep their state in RocksDB: {PROVIDER} is now {ROCKSDB}")
    if spark.conf.get(CHANGELOG, "false") != "true":
        _warn(f"{CHANGELOG} is off: every batch uploads whole files of state; set it to true")
    rows = int(spark.conf.get(ARROW_ROWS, "10000") or 0)
    if 0 < rows < 50_000:
        _warn(f"{ARROW_ROWS} is {rows}: rows reach Python in small pieces; 100000 is faster")
    if spark.conf.get(ARROW_BYTES, None) != NO_LIMIT:
        _warn(f"{ARROW_BYTES} is set: Spark adds up bytes after every row for it; {NO_LIMIT} is twice as fast")
    if (spark.conf.get("spark.master", "") or "").startswith("local") and spark.conf.get(MANAGER, None) is None:
        _warn(
            f"{MANAGER} is not set: checkpoints on a local disk are slower for it; set it to {FILE_SYSTEM}", "session()"
        )


def _sockets_are_off(spark: SparkSession) -> bool:
    """Whether Python tasks are slower than need be, those of idle workers most of all."""
    return _version(spark) >= (4, 1) and (spark.conf.get(SOCKETS, "false") or "").lower() != "true"


def _version(spark: SparkSession) -> tuple[int, ...]:
    return tuple(map(int, spark.version.split(".")[:2]))


_warned: set[str] = set()


def warn_once(text: str, stacklevel: int) -> None:
    """Warn of this, if it was not warned of before; `stacklevel` is as for `warnings.warn`, called from the caller."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, stacklevel=stacklevel + 1)


def _warn(text: str, remedy: str = "configure(builder)") -> None:
    warn_once(f"{text} (sk.{remedy} does it for a new session)", stacklevel=5)
