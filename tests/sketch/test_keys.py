from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.sketch import CountMin, ExactCounts, LossyCounts, Sketch, SlidingCounts, SwitchCounts

SKETCHES = pytest.mark.parametrize(
    "make", [CountMin, ExactCounts, LossyCounts, SwitchCounts, lambda: SlidingCounts(100)]
)


@SKETCHES
@pytest.mark.parametrize(
    "keys",
    [
        np.array([3, 5, 3], np.int32),
        np.array([3, 5, 3], np.uint8),
        np.array([3, 0, 5, 0, 3])[::2],
        [3, 5, 3],
    ],
    ids=["int32", "uint8", "strided", "list"],
)
def test_integers_of_any_kind_are_keys(make: Callable[[], Sketch], keys: np.ndarray) -> None:
    sketch = make()
    sketch.add(keys)
    sketch.add([])  # type: ignore[arg-type]  # an empty list has no type of its own
    assert sketch.total == 3
    assert sketch.estimate(keys).tolist() == [2, 1, 2]


@SKETCHES
@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        (np.array([1.0, 2.5]), "keys are float64: give integers"),
        (np.array(["a", "b"]), "keys are <U1: give integers"),
        (np.array([[1, 2], [3, 4]]), "keys have 2 dimensions"),
        (np.array(1), "keys have 0 dimensions"),
    ],
    ids=["floats", "strings", "matrix", "scalar"],
)
def test_what_is_no_key_is_refused_and_not_counted(
    make: Callable[[], Sketch], keys: np.ndarray, complaint: str
) -> None:
    sketch = make()
    with pytest.raises(SkewlessError, match=complaint):
        sketch.add(keys)
    with pytest.raises(SkewlessError, match=complaint):
        sketch.estimate(keys)
    assert sketch.total == 0


def test_negative_and_unsigned_keys_of_the_same_bits_are_one_key() -> None:
    counts = ExactCounts()
    counts.add(np.array([2**64 - 1], np.uint64))
    assert counts.estimate(np.array([-1])).tolist() == [1]
