from __future__ import annotations

import pytest

from skewless.core.errors import SkewlessError
from skewless.job.ddl import column_names


@pytest.mark.parametrize(
    ("ddl", "names"),
    [
        ("a int", ("a",)),
        ("a: int, b :string", ("a", "b")),
        ("a decimal(10, 2) not null,\n b map<string, array<int>>", ("a", "b")),
        ("`a, b` int, `c``d.e` string", ("a, b", "c`d.e")),
        ("a int comment 'x, (y', b int", ("a", "b")),
        ("s struct<`a>`: int, b: int>, t int", ("s", "t")),
    ],
)
def test_columns_are_found_by_name(ddl: str, names: tuple[str, ...]) -> None:
    assert column_names(ddl) == names


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("", "'' is not a column; write a name and a type"),
        ("a", "'a' is not a column"),
        ("a int,", "'' is not a column"),
        ("a decimal(10", "leaves a bracket open"),
        ("a int>, b int", "closes a bracket that it did not open"),
    ],
)
def test_what_is_no_schema_is_refused(ddl: str, message: str) -> None:
    with pytest.raises(SkewlessError) as refused:
        column_names(ddl)
    assert message in str(refused.value)
