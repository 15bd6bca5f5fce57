"""Keys that are on one worker are finished there, and only the others travel on."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import skewless as sk


@pytest.mark.parametrize("split", ["dalton", "prompt", "hash"])
def test_only_keys_that_are_split_take_the_second_exchange(
    spark: SparkSession, split: str, capsys: pytest.CaptureFixture[str]
) -> None:
    df = spark.range(6_000).selectExpr("if(id % 2 = 0, 0, id % 500) as key", "id")
    result = sk.keyed(df, "key", workers=4, split=split).agg(n=sk.count(), s=sk.sum("id"))
    theirs = df.groupBy("key").agg(F.count(F.lit(1)).alias("n"), F.sum("id").alias("s"))
    assert sorted(result.collect()) == sorted(theirs.collect())
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        capsys.readouterr()
        sk.keyed(df, "key", workers=4, split=split).agg(n=sk.count(), s=sk.sum("id")).explain()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "true")
    plan = capsys.readouterr().out
    # By hash no key is split, and rows are moved once: to be routed. Otherwise both sides share that exchange.
    assert plan.count("ReusedExchange") == (0 if split == "hash" else 1)
    assert ("Exchange hashpartitioning(owner" in plan) == (split != "hash")
