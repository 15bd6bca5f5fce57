"""The pages about what follows the load."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from skewless import elastic

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["elastic.md", "scheduling.md"])
def test_the_guides_examples_print_what_they_say(page) -> None:
    examples = re.findall(r"```python\n((?:(?!```).)*?)```\n\n```\n(.*?)```", (DOCS / page).read_text(), re.S)
    assert examples
    for code, printed in examples:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, page, "exec"), {})
        assert out.getvalue() == printed


def test_every_name_has_its_entry_in_the_reference() -> None:
    entries = re.findall(r"^::: skewless\.elastic\.(\S+)$", (DOCS / "reference" / "elastic.md").read_text(), re.M)
    assert sorted(entries) == sorted(elastic.__all__)
