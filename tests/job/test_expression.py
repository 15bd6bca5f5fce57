from __future__ import annotations

import inspect

import pytest

from skewless import aggregate
from skewless.core.errors import SkewlessError
from skewless.job.expression import FUNCTIONS, Call, Value, parse, usage


@pytest.mark.parametrize(
    ("text", "function", "arguments"),
    [
        ("count", "count", {}),
        (" count ( ) ", "count", {}),
        ("count(price)", "count", {"column": "price"}),
        ("sum(`a.b ``c`)", "sum", {"column": "a.b `c"}),
        ("sum(größe)", "sum", {"column": "größe"}),
        ("quantile(latency, 0.99)", "quantile", {"column": "latency", "q": 0.99}),
        ("quantile(latency, q=.5)", "quantile", {"column": "latency", "q": 0.5}),
        ("top(page, 5)", "top", {"column": "page", "k": 5}),
        ("first(page, ts, TRUE)", "first", {"column": "page", "by": "ts", "ignore_nulls": True}),
        ("last(page, ignore_nulls=false)", "last", {"column": "page", "ignore_nulls": False}),
    ],
)
def test_an_aggregate_is_read(text: str, function: str, arguments: dict[str, Value]) -> None:
    assert parse(text) == Call(function, arguments)


def test_a_call_knows_its_columns_and_makes_its_measure() -> None:
    call = parse("first(page, by=`the time`)")
    assert call.columns == ("page", "the time")
    assert repr(call.measure()) == "first(page, by=the time)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an aggregate starts with its name, such as sum(price), not with nothing"),
        ("(price)", "an aggregate starts with its name, such as sum(price), not with ("),
        ("summ(price)", "there is no aggregate summ; did you mean sum?"),
        ("sum", "sum needs column; write sum(column)"),
        ("sum(price", "sum(price is not complete; write sum(column)"),
        ("sum(", "sum( is not complete; write sum(column)"),
        ("sum(,price)", "sum(,price) is not complete; write sum(column)"),
        ("sum(price cost)", "sum(price cost) is not complete; write sum(column)"),
        ("sum(price) + 1", "cannot read + 1; write names with spaces or dots in `backquotes`"),
        ("sum(price) 1", "nothing may follow the aggregate, but 1 does; write sum(column)"),
        ("sum(a.b)", "cannot read a.b); write names with spaces or dots in `backquotes`"),
        ("sum(price, 2)", "sum takes no argument 2 there; write sum(column)"),
        ("sum(1)", "column of sum is the name of a column, not 1"),
        ("sum(price=x)", "sum is given price, which it does not take; write sum(column)"),
        ("sum(a, column=b)", "sum is given column, twice; write sum(column)"),
        ("quantile(price, high)", "q of quantile is a number, not high"),
        ("top(price, 2.5)", "k of top is a whole number, not 2.5"),
        ("first(price, ignore_nulls=1)", "ignore_nulls of first is true or false, not 1"),
        ("count(*)", "cannot read *); write names with spaces or dots in `backquotes`"),
    ],
)
def test_what_is_no_aggregate_is_refused_with_a_remedy(text: str, message: str) -> None:
    with pytest.raises(SkewlessError) as refused:
        parse(text)
    assert str(refused.value) == message


def test_aggregates_take_what_their_functions_take() -> None:
    functions = {name for name in aggregate.__all__ if inspect.isfunction(getattr(aggregate, name))}
    assert set(FUNCTIONS) == functions
    for name, parameters in FUNCTIONS.items():
        signature = inspect.signature(getattr(aggregate, name)).parameters
        assert [each.name for each in parameters] == list(signature)
        assert [each.optional for each in parameters] == [p.default is not p.empty for p in signature.values()]


def test_each_aggregate_is_written_as_documented() -> None:
    assert [usage(function) for function in FUNCTIONS] == [
        "count or count(column)",
        *(f"{function}(column)" for function in ("sum", "min", "max", "mean", "var", "std")),
        "first(column[, by][, ignore_nulls])",
        "last(column[, by][, ignore_nulls])",
        "distinct(column[, lg_k])",
        "quantile(column, q[, k])",
        "top(column[, k][, lg_max_k])",
        "collect(column)",
    ]
    assert {(each.name, each.kind) for parameters in FUNCTIONS.values() for each in parameters} == {
        ("column", "the name of a column"),
        ("by", "the name of a column"),
        ("q", "a number"),
        ("k", "a whole number"),
        ("lg_k", "a whole number"),
        ("lg_max_k", "a whole number"),
        ("ignore_nulls", "true or false"),
    }
