"""What functions are given, and what becomes of their answers."""

from __future__ import annotations

import pickle
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless import SkewlessError
from skewless.core.windows import Windows
from skewless.operators.windows import function as module
from skewless.operators.windows.function import Answers, MergeCall, Objects, PaneCall, Span, WindowCall, span_of
from skewless.operators.windows.slices import Slices, slices

SCHEMA = pa.schema([("n", pa.int64()), ("word", pa.string())])
SEEN = pa.schema([("value", pa.int64()), ("word", pa.string())])
Rows = list[tuple[int | None, str | None]]
ROWS = st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["a", "", None])), max_size=3)
KINDS = ("tuples", "generator", "frame", "swapped frame", "table", "batch")


def as_kind(kind: str, some: Rows) -> Any:
    """Rows as a function may give them."""
    columns = {"n": [n for n, _word in some], "word": [word for _n, word in some]}
    return {
        "tuples": lambda: some,
        "generator": lambda: (row for row in some),
        "frame": lambda: pd.DataFrame(columns, index=[7] * len(some)),
        "swapped frame": lambda: pd.DataFrame({"more": 1, **dict(reversed(columns.items()))}),
        "table": lambda: pa.table(columns, schema=SCHEMA).select(["word", "n"]),
        "batch": lambda: pa.RecordBatch.from_pydict(columns, schema=SCHEMA),
    }[kind]()


def taken(answers: Answers) -> list[tuple[Any, ...]]:
    """The call and the columns of each row."""
    calls, columns = answers.take()
    assert [column.type for column in columns] == SCHEMA.types
    return list(zip(calls.tolist(), *(column.to_pylist() for column in columns), strict=True))


@given(st.lists(st.tuples(st.sampled_from(KINDS), ROWS), max_size=12), st.sets(st.integers(0, 11)))
def test_answers_of_all_kinds_keep_their_order(answers: list[tuple[str, Rows]], pauses: set[int]) -> None:
    gathered, got = Answers(SCHEMA), []
    for call, (kind, some) in enumerate(answers):
        gathered.add(call, as_kind(kind, some))
        if call in pauses and gathered.rows:
            got += taken(gathered)
            assert gathered.rows == 0
    if gathered.rows:
        got += taken(gathered)
    assert got == [(call, *row) for call, (_kind, some) in enumerate(answers) for row in some]


def test_a_tuple_is_a_row_and_none_is_none() -> None:
    answers = Answers(SCHEMA)
    for call, answer in enumerate([(1, "a"), None, [], (2, None)]):
        answers.add(call, answer)
    assert answers.rows == 2
    assert taken(answers) == [(0, 1, "a"), (3, 2, None)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, r"a function gave 3; give a tuple of \(n, word\), a list of such tuples"),
        ((1, "a", 2), r"gave \(1, 'a', 2\) as a row; give a tuple of \(n, word\)"),
        ([(1, "a"), (2,)], r"gave \(2,\) as a row"),
        ([[1, "a"]], r"gave \[1, 'a'\] as a row"),
        ("no", r"gave 'n' as a row"),
        (pd.DataFrame({"n": [1]}), r"gave the columns n, and word is missing"),
        (pa.table({"word": ["a"]}), r"gave the columns word, and n is missing"),
        (pa.table({"n": ["x"], "word": ["a"]}), r"a function gave .*not .*"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_at_once(answer: Any, words: str) -> None:
    with pytest.raises(SkewlessError, match=f"(?s){words}"):
        Answers(SCHEMA).add(0, answer)


@pytest.mark.parametrize(
    "answer", [("x", "a"), (1.5, "a"), (2**63, "a"), (1, 2), pd.DataFrame({"n": ["x"], "word": "a"})]
)
def test_a_value_of_another_type_is_refused_with_its_column(answer: Any) -> None:
    answers = Answers(SCHEMA)
    answers.add(0, answer)
    with pytest.raises(SkewlessError, match=r"a function gave a (n that is no int64|word that is no string)"):
        answers.take()


def test_objects_are_any_that_pickle() -> None:
    objects, given_ = Objects(module.OBJECT), [None, (1, 2), [], {"a": {1}}, pd.DataFrame({"x": [1]})]
    for call, each in enumerate(given_):
        objects.add(call, each)
    calls, (column,) = objects.take()
    assert calls.tolist() == list(range(len(given_)))
    found = [pickle.loads(data) for data in column.to_pylist()]
    assert found[:-1] == given_[:-1]
    assert found[-1].equals(given_[-1])


def found_in(windows: Windows) -> Slices:
    """The windows of two keys, with rows at 0, 1, ..., 5 and at 0, 1, 2."""
    return slices(np.repeat([0, 1], [6, 3]), np.array([0, 1, 2, 3, 4, 5, 0, 1, 2]), windows)


def seen() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(range(9)), pa.array(list("abcdefghi"))], ["0", "1"])


def ran(call: module.Call, some: pa.RecordBatch, windows: Windows) -> list[tuple[int, list[Any]]]:
    """For each piece, how many rows it has; and all rows."""
    found = found_in(windows)
    return [(len(which), columns) for which, columns in call.run(some, [("x",), (None,)], windows, found)]


