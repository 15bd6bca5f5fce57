"""The clickstream: a few pages get most of the clicks, and half-way through the stream other pages take their place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skewless.core.hashing import xxhash64
from skewless.workload import Shift, new_hot_keys

SECTIONS = ("news", "shoes", "games", "music", "books", "toys", "maps", "films")
START = 1_767_225_600_000_000  # 2026-01-01, in microseconds


@dataclass(frozen=True)
class Clicks:
    """Clicks on pages with Zipf frequencies, a file for each micro-batch.

    Parameters
    ----------
    batches, rows
        The number of micro-batches, and of clicks in each.
    seconds
        Seconds of event time in a micro-batch.
    pages
        The number of pages that can be clicked on.
    skew
        Zipf's exponent.
    seed
        The same seed gives the same clicks.

    Examples
    --------
    >>> clicks = Clicks(batches=4, pages=1000)
    >>> [clicks.hottest(batch, 2) for batch in range(4)]
    [['/news/0', '/shoes/1'], ['/news/0', '/shoes/1'], ['/games/618', '/music/619'], ['/games/618', '/music/619']]
    """

    batches: int = 6
    rows: int = 30_000
    seconds: int = 20
    pages: int = 20_000
    skew: float = 1.5
    seed: int = 7

    @property
    def change(self) -> int:
        """The first micro-batch in which other pages are hot."""
        return self.batches // 2

    def hottest(self, batch: int, most: int = 3) -> list[str]:
        """The pages with the most clicks in a micro-batch, hottest first."""
        first = self._keys.phase(batch // self.change).hottest
        return [name_of((first + rank) % self.pages) for rank in range(most)]

    def write(self, folder: Path) -> None:
        """Write a Parquet file for each micro-batch; Spark reads them in the order of their times."""
        folder.mkdir(parents=True)
        names = pa.array([name_of(page) for page in range(self.pages)])
        chance = np.random.default_rng(self.seed)
        for batch, pages in enumerate(self._keys.blocks(self.batches * self.rows, self.rows)):
            seconds = (batch + np.sort(chance.random(self.rows))) * self.seconds
            times = START + (seconds * 1e6).astype(np.int64)
            columns = {
                "page": names.take(pa.array(pages)),
                "user": pa.array(chance.integers(0, self.pages, self.rows)).cast(pa.string()),
                "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
                "price": chance.integers(1, 10_000, self.rows),
            }
            path = folder / f"{batch:03}.parquet"
            pq.write_table(pa.table(columns), path)
            os.utime(path, (START // 10**6 + batch,) * 2)

    @cached_property
    def _keys(self) -> Shift:
        return new_hot_keys(self.skew, every=self.change * self.rows, keys=self.pages, seed=self.seed)


def name_of(page: int) -> str:
    """The name of a page by its number.

    >>> name_of(9)
    '/shoes/9'
    """
    return f"/{SECTIONS[page % len(SECTIONS)]}/{page}"


def hash_of(page: str) -> int:
    """The hash by which a routing policy knows a page."""
    return int(xxhash64([page])[0])
