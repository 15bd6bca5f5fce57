"""A stream of keys that can be replayed any number of times: from a file, or generated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.simulate.columns import read_columns
from skewless.workload import Zipf

BLOCK = 250_000
GENERATED_TUPLES = 1_000_000


@dataclass(frozen=True)
class Stream:
    """A named stream of known length; each call of `blocks` starts it again."""

    name: str
    tuples: int
    blocks: Callable[[], Iterator[Int64Array]]


@contextmanager
def open_stream(
    source: str,
    key: Sequence[str] = (),
    tuples: int | None = None,
    seed: int = 1,
    on_read: Callable[[int], None] = lambda _: None,
) -> Iterator[Stream]:
    """A stream to replay, for as long as the context is open.

    A file is read once: the hashes of its keys go to a temporary file of 8 bytes a row, from which every replay reads.

    Parameters
    ----------
    source
        A file, or `zipf:EXPONENT`, or `zipf:EXPONENT:keys=N`.
    key
        The columns that together are the key; none for a generated stream.
    tuples
        Length of a generated stream, a million if not given; for a file, only this many of its first rows are read.
    seed
        Seed of a generated stream.
    on_read
        Called with the number of rows of each batch that was read.

    Examples
    --------
    >>> with open_stream("zipf:1.5:keys=1000", tuples=500_000) as stream:
    ...     stream.name, stream.tuples, [len(block) for block in stream.blocks()]
    ('zipf:1.5:keys=1000', 500000, [250000, 250000])
    """
    if tuples is not None and tuples < 1:
        raise SkewlessError(f"--tuples must be at least 1, not {tuples}")
    if source.startswith("zipf:"):
        if key:
            raise SkewlessError(f"{source} has no columns: leave out --key")
        generated, n = parse_zipf(source, seed), tuples or GENERATED_TUPLES
        yield Stream(source, n, lambda: generated.blocks(n, BLOCK))
        return
    with TemporaryFile(prefix="skewless-") as file:
        rows = 0
        for keys in _hashed(source, key, tuples):
            file.write(keys.data)
            rows += len(keys)
            on_read(len(keys))
        if rows == 0:
            raise SkewlessError(f"{source} is empty: there are no rows to replay")
        yield Stream(source, rows, lambda: _stored(file, rows))


def parse_zipf(spec: str, seed: int) -> Zipf:
    """The stream that `zipf:EXPONENT` or `zipf:EXPONENT:keys=N` describes.

    >>> parse_zipf("zipf:1.0:keys=10000", seed=7)
    Zipf(s=1.0, keys=10000, seed=7, hottest=0)
    """
    form = re.fullmatch(r"zipf:([0-9.e+-]+)(?::keys=([0-9]+))?", spec)
    try:
        if form is not None:
            return Zipf(float(form[1]), int(form[2] or Zipf.keys), seed)
    except SkewlessError as error:
        raise SkewlessError(f"{spec}: {error}") from error
    except ValueError:
        pass  # digits, dots and signs that make no number
    raise SkewlessError(f"{spec}: write zipf:EXPONENT or zipf:EXPONENT:keys=N, such as zipf:1.5:keys=1000")


def _hashed(source: str, key: Sequence[str], tuples: int | None) -> Iterator[Int64Array]:
    left = tuples
    for columns in read_columns(Path(source), key):
        keys = xxhash64(*columns)[:left]
        yield keys
        if left is not None:
            left -= len(keys)
            if left == 0:
                return


def _stored(file: IO[bytes], rows: int) -> Iterator[Int64Array]:
    for start in range(0, rows, BLOCK):
        keys = np.empty(min(BLOCK, rows - start), np.int64)
        file.seek(start * keys.itemsize)
        keys.data.cast("B")[:] = file.read(keys.nbytes)
        yield keys
