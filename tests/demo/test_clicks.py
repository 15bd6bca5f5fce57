from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skewless.core.hashing import xxhash64
from skewless.demo.clicks import Clicks, hash_of

CLICKS = Clicks(batches=4, rows=5000, pages=500)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[pa.Table]:
    folder = tmp_path_factory.mktemp("demo") / "clicks"
    CLICKS.write(folder)
    return [pq.read_table(path) for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)]


def test_there_is_a_file_for_each_micro_batch(tables: list[pa.Table]) -> None:
    assert [table.num_rows for table in tables] == [5000] * 4
    assert tables[0].schema.names == ["page", "user", "ts", "price"]
    assert tables[0].schema.field("price").type == pa.int64()  # sums of cents are exact


def test_the_files_are_in_the_order_of_event_time(tables: list[pa.Table]) -> None:
    times = pa.concat_tables(tables)["ts"].cast(pa.int64()).to_pylist()
    assert times == sorted(times)
    assert 0.99 * 80 < (times[-1] - times[0]) / 1e6 < 80


def test_the_hottest_pages_are_the_ones_named(tables: list[pa.Table]) -> None:
    for batch, table in enumerate(tables):
        counted = [page for page, _ in Counter(table["page"].to_pylist()).most_common(2)]
        assert counted == CLICKS.hottest(batch, 2)


def test_all_hot_pages_are_new_half_way() -> None:
    assert CLICKS.change == 2
    assert CLICKS.hottest(0) == CLICKS.hottest(1)
    assert CLICKS.hottest(2) == CLICKS.hottest(3)
    assert not set(CLICKS.hottest(1)) & set(CLICKS.hottest(2))


def test_the_pages_after_the_last_are_the_first_again() -> None:
    few = replace(CLICKS, pages=10)
    assert few.hottest(2, 6)[:4] == ["/maps/6", "/films/7", "/news/8", "/shoes/9"]
    assert few.hottest(2, 6)[4:] == ["/news/0", "/shoes/1"]


def test_the_same_seed_gives_the_same_clicks(tmp_path: Path, tables: list[pa.Table]) -> None:
    CLICKS.write(tmp_path / "again")
    replace(CLICKS, seed=8).write(tmp_path / "other")
    assert pq.read_table(tmp_path / "again" / "003.parquet").equals(tables[3])
    assert not pq.read_table(tmp_path / "other" / "003.parquet").equals(tables[3])


def test_a_page_is_known_by_its_hash() -> None:
    assert [hash_of("/news/0"), hash_of("/shoes/1")] == xxhash64(["/news/0", "/shoes/1"]).tolist()
