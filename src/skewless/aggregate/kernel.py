"""What an aggregate becomes once the types of its columns are known: arithmetic on arrays, one element per group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from skewless.core.arrays import Int64Array

Fields: TypeAlias = tuple[np.ndarray[Any, Any], ...]
"""The state of an aggregate for many groups at once: aligned arrays, one for each number it keeps."""


class Kernel(ABC):
    """Computes one aggregate: makes partial states from rows, joins states, and makes values from states.

    A state is one element of each of the `Fields`. Joining a state with the empty state does not change it. `join` is
    associative and commutative up to rounding, so partial states can be joined in any order.
    """

    types: tuple[pa.DataType, ...]
    """The types of the fields, as they are sent and stored."""
    result: pa.DataType
    """The type of the values."""
    nullable = True
    """Whether a value can be null."""
    inverts = False
    """Whether `leave` undoes `join` exactly."""

    @abstractmethod
    def partial(self, groups: Int64Array, n: int, columns: Sequence[pa.Array]) -> Fields:
        """The states of `n` groups, from rows whose group is in `groups` (each group has a row)."""

    @abstractmethod
    def empty(self, n: int) -> Fields:
        """`n` empty states."""

    @abstractmethod
    def join(self, a: Fields, b: Fields) -> Fields:
        """The states of the rows of `a` and `b` together, element by element."""

    def leave(self, a: Fields, b: Fields) -> Fields:
        """The states of the rows of `a` without those of `b`."""
        raise NotImplementedError(f"{type(self).__name__} does not invert")

    @abstractmethod
    def finish(self, fields: Fields) -> pa.Array:
        """The values, of type `result`."""

    def dump(self, fields: Fields) -> list[pa.Array]:
        """The fields as Arrow arrays of `types`."""
        return [pa.array(field, type=kind) for field, kind in zip(fields, self.types, strict=True)]

    def forget(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Release what the fields made so far refer to; none of these fields will be used again."""

    def load(self, arrays: Sequence[pa.Array]) -> Fields:
        """The fields that `dump` gave, as arrays that can be written to."""
        return tuple(np.array(array) for array in arrays)


def take(fields: Fields, at: Any) -> Fields:
    """The elements at these places."""
    return tuple(field[at] for field in fields)


def put(fields: Fields, at: Any, values: Fields) -> None:
    """Replace the elements at these places."""
    for field, value in zip(fields, values, strict=True):
        field[at] = value


def concat(parts: Sequence[Fields]) -> Fields:
    """The fields of all parts, one part after the other."""
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
