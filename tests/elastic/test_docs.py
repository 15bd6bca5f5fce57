"""The pages about what follows the load."""

from __future__ import annotations

import contextlib
import io
import random
import re
from pathlib import Path

import pytest

from skewless import elastic
from skewless.elastic import Observation, Parallelism, Scaler

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


def test_the_guide_says_how_often_a_load_that_wavers_changes_the_number_of_workers() -> None:
    said = re.findall(r"^\| (\d+) % \| (\d+) \| (\d+) \| (\d+) \|$", (DOCS / "elastic.md").read_text(), re.M)
    assert len(said) == 3
    for varies, *decisions in said:
        assert [_decisions(int(varies) / 100, d) for d in (1, 2, 3)] == [int(each) for each in decisions]


def _decisions(varies: float, d: int) -> int:
    rng, scaler, changes = random.Random(1), Scaler(Parallelism(2, 1), Parallelism(16, 1), d=d), 0
    for _ in range(2000):
        ran = scaler.parallelism
        busy = 6.6 * (1 + rng.uniform(-varies, varies)) / ran.map
        seen = Observation(1.0, busy + 0.05, 6600, 0, map_time=busy, reduce_time=0.0)
        changes += scaler.observe(seen) != ran
    return changes
