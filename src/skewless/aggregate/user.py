"""Aggregates that users write: three methods on Arrow tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from skewless.aggregate.kernel import Fields, Kernel
from skewless.aggregate.measure import Measure
from skewless.core.arrays import Int64Array
from skewless.core.errors import SkewlessError

GROUP = "group"


class Aggregate(Measure):
    """The base class for your own aggregates.

    Write three methods, each on an Arrow table of many groups at once. An int64 column `group` says which group a row
    belongs to; groups come in any order, and each method returns exactly one row for each group it was given. `partial`
    turns rows into states, `merge` combines several states of a group into one, and `finish` turns states into values.
    States are merged in any order and in any number of steps, so the result of `merge` must not depend on either. A
    method may use nothing but its table, because the methods run on different machines. They are first called with
    tables of no rows, to learn the types.

    Parameters
    ----------
    columns
        The columns that it reads. They keep their names in the table that `partial` is given; none may be called
        `group`.

    Examples
    --------
    The average price of an item, weighted by the number that was sold:

    >>> import pyarrow.compute as pc
    >>> class WeightedMean(Aggregate):
    ...     def partial(self, table):
    ...         paid = pc.multiply(table["price"], table["sold"])
    ...         return self.merge(table.append_column("paid", paid).select(["group", "paid", "sold"]))
    ...
    ...     def merge(self, table):
    ...         sums = table.group_by("group").aggregate([("paid", "sum"), ("sold", "sum")])
    ...         return sums.rename_columns(["group", "paid", "sold"])
    ...
    ...     def finish(self, table):
    ...         mean = pc.divide(table["paid"], table["sold"])
    ...         return table.select(["group"]).append_column("mean", mean)
    >>> kernel = WeightedMean("price", "sold").bind([pa.float64(), pa.int64()])
    >>> groups, price, sold = np.array([0, 1, 0]), pa.array([2.0, 9.0, 4.0]), pa.array([3, 1, 1])
    >>> kernel.finish(kernel.partial(groups, 2, [price, sold])).to_pylist()
    [2.5, 9.0]
    """

    heavy: ClassVar[bool] = True

    def __init__(self, *columns: str) -> None:
        super().__init__(*columns)
        if GROUP in columns:
            raise SkewlessError(
                f"{self} reads a column named 'group', which is the name of its groups; rename the column first "
                "with df.withColumnRenamed"
            )

    @abstractmethod
    def partial(self, table: pa.Table) -> pa.Table:
        """Turns rows into states: takes `group` and the columns it reads, returns `group` and the state's columns."""

    @abstractmethod
    def merge(self, table: pa.Table) -> pa.Table:
        """Combines states: takes several rows for a group and returns one, with the same columns."""

    @abstractmethod
    def finish(self, table: pa.Table) -> pa.Table:
        """Turns states into values: returns `group` and the value. Several value columns become a struct."""

    def bind(self, types: Sequence[pa.DataType]) -> Kernel:
        """Tries the methods on tables of no rows."""
        return PooledKernel(self, types)


