"""All values of a group as a list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skewless.aggregate.kernel import Fields, Kernel
from skewless.aggregate.measure import Measure
from skewless.aggregate.order import drop_nulls, objects
from skewless.core.arrays import Int64Array


class Collect(Measure):
    """A list of the values that are not null, in no particular order; an empty list if there are none.

    The state grows with the values, so use it only where the lists stay short.
    """

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Accepts any type."""
        (kind,) = types
        return CollectKernel(kind)


class CollectKernel(Kernel):
    """Keeps a list of Python values for each group, None before the first value. A list never changes once it is made.

    Parameters
    ----------
    kind
        The column's type.
    """

    nullable = False

    def __init__(self, kind: pa.DataType) -> None:
        self.result = pa.list_(kind)
        self.types = (self.result,)

    def partial(self, groups: Int64Array, n: int, columns: Sequence[pa.Array]) -> Fields:
        """Sorts the rows by group; the rows of a group stay in order."""
        groups, column = drop_nulls(groups, columns[0])
        order = np.argsort(groups, kind="stable")
        values = column.take(pa.array(order)).to_pylist()
        counts = np.bincount(groups, minlength=n)
        ends = np.cumsum(counts)
        bounds = zip((ends - counts).tolist(), ends.tolist(), strict=True)
        return (objects(values[i:j] or None for i, j in bounds),)

    def empty(self, n: int) -> Fields:
        """States without a list."""
        return (np.full(n, None, dtype=object),)

    def join(self, a: Fields, b: Fields) -> Fields:
        """Appends the second list to the first."""
        pairs = zip(a[0], b[0], strict=True)
        return (objects(y if x is None else x if y is None else x + y for x, y in pairs),)

    def finish(self, fields: Fields) -> pa.Array:
        """The lists."""
        return pa.array([values or [] for values in fields[0]], type=self.result)

    def dump(self, fields: Fields) -> list[pa.Array]:
        """The lists, null where there is none."""
        return [pa.array(fields[0].tolist(), type=self.result)]

    def load(self, arrays: Sequence[pa.Array]) -> Fields:
        """The lists that `dump` gave."""
        return (objects(arrays[0].to_pylist()),)
