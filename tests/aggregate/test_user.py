from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

from skewless.aggregate import Aggregate
from skewless.core.errors import SkewlessError

N = 4
SEEDS = st.integers(0, 2**32)


def per_group(table: pa.Table, *calls: tuple[str, str]) -> pa.Table:
    """Each column aggregated by a function, under its own name."""
    found = table.group_by("group").aggregate(list(calls))
    return found.rename_columns(["group", *(column for column, _ in calls)])


class WeightedMean(Aggregate):
    def partial(self, table: pa.Table) -> pa.Table:
        paid = pc.multiply(table["price"], table["sold"])
        return self.merge(table.append_column("paid", paid).select(["group", "paid", "sold"]))

    def merge(self, table: pa.Table) -> pa.Table:
        return per_group(table, ("paid", "sum"), ("sold", "sum"))

    def finish(self, table: pa.Table) -> pa.Table:
        return table.select(["group"]).append_column("mean", pc.divide(table["paid"], table["sold"]))


class Words(Aggregate):
    """The sorted words of a group and their number, with lists and text in the state, and rows in reverse."""

    def partial(self, table: pa.Table) -> pa.Table:
        return self._backwards(table.group_by("group").aggregate([("word", "list")]), "words")

    def merge(self, table: pa.Table) -> pa.Table:
        flat = pa.table(
            {
                "group": table["group"].take(pc.list_parent_indices(table["words"])),
                "word": pc.list_flatten(table["words"]),
            }
        )
        # A group of nothing but empty lists is not in the flat table.
        return self._backwards(flat.group_by("group").aggregate([("word", "list")]), "words")

    def finish(self, table: pa.Table) -> pa.Table:
        texts = [" ".join(sorted(words)) for words in table["words"].to_pylist()]
        return pa.table(
            {
                "n": pc.list_value_length(table["words"]).cast(pa.int64()),
                "text": pa.array(texts, type=pa.string()),
                "group": table["group"],
            }
        )

    def _backwards(self, table: pa.Table, name: str) -> pa.Table:
        return table.rename_columns(["group", name]).sort_by([("group", "descending")])


class Narrow(Aggregate):
    """A state that is wider once it is merged."""

    def partial(self, table: pa.Table) -> pa.Table:
        return per_group(table, ("x", "max"))

    def merge(self, table: pa.Table) -> pa.Table:
        return per_group(table, ("x", "sum"))

    def finish(self, table: pa.Table) -> pa.Table:
        return table


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, N - 1), st.integers(-50, 50), st.integers(1, 9)), max_size=40), SEEDS)
def test_a_weighted_mean_is_that_of_all_rows(pieced, data, seed):
    groups, price, sold = ([row[i] for row in data] for i in range(3))
    kernel = WeightedMean("price", "sold").bind([pa.float64(), pa.int32()])
    arrays = pa.array(price, type=pa.float64()), pa.array(sold, type=pa.int32())
    wanted: list[Any] = []
    for group in range(N):
        rows = [(p, s) for g, p, s in data if g == group]
        wanted.append(sum(p * s for p, s in rows) / sum(s for _, s in rows) if rows else None)
    assert pieced(kernel, groups, N, *arrays, seed=seed) == wanted


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, N - 1), st.sampled_from("abc")), max_size=40), SEEDS)
def test_states_may_be_lists_and_several_values_become_a_struct(pieced, data, seed):
    kernel = Words("word").bind([pa.string()])
    assert kernel.result == pa.struct([("n", pa.int64()), ("text", pa.string())])
    assert kernel.types == (pa.bool_(), pa.list_(pa.string()))
    words = [sorted(word for at, word in data if at == group) for group in range(N)]
    found = pieced(kernel, [group for group, _ in data], N, pa.array([w for _, w in data], type=pa.string()), seed=seed)
    assert found == [{"n": len(those), "text": " ".join(those)} if those else None for those in words]


def test_a_state_has_the_type_that_merge_gives_it():
    kernel = Narrow("x").bind([pa.int8()])
    assert kernel.result == pa.int64()
    fields = kernel.partial(np.array([0]), 1, [pa.array([100], type=pa.int8())])
    assert [array.type for array in kernel.dump(fields)] == [pa.bool_(), pa.int64()]
    assert kernel.finish(fields).type == pa.int64()
    assert kernel.finish(kernel.join(fields, fields)).to_pylist() == [200]


