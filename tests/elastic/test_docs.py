"""The pages about what follows the load."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from skewless import elastic

DOCS = Path(__file__).parents[2] / "docs"


def test_the_guides_example_prints_what_it_says() -> None:
    block = r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```"  # with what it prints right behind it
    code, printed = re.search(block, (DOCS / "elastic.md").read_text(), re.S).groups()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "elastic.md", "exec"), {})
    assert out.getvalue() == printed


def test_every_name_has_its_entry_in_the_reference() -> None:
    entries = re.findall(r"^::: skewless\.elastic\.(\S+)$", (DOCS / "reference" / "elastic.md").read_text(), re.M)
    assert sorted(entries) == sorted(elastic.__all__)
