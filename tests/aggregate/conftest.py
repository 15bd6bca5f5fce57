"""How the tests of aggregates run a kernel: rows in pieces, states through Arrow and joined in any order."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skewless.aggregate.kernel import Fields, Kernel, put

Pieced = Callable[..., list[Any]]


@pytest.fixture(scope="session")
def states() -> Callable[..., Fields]:
    """The states of `n` groups, of rows that were split into chunks at random."""
    return _states


@pytest.fixture(scope="session")
def pieced() -> Pieced:
    """The values of `n` groups, of rows that were split into chunks at random."""

    def run(kernel: Kernel, groups: list[int], n: int, *columns: pa.Array, seed: int = 0) -> list[Any]:
        found = kernel.finish(_states(kernel, groups, n, *columns, seed=seed))
        assert found.type == kernel.result
        assert kernel.nullable or not found.null_count
        return found.to_pylist()

    return run


def _states(kernel: Kernel, groups: list[int], n: int, *columns: pa.Array, seed: int = 0) -> Fields:
    rng = random.Random(seed)
    chunks = rng.randint(1, 5)
    chunk = np.array([rng.randrange(chunks) for _ in groups], dtype=np.int64)
    waiting = [kernel.empty(n)]
    for i in range(chunks):
        rows = np.flatnonzero(chunk == i)
        present, local = np.unique(np.array(groups, dtype=np.int64)[rows], return_inverse=True)
        part = kernel.partial(local.astype(np.int64), len(present), [column.take(pa.array(rows)) for column in columns])
        state = kernel.empty(n)
        put(state, present, _travelled(kernel, part))
        waiting.append(_travelled(kernel, state))
    while len(waiting) > 1:
        rng.shuffle(waiting)
        a, b = waiting.pop(), waiting.pop()
        before = _text(kernel, a), _text(kernel, b)
        waiting.append(kernel.join(a, b))
        assert (_text(kernel, a), _text(kernel, b)) == before, "join changed what it was given"
    return waiting[0]


def _travelled(kernel: Kernel, fields: Fields) -> Fields:
    """Through a dump, which keeps the types and gives arrays that can be written to."""
    dumped = kernel.dump(fields)
    assert tuple(array.type for array in dumped) == kernel.types
    loaded = kernel.load(dumped)
    assert all(field.flags.writeable for field in loaded)
    return loaded


def _text(kernel: Kernel, fields: Fields) -> str:
    """What can be compared even where there is a NaN."""
    return repr([array.to_pylist() for array in kernel.dump(fields)])