def test_the_pool_stays_in_few_chunks_and_finds_every_row():
    kernel = Narrow("x").bind([pa.int64()])
    fields = kernel.partial(np.array([0]), 1, [pa.array([0])])
    ids = [fields[0]]
    for i in range(1, 300):
        ids.append(kernel.partial(np.array([0]), 1, [pa.array([i])])[0])
        fields = kernel.join(fields, (ids[-1],))
    assert kernel.finish(fields).to_pylist() == [299 * 300 // 2]
    assert len(kernel.pool.chunks) <= 10  # of 599 rows
    assert kernel.finish((np.concatenate(ids[::-1]),)).to_pylist() == list(range(300))[::-1]


@pytest.mark.parametrize("pickler", [pickle, cloudpickle], ids=["pickle", "cloudpickle"])
def test_a_kernel_travels_without_its_pool(pickler):
    kernel = Narrow("x").bind([pa.int64()])
    before = pickler.dumps(kernel)
    fields = kernel.partial(np.arange(1000), 1000, [pa.array(range(1000))])
    assert len(pickler.dumps(kernel)) == len(before)
    other = pickle.loads(pickler.dumps(kernel))
    assert other.finish(other.load(kernel.dump(fields))).to_pylist() == list(range(1000))
    assert (other.types, other.result) == (kernel.types, kernel.result)


def test_a_class_that_was_made_on_the_fly_travels_too():
    class Local(Narrow):
        def finish(self, table: pa.Table) -> pa.Table:
            return table.set_column(1, "x", pc.negate(table["x"]))

    kernel = pickle.loads(cloudpickle.dumps(Local("x").bind([pa.int64()])))
    assert kernel.finish(kernel.partial(np.array([0]), 1, [pa.array([4])])).to_pylist() == [-4]


def test_an_empty_state_stays_empty():
    kernel = Narrow("x").bind([pa.int64()])
    one = kernel.partial(np.array([0]), 1, [pa.array([7])])
    fields = np.concatenate([one[0], kernel.empty(1)[0], one[0]])
    loaded = kernel.load(kernel.dump((fields,)))
    assert (loaded[0] < 0).tolist() == [False, True, False]
    assert kernel.finish(loaded).to_pylist() == [7, None, 7]
    assert kernel.finish(kernel.load(kernel.dump(kernel.empty(2)))).to_pylist() == [None, None]
    assert kernel.finish(kernel.empty(0)).to_pylist() == []


def test_a_user_aggregate_is_heavy():
    assert Narrow("x").heavy


def test_a_column_named_group_must_be_renamed():
    with pytest.raises(SkewlessError, match="withColumnRenamed"):
        Narrow("group")


def altered(**methods: Any) -> Aggregate:
    return type("Broken", (Narrow,), methods)("x")


def typeless(self: Aggregate, table: pa.Table) -> pa.Table:
    return pa.table({"group": table["group"], "x": pa.array(table["x"].to_pylist())})


def widening(self: Aggregate, table: pa.Table) -> pa.Table:
    wider = pa.list_(table.schema.field("x").type)
    return pa.table({"group": table["group"], "x": pa.array([[x] for x in table["x"].to_pylist()], type=wider)})


@pytest.mark.parametrize("method", ["partial", "merge", "finish"])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda self, table: table["no_such_column"], "fails on a table of no rows: KeyError: .*no_such_column"),
        (lambda self, table: table.select(["x"]), "return one named 'group'"),
        (lambda self, table: table.select(["group"]), "no column besides 'group'"),
        (lambda self, table: table.to_pydict(), "returns a dict; return a pyarrow.Table"),
        (lambda self, table: pa.table({"group": [0], "x": [1]}), "1 rows for 0 groups"),
        (typeless, "gives column 'x' no type"),
    ],
)
def test_a_mistake_is_found_before_the_first_row(method, function, message):
    with pytest.raises(SkewlessError, match=f"Broken.{method} .*{message}"):
        altered(**{method: function}).bind([pa.int64()])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda self, table: table.rename_columns(["group", "y"]), r"\['y'\] of \['x'\]; return those"),
        (widening, "keep the types"),
    ],
)
def test_merge_must_give_what_it_takes(function, message):
    with pytest.raises(SkewlessError, match=f"Broken.merge .*{message}"):
        altered(merge=function).bind([pa.int64()])


def test_each_group_must_get_one_row():
    groups, column = np.array([0, 1, 1]), pa.array([1, 2, 3])
    every_row = altered(partial=lambda self, table: table).bind([pa.int64()])
    with pytest.raises(SkewlessError, match=r"Broken.partial returns 3 rows for 2 groups"):
        every_row.partial(groups, 2, [column])
    too_few = altered(finish=lambda self, table: table.slice(1)).bind([pa.int64()])
    with pytest.raises(SkewlessError, match=r"Broken.finish returns 1 rows for 2 groups"):
        too_few.finish(too_few.partial(groups, 2, [column]))
    unmerged = altered(merge=lambda self, table: table).bind([pa.int64()])
    fields = unmerged.partial(groups, 2, [column])
    with pytest.raises(SkewlessError, match=r"Broken.merge returns 4 rows for 2 groups"):
        unmerged.join(fields, fields)


def test_an_error_among_rows_names_the_method():
    def divide(self: Aggregate, table: pa.Table) -> pa.Table:
        return pa.table({"group": table["group"], "x": pc.divide(table["x"], 0)})

    kernel = altered(finish=divide).bind([pa.int64()])
    with pytest.raises(SkewlessError, match=r"Broken.finish fails on 1 rows: ArrowInvalid: divide by zero"):
        kernel.finish(kernel.partial(np.array([0]), 1, [pa.array([1])]))
