"""The oldest Python that the package names has what the code takes from the standard library.

The stubs that mypy brings say since when a name is there. Ruff refuses newer syntax.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import mypy
import pytest

ROOT = Path(__file__).parents[1]
STUBS = Path(mypy.__file__).with_name("typeshed") / "stdlib"
FOLDERS = ("src", "tests", "experiments", "benchmarks", "examples", "tools")
(_OLDEST,) = re.findall(r'^requires-python = ">=3\.(\d+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
OLDEST = int(_OLDEST)


@functools.cache
def newer_modules() -> frozenset[str]:
    """The modules of the standard library that came after the oldest Python."""
    since = re.findall(r"^([\w.]+): 3\.(\d+)-", (STUBS / "VERSIONS").read_text(), re.MULTILINE)
    return frozenset(module for module, minor in since if int(minor) > OLDEST)


@functools.cache
def newer_names(module: str) -> frozenset[str]:
    """The names of a module that came after the oldest Python."""
    stub = STUBS.joinpath(*module.split("."))
    paths = [path for path in (stub.with_suffix(".pyi"), stub / "__init__.pyi") if path.exists()]
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for path in paths:
        for newer, node in _statements(ast.parse(path.read_text()).body, newer=False):
            names[newer] |= set(_defined(node))
    return frozenset(names[True] - names[False])


def _statements(body: list[ast.stmt], *, newer: bool) -> Iterator[tuple[bool, ast.stmt]]:
    """The statements of a stub, and whether each is for newer Pythons alone."""
    for node in body:
        if isinstance(node, ast.If):
            since = re.match(r"sys\.version_info >= \(3, (\d+)\)", ast.unparse(node.test))
            yield from _statements(node.body, newer=newer or (since is not None and int(since[1]) > OLDEST))
            yield from _statements(node.orelse, newer=newer)
        else:
            yield newer, node


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def too_new(text: str) -> list[str]:
    """What a file uses that the oldest Python does not have; what it asks the version for first is left out."""
    looked_at = (ast.If, ast.Import, ast.ImportFrom, ast.Attribute, ast.Name)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, looked_at)]
    asked = {id(node) for each in nodes if _asks(each) for node in ast.walk(each)}
    modules, found = dict[str, str](), list[str]()
    for node in nodes:
        if isinstance(node, ast.Import) and id(node) not in asked:
            found += [alias.name for alias in node.names if alias.name in newer_modules()]
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and id(node) not in asked:
            names = {alias.name for alias in node.names}
            found += {node.module} & newer_modules() or newer_names(node.module) & names
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found += {node.attr} & newer_names(modules.get(node.value.id, ""))
        elif isinstance(node, ast.Name):
            found += {node.id} & newer_names("builtins")
    return found


def _asks(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "version_info" in ast.unparse(node.test)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_is_used_that_the_oldest_python_does_not_have(folder: str) -> None:
    found = {str(path): too_new(path.read_text()) for path in sorted((ROOT / folder).rglob("*.py"))}
    assert len(found) > 1
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import UTC, datetime",
        "import datetime as dt\ndt.UTC",
        "from enum import StrEnum",
        "import tomllib",
        "from tomllib import loads",
        "from typing import Self",
        "from typing import override",
        "import itertools\nitertools.batched([], 2)",
        "import typing as t\nt.assert_never(1)",
        "import contextlib\nwith contextlib.chdir('x'): ...",
        "raise ExceptionGroup('two', [])",
    ],
)
def test_what_came_later_is_found(text: str) -> None:
    assert too_new(text)


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nif sys.version_info >= (3, 11):\n    import tomllib\nelse:\n    import tomli as tomllib",
        "from datetime import datetime, timezone\ndatetime.now(timezone.utc)",
        "import numpy as np\nnp.batched",
        "from itertools import pairwise",
    ],
)
def test_what_the_oldest_python_has_is_not(text: str) -> None:
    assert not too_new(text)