@pytest.mark.parametrize("arrow", [False, True])
def test_a_function_sees_the_key_the_window_and_its_rows(arrow: bool) -> None:
    calls = []

    def function(key: tuple[Any, ...], window: Span, given: Any) -> tuple[int, str]:
        assert isinstance(given, pa.Table if arrow else pd.DataFrame)
        if not arrow:
            assert list(given.index) == list(range(len(given)))
        frame = given.to_pandas() if arrow else given
        assert list(frame.columns) == ["value", "word"]
        calls.append((key, tuple(window), frame["value"].tolist()))
        return len(frame), "".join(frame["word"])

    ((count, (n, word)),) = ran(WindowCall(function, SEEN, SCHEMA, arrow), seen(), Windows(4, 2, rows=True))
    assert calls == [
        (("x",), (0, 4), [0, 1, 2, 3]),
        (("x",), (2, 6), [2, 3, 4, 5]),
        (("x",), (4, 8), [4, 5]),
        ((None,), (0, 4), [6, 7, 8]),
        ((None,), (2, 6), [8]),
    ]
    assert (count, n.to_pylist(), word.to_pylist()) == (5, [4, 4, 2, 3, 1], ["abcd", "cdef", "ef", "ghi", "i"])


def test_what_a_function_writes_to_its_rows_stays_there() -> None:
    def function(key: tuple[Any, ...], window: Span, frame: pd.DataFrame) -> tuple[int, str]:
        total = int(frame["value"].sum())
        frame["value"] += 1000
        frame.loc[0, "word"] = "changed"
        frame.iloc[:, 0] = -1
        frame["new"] = 1
        frame.sort_values("word", ascending=False, inplace=True)
        return total, str(len(frame.columns))

    ((_count, (n, word)),) = ran(WindowCall(function, SEEN, SCHEMA), seen(), Windows(4, 2, rows=True))
    assert n.to_pylist() == [6, 14, 9, 21, 8]
    assert set(word.to_pylist()) == {"3"}


def test_large_answers_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY", 4)

    def function(key: tuple[Any, ...], window: Span, frame: pd.DataFrame) -> Rows:
        return [(i, None) for i in frame["value"].tolist()]

    pieces = ran(WindowCall(function, SEEN, SCHEMA), seen(), Windows(4, 2, rows=True))
    assert [count for count, _columns in pieces] == [4, 4, 5, 1]
    assert [n for _count, columns in pieces for n in columns[0].to_pylist()] == [
        0,
        1,
        2,
        3,
        2,
        3,
        4,
        5,
        4,
        5,
        6,
        7,
        8,
        8,
    ]


def test_a_function_that_gives_nothing_has_no_piece() -> None:
    assert ran(WindowCall(lambda key, window, frame: None, SEEN, SCHEMA), seen(), Windows(4, 2, rows=True)) == []
    assert ran(WindowCall(lambda key, window, frame: [], SEEN, SCHEMA), seen(), Windows(4, 2, rows=True)) == []


def test_an_error_says_in_which_window_it_was() -> None:
    def function(key: tuple[Any, ...], window: Span, frame: pd.DataFrame) -> tuple[int, str]:
        return 1 // (int(frame["value"].iloc[0]) - 2), ""

    with pytest.raises(ZeroDivisionError) as caught:
        ran(WindowCall(function, SEEN, SCHEMA), seen(), Windows(4, 2))
    if hasattr(caught.value, "add_note"):
        (note,) = caught.value.__notes__
        assert note.startswith(
            "in the window from 1970-01-01 00:00:00.000002+00:00 to 1970-01-01 00:00:00.000006+00:00"
        )
        assert note.endswith("of key ('x',)")


def test_answers_for_panes_are_merged_in_order_of_time() -> None:
    pane = PaneCall(lambda key, span, frame: "".join(frame["word"]), SEEN)
    ((count, (objects,)),) = ran(pane, seen(), Windows(2, 2, rows=True))
    assert count == 5
    merge = MergeCall(lambda key, window, answers: (len(answers), "|".join(answers)), SCHEMA)
    passed = pa.RecordBatch.from_arrays([objects], ["0"])
    found = slices(np.repeat([0, 1], [3, 2]), np.array([0, 2, 4, 0, 2]), Windows(4, 2))
    ((_which, (n, word)),) = list(merge.run(passed, [("x",), (None,)], Windows(4, 2), found))
    assert word.to_pylist() == ["ab", "ab|cd", "cd|ef", "ef", "gh", "gh|i", "i"]
    assert n.to_pylist() == [1, 2, 2, 1, 1, 2, 1]


@given(st.integers(-(10**14), 10**14), st.integers(1, 100), st.integers(1, 100))
def test_a_window_of_time_has_times_in_utc(window: int, one: int, other: int) -> None:
    windows = Windows(max(one, other), min(one, other))
    span = span_of(windows, window)
    assert span.start.utcoffset() == timedelta(0)
    assert span.end - span.start == timedelta(microseconds=windows.size)
    assert (span.start - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(
        microseconds=1
    ) == window * windows.slide
