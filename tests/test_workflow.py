"""What a forge runs for every change: targets that there are, on the versions that the package names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOW = (ROOT / ".github" / "workflows" / "test.yml").read_text()
PROJECT = (ROOT / "pyproject.toml").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
PINS = re.findall(
    r'^pyspark==(\d+\.\d+)\.\S+ ; python_version (<|>=) "([\d.]+)"$',
    (ROOT / "constraints.txt").read_text(),
    re.MULTILINE,
)
"""The newest Spark of each range of Pythons."""


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def versions(of: str) -> list[str]:
    (listed,) = re.findall(rf"^ +{of}: \[(.*)\]$", WORKFLOW, re.MULTILINE)
    return re.findall(r'"([\d.]+)"', listed)


def commands(text: str) -> list[str]:
    """The targets that a text runs."""
    return [
        target for line in re.findall(r"^(?: +- run: )?make (.*)$", text, re.MULTILINE) for target in line.split()[:1]
    ]


def test_every_step_is_a_target_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    steps = re.findall(r"- run: (.*)", WORKFLOW)
    assert len(commands(WORKFLOW)) == len(steps) >= 4  # nothing else is run
    assert set(commands(WORKFLOW)) <= targets
    for variable in re.findall(r"\b([A-Z]+)=", " ".join(steps)):
        assert re.search(rf"^{variable} \?=", MAKEFILE, re.MULTILINE), variable


def test_here_and_on_the_forge_the_same_runs() -> None:
    assert sorted(commands((ROOT / ".ci" / "run").read_text())) == sorted(commands(WORKFLOW))


def test_pythons_and_sparks_start_with_the_oldest_that_the_package_names() -> None:
    assert versions("python")[0] == re.findall(r'requires-python = ">=([\d.]+)"', PROJECT)[0]
    assert versions("spark")[0] == re.findall(r'"pyspark>=([\d.]+)"', PROJECT)[0]
    for of in ("python", "spark"):
        for before, after in pairwise(map(number, versions(of))):
            assert after == (before[0], before[1] + 1)


def test_the_newest_spark_of_each_python_is_the_last_one_it_is_tested_with() -> None:
    excluded = re.findall(r'- \{python: "([\d.]+)", spark: "([\d.]+)"\}', WORKFLOW)
    for python in versions("python"):
        (newest,) = [spark for spark, than, other in PINS if (number(python) < number(other)) == (than == "<")]
        tested = [spark for spark in versions("spark") if (python, spark) not in excluded]
        assert tested[-1] == newest, python
    assert all(pair[0] in versions("python") and pair[1] in versions("spark") for pair in excluded)


@pytest.mark.parametrize("target", ["test", "test-long", "soak"])
def test_every_run_has_a_seed_that_can_be_given(target: str) -> None:
    assert "--hypothesis-seed=$(SEED)" in MAKEFILE
    assert re.search(r"^SEED := \$\(shell date \+%s\)$", MAKEFILE, re.MULTILINE)  # another one each time
    (recipe,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert "$(pytest)" in recipe


@pytest.mark.slow
def test_new_examples_are_explored_on_the_forge_too() -> None:
    """hypothesis has a profile of its own where CI is set, with the same examples every time."""
    code = "import conftest; from hypothesis import settings; assert not settings.default.derandomize"
    environment = {**os.environ, "CI": "true"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT / "tests", env=environment, check=True)


def test_a_soak_is_as_long_as_it_is_told() -> None:
    (recipe,) = re.findall(r"^soak:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    read = (ROOT / "tests" / "support" / "campaign.py").read_text()
    for variable in ("KILLS", "TIMES", "SEED"):
        assert f"SKEWLESS_{variable}=$({variable})" in recipe
        assert f'"SKEWLESS_{variable}"' in read
    assert "-m campaign" in recipe
