"""Sessions that are made here, and those made elsewhere."""

from __future__ import annotations

import warnings

import pytest
from pyspark.sql import SparkSession

import skewless as sk
from skewless.spark.session import ARROW_BYTES, ARROW_ROWS, MANAGER, PROVIDER, ROCKSDB, prepare


def test_a_session_is_configured_for_streams(spark: SparkSession) -> None:
    built = sk.configure(SparkSession.Builder())
    assert not [name for name in built._options if name.startswith("spark.ui")]  # the user's web page stays
    assert built._options["spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"] == "true"
    with pytest.raises(sk.SkewlessError, match="cores is 0; give at least 1"):
        sk.session(0)


def test_a_session_made_elsewhere_is_prepared_with_a_warning_once(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    other.conf.set(ARROW_ROWS, "10000")
    other.conf.set(ARROW_BYTES, "64mb")
    other.conf.unset(MANAGER)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        prepare(other)
        prepare(other)
    assert [str(each.message).split(":")[0] for each in said] == [
        "windows keep their state in RocksDB",
        f"{ARROW_ROWS} is 10000",
        f"{ARROW_BYTES} is set",
        f"{MANAGER} is not set",
    ]
    assert other.conf.get(PROVIDER) == ROCKSDB
