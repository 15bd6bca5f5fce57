"""All values of a group as a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from skewless.aggregate.kernel import Fields, Kernel, ObjectKernel
from skewless.aggregate.measure import Measure


class Collect(Measure):
    """A list of the values that are not null, in no particular order; an empty list if there are none.

    The state grows with the values, so use it only where the lists stay short.
    """

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Accepts any type."""
        return CollectKernel(*types)


class CollectKernel(ObjectKernel):
    """Keeps a list of the values of each group.

    Parameters
    ----------
    kind
        The column's type.
    """

    nullable = False

    def __init__(self, kind: pa.DataType) -> None:
        self.result = pa.list_(kind)
        self.types = (self.result,)

    def read(self, column: pa.Array) -> Any:
        """The values as Python objects."""
        return column.to_pylist()

    def made(self, values: Any) -> Any:
        """The slice itself, which is a list of its own."""
        return values

    def merged(self, a: Any, b: Any) -> Any:
        """The second list after the first."""
        return a + b

    def finish(self, fields: Fields) -> pa.Array:
        """The lists."""
        return pa.array([values or [] for values in fields[0]], type=self.result)
