"""What `agg` takes: an aggregate by name, not yet bound to the types of its columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import pyarrow as pa

from skewless.aggregate.kernel import Kernel
from skewless.core.errors import SkewlessError

TIME = "__skewless_time"
"""Used in place of a column's name: the time of the row, in microseconds since 1970."""
NUMBERS = ("numbers", pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
"""What `check` takes after the type of a column that must be of numbers."""


class Measure(ABC):
    """An aggregate over some columns, such as `sum("price")`.

    Parameters
    ----------
    columns
        The columns that it reads.
    """

    heavy: ClassVar[bool] = False
    """Whether a row costs enough to be worth moving to an idle worker."""

    def __init__(self, *columns: str) -> None:
        for column in columns:
            if not isinstance(column, str):
                raise SkewlessError(f"{column!r} is not the name of a column; compute it first with df.withColumn")
        self.columns = columns

    @abstractmethod
    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """The kernel for columns of these types; a type that cannot be aggregated is refused."""

    @property
    def mark(self) -> str:
        """A text that names what it computes; stored state with another mark belongs to another aggregate."""
        simple = {k: v for k, v in sorted(vars(self).items()) if isinstance(v, str | int | float | tuple | list | None)}
        return f"{type(self).__qualname__} {simple}"

    def check(self, kind: pa.DataType, wanted: str, *tests: Callable[[pa.DataType], bool]) -> pa.DataType:
        """The type of a column; one that passes none of the tests is refused, with a text that says what is wanted."""
        if not any(test(kind) for test in tests):
            raise SkewlessError(f"{self} wants {wanted}, but the column is of type {kind}; cast it or choose another")
        return kind

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}({', '.join(self.columns)})"
