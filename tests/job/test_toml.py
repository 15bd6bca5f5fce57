from __future__ import annotations

import pytest

from skewless.core.errors import SkewlessError
from skewless.job.toml import parse

TEXT = '''\
# [not a table]
name = "a # b = [c]"  # comment

[ window ] # here
"the size" = """
[fake]
x = 1 """""
'slide.x' = \'\'\'
y = 2\'\'\'
many = [ # one
    { deep = 1, deeper.still = "}" },
    "]",
]
when = 1979-05-27 07:32:00
last = {a = 1, b = {c = [2, 3]}}

[a."b.c".d]
e.f = 1
[[list]]
g = true
'''


def test_every_key_has_its_line() -> None:
    assert parse(TEXT, "x").lines == {
        "name": 2,
        "window": 4,
        "window.the size": 5,
        "window.slide.x": 8,
        "window.many": 10,
        "window.many.deep": 11,
        "window.many.deeper": 11,
        "window.many.deeper.still": 11,
        "window.when": 14,
        "window.last": 15,
        "window.last.a": 15,
        "window.last.b": 15,
        "window.last.b.c": 15,
        "a": 17,
        "a.b.c": 17,
        "a.b.c.d": 17,
        "a.b.c.d.e": 18,
        "a.b.c.d.e.f": 18,
        "list": 19,
        "list.g": 20,
    }


def test_lines_are_the_same_with_windows_line_ends() -> None:
    assert parse(TEXT.replace("\n", "\r\n"), "x").lines == parse(TEXT, "x").lines


def test_an_error_is_at_the_nearest_table_that_is_there() -> None:
    document = parse("a = 1\n[b.c]\nd = 1", "x.toml")
    for name, line in (("b.c.d", 3), ("b.c.e", 2), ("b.c.e.f", 2), ("z", 1), ("", 1)):
        assert str(document.error(name, "bad")) == f"x.toml:{line}: bad"


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\nb = ", 2), ("a = 1\n[b\n", 2), ("a = 1\na = 2\n", 2), ('a = "\n', 1), ("\n\na = [1,", 3)],
)
def test_bad_syntax_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(SkewlessError, match=rf"^x\.toml:{line}: .*; correct the TOML there$"):
        parse(text, "x.toml")
