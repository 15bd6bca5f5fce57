"""The examples in the docstrings, which the tests of the package do not collect."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from experiments.sliding_windows import marks, partition, ring, tasks


@pytest.mark.parametrize("module", [marks, partition, ring, tasks], ids=lambda module: module.__name__.split(".")[-1])
def test_what_the_examples_show_is_what_happens(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried > 0
    assert failed == 0
