"""What an aggregate becomes once the types of its columns are known: arithmetic on arrays, one element per group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from skewless.core.arrays import Int64Array

Fields: TypeAlias = tuple[np.ndarray[Any, Any], ...]
"""The state of an aggregate for many groups at once: aligned arrays, one for each number it keeps."""

# The numpy types of the fields that hold no Python objects, by the ids of their Arrow types.
_PLAIN = {kind.id: kind.to_pandas_dtype() for kind in (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64())}


class Kernel(ABC):
    """Computes one aggregate: makes partial states from rows, joins states, and makes values from states.

    A state is one element of each of the `Fields`. Joining a state with the empty state does not change it. `join` is
    associative and commutative up to rounding, so partial states can be joined in any order. Fields of signed numbers
    and booleans are arrays of these, fields of any other type are arrays of Python objects.
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

    def empty(self, n: int) -> Fields:
        """`n` empty states: all zeros, or None in a field of Python objects."""
        dtypes = (_PLAIN.get(kind.id) for kind in self.types)
        return tuple(np.empty(n, dtype=object) if dtype is None else np.zeros(n, dtype) for dtype in dtypes)

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
        pairs = zip(fields, self.types, strict=True)
        return [pa.array(field if kind.id in _PLAIN else field.tolist(), type=kind) for field, kind in pairs]

    def forget(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Release what the fields made so far refer to; none of these fields will be used again."""

    def load(self, arrays: Sequence[pa.Array]) -> Fields:
        """The fields that `dump` gave, as arrays that can be written to."""
        return tuple(np.array(array) if array.type.id in _PLAIN else objects(array.to_pylist()) for array in arrays)


class ObjectKernel(Kernel):
    """Keeps a Python object for each group, None before the first value. An object never changes once it is made."""

    @abstractmethod
    def read(self, column: pa.Array) -> Any:
        """The values of a column without nulls, in a form that can be sliced."""

    @abstractmethod
    def made(self, values: Any) -> Any:
        """The object for a group, from its slice of what `read` gave; None if there is nothing to keep."""

    @abstractmethod
    def merged(self, a: Any, b: Any) -> Any:
        """A new object for the values of both."""

    def partial(self, groups: Int64Array, n: int, columns: Sequence[pa.Array]) -> Fields:
        """Sorts the rows by group and makes an object of each; the rows of a group stay in order."""
        groups, column = drop_nulls(groups, columns[0])
        order = np.argsort(groups, kind="stable")
        values = self.read(column.take(pa.array(order)))
        counts = np.bincount(groups, minlength=n)
        ends = np.cumsum(counts)
        bounds = zip((ends - counts).tolist(), ends.tolist(), strict=True)
        return (objects(self.made(values[i:j]) if i < j else None for i, j in bounds),)

    def join(self, a: Fields, b: Fields) -> Fields:
        """Merges the objects where both states have one."""
        pairs = zip(a[0], b[0], strict=True)
        return (objects(y if x is None else x if y is None else self.merged(x, y) for x, y in pairs),)


def drop_nulls(groups: Int64Array, column: pa.Array) -> tuple[Int64Array, pa.Array]:
    """The values that are not null, and their groups."""
    if not column.null_count:
        return groups, column
    return groups[np.asarray(column.is_valid())], column.drop_null()


def objects(values: Iterable[Any]) -> Any:
    """An array of Python objects, whatever they are."""
    return np.fromiter(values, dtype=object)


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
