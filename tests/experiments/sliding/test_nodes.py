"""The paper's split and nodes without Spark, against windows put together row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import sliding_nodes
from benchmarks.sliding_nodes import Aggregate, Merge, Panes, Split, partitioner_of, row_cost
from experiments.sliding.measured import LEVEL, SLOWER, Spark
from experiments.sliding.on_spark import GIVEN, OnSpark
from experiments.sliding.partition import ByPane

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Windows = dict[int, tuple[int, float, float, float]]


def exchanged(batches: Iterator[pa.RecordBatch], nodes: int, stage: Stage) -> list[pa.RecordBatch]:
    """What every node gives for the rows that are sent to it."""
    rows = pa.Table.from_batches(list(batches))
    owners = rows["owner"].to_numpy()
    return [part for node in range(nodes) for part in stage(iter(rows.filter(owners == node).to_batches()))]


def run(way: str, numbers: pa.Array, speeds: pa.Array, nodes: int, clock: Path) -> tuple[Windows, int]:
    """The windows that the nodes give, and how many copies the split made."""
    partitioner, owners = partitioner_of(way, 6, 2 if way == "pane" else 1), tuple(range(nodes))
    rows = pa.RecordBatch.from_arrays([numbers, speeds], ["number", "speed"])
    copies = list(Split(partitioner, nodes, owners, str(clock))(iter([rows])))
    if isinstance(partitioner, ByPane):
        answers = exchanged(iter(copies), nodes, Panes(partitioner, nodes, owners))
        merge = Merge(partitioner, {node: node for node in owners}, nodes)
        found = exchanged(iter(answers), nodes, merge)
    else:
        found = exchanged(iter(copies), nodes, Aggregate(partitioner, nodes))
    given = [row for part in found for row in zip(*part.to_pydict().values(), strict=True)]
    windows = {row[0]: row[1:] for row in given}
    assert len(windows) == len(given)  # each window on one node
    return windows, sum(part.num_rows for part in copies)


@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("way", ["window", "batch 2", "batch 5", "pane"])
def test_nodes_give_the_statistics_of_every_window(
    way: str, nodes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sliding_nodes, "SLOWER", 0)
    speeds = np.random.default_rng(3).integers(0, 100, 50).astype(float)
    windows, copies = run(way, pa.array(np.arange(50)), pa.array(speeds), nodes, tmp_path / "clock")
    slide, size = (2, 12) if way == "pane" else (1, 6)
    wanted = {}
    for window in range(-size, 50):
        some = speeds[max(0, window * slide) : max(0, window * slide + size)]
        if len(some):
            wanted[window] = (len(some), some.min(), some.max(), pytest.approx(some.mean()))
    assert windows == wanted
    if nodes > 1:
        per_row = {"window": 6.0, "batch 2": 3.5, "batch 5": 2.0, "pane": 1.0}[way]
        assert copies == pytest.approx(50 * per_row, abs=1)
    else:
        assert copies == 50
    assert float((tmp_path / "clock").read_text()) >= 0


@pytest.mark.parametrize("way", ["window", "pane"])
def test_a_node_without_rows_gives_nothing(way: str) -> None:
    partitioner = partitioner_of(way, 6, 2)
    stages = [Panes(partitioner, 2, (0, 1)), Merge(partitioner, {0: 0}, 2)] if isinstance(partitioner, ByPane) else []
    for stage in stages or [Aggregate(partitioner, 2)]:
        assert sum(part.num_rows for part in stage(iter([]))) == 0


def test_nodes_wait_as_the_papers_points_say() -> None:
    window, pane = partitioner_of("window", 100), partitioner_of("pane", 100, 10)
    assert SLOWER / row_cost(window, 1) == pytest.approx(5_000)
    assert 2 * SLOWER / row_cost(window, 2) == pytest.approx(800)
    assert SLOWER / row_cost(pane, 1) == pytest.approx(32_000)


def test_what_was_measured_is_put_on_the_papers_scale() -> None:
    points = {"1": {"rows": 100, "seconds": 10.0, "waited": 9.0}, "2": {"rows": 30, "seconds": 12.0, "waited": 6.0}}
    spark = Spark(
        {
            "scale": {"window": points},
            "split": {"window": {"100": {"python": 1e-4, "jvm": 3e-4}}},
            "tuner": {"sizes": [1, 2, 9, 9, 9], "rows/s": [1.0, 2.0, 50.0, 100.0, 300.0], "fixed": {"1": 5.0}},
        }
    )
    assert spark.rates("scale") == {"window": {1: 10 * SLOWER, 2: 2.5 * SLOWER}}
    assert spark.least_waiting("scale") == 0.5
    assert spark.split_share(100)["window"] == {2: pytest.approx(2.5 * SLOWER * 4e-4)}
    assert spark.tuned() == (9, pytest.approx(150.0))  # of as many rows each, one takes three times as long


def test_the_split_of_a_batch_that_was_not_measured_is_that_of_the_largest_that_was() -> None:
    cost = {"100": {"python": 1e-4, "jvm": 0.0}}
    points = {str(nodes): {"rows": 10, "seconds": 1.0, "waited": 1.0} for nodes in (1, 2)}
    found = {"scale": {"batch 50": points}, "split": {"batch 2": cost, "batch 10": cost, "pane": cost}}
    assert Spark(found).measured_split("batch 50") == "batch 10"
    fifty = {"100": {"python": 3e-4, "jvm": 0.0}}
    measured = Spark({**found, "split": {**found["split"], "batch 50": fifty}})
    assert measured.measured_split("batch 50") == "batch 50"
    shares = [each.split_share(100)["batch 50"][2] for each in (Spark(found), measured)]
    assert shares[1] == pytest.approx(3 * shares[0])


TUNER = {
    "sizes": [3, 9, 9],
    "rows/s": [1.0, 50.0, 60.0],
    "fixed": {"9": 90.0, "100": 120.0},
    "costs": {"update": 6e-5, "open_close": 0.0, "other": 1e-3},
    "true": {"update": 2e-5, "other": 3e-3},
    "rate": 250.0,
    "size": 400,
    "slide": 4,
    "workers": 4,
    "headroom": 0.1,
    "latency": 100.0,
    "period": 2.0,
}


def test_the_tuners_costs_are_shown_beside_the_true_ones_and_change_the_size_by_inequality_3() -> None:
    spark = Spark({"tuner": TUNER})
    costs = spark.costs()
    assert (costs["measured"].other, costs["true"].other, costs["true"].open_close) == (1e-3, 3e-3, 0.0)
    exact = {kind: spark.equations(each)["exact count of updates"] for kind, each in costs.items()}
    assert exact["true"] > exact["measured"]  # a row that is dear to read wants larger batches
    sizes, costs_shown = list(OnSpark(spark)._sizes())[1:]
    assert len(sizes.rows) == 7
    assert [row[0] for row in costs_shown.rows] == ["measured", "true"]
    assert costs_shown.rows[1][1:] == (pytest.approx(20.0), pytest.approx(3000.0))


def test_every_stream_that_was_tuned_has_its_check_and_tables() -> None:
    keyed = {**TUNER, "sizes": [3, 100], "rows/s": [1.0, 90.0], "fixed": {"9": 90.0, "100": 100.0}}
    assert list(OnSpark(Spark({})).tuners) == []
    both = OnSpark(Spark({"tuner": TUNER, "keyed tuner": keyed}))
    tables = list(both._sizes())
    assert [table.title.partition(", rows/s")[0] for table in tables[:2]] == [
        "Batches of fixed sizes on Spark, 4 workers, without a key",
        "Batches of fixed sizes on Spark, 4 workers, with eight keys",
    ]
    assert tables[2].rows[:2] == (
        ("the tuner, without a key", 9, 60.0, 0.5),
        ("the tuner, with eight keys", 100, 90.0, 0.9),
    )


def test_a_row_of_linear_road_costs_the_slope_between_two_numbers_of_rows() -> None:
    road = {f"apply by {way}": {"100": 9.0, "300": 10.0} for way in ("window", "batch", "pane")}
    road |= {"Spark's groupBy(window)": {"100": 3.0, "300": 5.0}}
    spark = Spark({"road": road})
    assert spark.road()["apply by pane"] == ({100: 9.0, 300: 10.0}, pytest.approx(200.0))
    check, *_order = OnSpark(spark)._road_checks()
    assert check.essential
    assert check.value == pytest.approx(2.0)  # though both of its runs take longer


def test_what_follows_from_the_costs_that_went_in_is_a_detail_and_what_was_asked_of_spark_is_not() -> None:
    checks = list(OnSpark(Spark.read()).checks())
    given = [check for check in checks if GIVEN in check.name]
    assert len(given) == 2
    assert not any(check.essential for check in given)
    asked = {
        "Spark: rows/s by window, 2 nodes over 1": (None, 0.2),
        "Spark: rows/s by pane over linear, the least": (0.85, None),
        "Spark: rows/s by `apply` by pane over linear, the least": (0.85, None),
    }
    assert {check.name: (check.low, check.high) for check in checks if check.essential}.items() >= asked.items()


def merged(ratios: list[float]) -> dict[str, dict[str, list[float]]]:
    """Two ways, of which the one without a lead is the same by any number of nodes."""
    one = [1e-6] * len(ratios)
    many = [1e-6 * ratio for ratio in ratios]
    return {name: {"1": one, "16": many} for name in ("in any order", "in order")} | {LEVEL: {"1": one, "16": one}}


@pytest.mark.parametrize(
    ("ratios", "cheaper", "dearer"),
    [
        ([0.9, 0.91, 0.89, 0.9], True, False),
        ([0.7, 1.2, 0.7, 1.2], False, False),  # either may be by chance
        ([1.1, 1.11, 1.09, 1.1], False, True),
    ],
)
def test_more_nodes_make_a_merge_cheaper_or_dearer_only_beyond_what_rounds_differ(
    ratios: list[float], cheaper: bool, dearer: bool
) -> None:
    spark = Spark({"merge": merged(ratios), "together": {"1": [2e-6], "1000": [1e-6]}})
    checks = {check.name.partition(", 16")[0]: check for check in OnSpark(spark)._merge_checks()}
    assert checks["merge in any order"].holds == cheaper
    assert checks["merge in order"].holds == dearer


@pytest.mark.parametrize(("batch", "holds"), [(1e-6, False), (1e-5, True)])
def test_the_split_by_batch_is_busier_than_by_window_only_if_a_row_costs_more_than_a_few_copies(
    batch: float, holds: bool
) -> None:
    costs = {"window": 1e-5, "batch 50": batch, "pane": 1e-6}
    rows = {"window": 10, "batch 50": 50, "pane": 100}
    check = OnSpark(
        Spark(
            {
                "scale": {way: {"4": {"rows": count, "seconds": 1.0}} for way, count in rows.items()},
                "split": {way: {"100": {"python": cost, "jvm": 0.0}} for way, cost in costs.items()},
            }
        )
    )._split_check()
    assert check.holds == holds
    assert check.value == pytest.approx(5 * batch / 1e-5)