class PooledKernel(Kernel):
    """Keeps the states of a user's aggregate as rows of a pool. Its one field is the row's number, or -1 for no state.

    The pool grows until `forget` empties it.

    Parameters
    ----------
    aggregate
        The aggregate whose methods are called.
    types
        The types of the columns that it reads.
    """

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType]) -> None:
        self.aggregate = aggregate
        self.reads = pa.schema([(GROUP, pa.int64()), *zip(aggregate.columns, types, strict=True)])
        first = self._try("partial", self.reads)
        self.state = self._try("merge", _with_group(first))  # a sum may have a wider type than the values it adds up
        if self.state.names != first.names:
            raise self._error("merge", f"makes columns {self.state.names} of {first.names}; return those it was given")
        again = self._try("merge", _with_group(self.state))
        if again != self.state:
            raise self._error("merge", f"makes {again.types} of {self.state.types}; keep the types of its columns")
        values = self._try("finish", _with_group(self.state))
        self.result = values.types[0] if len(values) == 1 else pa.struct(list(values))
        self.types = (pa.bool_(), *self.state.types)
        self.pool = Pool()

    def partial(self, groups: Int64Array, n: int, columns: Sequence[pa.Array]) -> Fields:
        """Calls `partial` with all rows."""
        table = pa.Table.from_arrays([pa.array(groups, type=pa.int64()), *columns], schema=self.reads)
        return (self.pool.add(self._call("partial", table, n).cast(self.state)),)

    def empty(self, n: int) -> Fields:
        """States without a row."""
        return (np.full(n, -1, dtype=np.int64),)

    def join(self, a: Fields, b: Fields) -> Fields:
        """Calls `merge` where both have a state."""
        (x,), (y,) = a, b
        both = np.flatnonzero((x >= 0) & (y >= 0))
        joined = np.maximum(x, y)
        if len(both):
            rows = self.pool.take(np.concatenate([x[both], y[both]]))
            table = _grouped(rows, np.tile(np.arange(len(both)), 2))
            joined[both] = self.pool.add(self._call("merge", table, len(both)).cast(self.state))
        return (joined,)

    def finish(self, fields: Fields) -> pa.Array:
        """Calls `finish` with all states; null where there is none."""
        (ids,) = fields
        have = ids >= 0
        if not have.any():
            return pa.nulls(len(ids), self.result)
        n = int(have.sum())
        values = self._call("finish", _grouped(self.pool.take(ids[have]), np.arange(n)), n)
        arrays = [column.combine_chunks() for column in values.columns]
        value = arrays[0] if len(arrays) == 1 else pa.StructArray.from_arrays(arrays, fields=list(values.schema))
        return value.cast(self.result).take(_places(have))

    def dump(self, fields: Fields) -> list[pa.Array]:
        """Which groups have a state, and the columns of the states."""
        (ids,) = fields
        have = ids >= 0
        if not have.any():
            return [pa.array(have), *(pa.nulls(len(ids), kind) for kind in self.state.types)]
        rows = self.pool.take(ids[have]).take(_places(have))
        return [pa.array(have), *(column.combine_chunks() for column in rows.columns)]

    def load(self, arrays: Sequence[pa.Array]) -> Fields:
        """Adds the states to the pool."""
        seen, *columns = arrays
        have = np.asarray(seen)
        ids = np.full(len(have), -1, dtype=np.int64)
        if have.any():
            ids[have] = self.pool.add(pa.Table.from_arrays(columns, schema=self.state).filter(seen))
        return (ids,)

    def forget(self) -> None:
        """Empty the pool."""
        self.pool = Pool()

    def _try(self, method: str, schema: pa.Schema) -> pa.Schema:
        """The columns that a method returns for a table of no rows."""
        found = self._call(method, schema.empty_table(), 0).schema
        if not found.names:
            raise self._error(method, "returns no column besides 'group'; return what it computed")
        for field in found:
            if pa.types.is_null(field.type):
                raise self._error(
                    method, f"gives column {field.name!r} no type when there are no rows; pass one to pa.array"
                )
        return pa.schema([(field.name, field.type) for field in found])

    def _call(self, method: str, table: pa.Table, n: int) -> pa.Table:
        """What a method returns for groups 0 to `n` - 1, in this order and without the column `group`."""
        try:
            found = getattr(self.aggregate, method)(table)
        except Exception as error:
            rows = "a table of no rows" if not n else f"{table.num_rows} rows"
            raise self._error(method, f"fails on {rows}: {type(error).__name__}: {error}") from error
        if not isinstance(found, pa.Table):
            raise self._error(method, f"returns a {type(found).__name__}; return a pyarrow.Table")
        if found.schema.names.count(GROUP) != 1:
            raise self._error(method, f"returns columns {found.schema.names}; return one named 'group' among them")
        group = np.asarray(found[GROUP].combine_chunks())
        order = np.argsort(group, kind="stable")
        if not np.array_equal(group[order], np.arange(n)):
            raise self._error(method, f"returns {len(group)} rows for {n} groups; return exactly one row for each")
        found = found.drop_columns([GROUP])
        return found if np.array_equal(order, np.arange(n)) else found.take(pa.array(order))

    def _error(self, method: str, what: str) -> SkewlessError:
        return SkewlessError(f"{type(self.aggregate).__name__}.{method} {what}")


class Pool:
    """Keeps rows in a few chunks. Rows are numbered in the order in which they come, and are never removed.

    The rows stay in the process that added them: a pool that is pickled arrives empty.
    """

    def __init__(self) -> None:
        self.chunks: list[pa.Table] = []
        self.size = 0

    def __reduce__(self) -> tuple[type[Pool], tuple[()]]:
        return Pool, ()

    def add(self, rows: pa.Table) -> Int64Array:
        """Add rows, and return their numbers."""
        ids = np.arange(self.size, self.size + rows.num_rows)
        if not rows.num_rows:
            return ids
        self.size += rows.num_rows
        self.chunks.append(rows.combine_chunks())
        # Each chunk has at least twice the rows of the next, so there are few chunks and a row is seldom copied.
        while len(self.chunks) > 1 and self.chunks[-2].num_rows < 2 * self.chunks[-1].num_rows:
            self.chunks[-2:] = [pa.concat_tables(self.chunks[-2:]).combine_chunks()]
        return ids

    def take(self, ids: Int64Array) -> pa.Table:
        """The rows with these numbers; there must be at least one number."""
        starts = np.cumsum([0, *(chunk.num_rows for chunk in self.chunks[:-1])])
        chunk = np.searchsorted(starts, ids, side="right") - 1
        order = np.argsort(chunk, kind="stable")
        parts = [self.chunks[at].take(pa.array(ids[chunk == at] - starts[at])) for at in np.unique(chunk).tolist()]
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return pa.concat_tables(parts).combine_chunks().take(pa.array(places))


def _with_group(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(GROUP, pa.int64()), *zip(schema.names, schema.types, strict=True)])


def _grouped(rows: pa.Table, groups: Int64Array) -> pa.Table:
    return rows.add_column(0, GROUP, pa.array(groups, type=pa.int64()))


def _places(have: Any) -> pa.Array:
    """For each true element, the number of true ones before it; null for the others. Taking by it fills the gaps."""
    return pa.array(np.cumsum(have) - 1, mask=~have)
