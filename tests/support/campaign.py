"""How long a campaign goes on: a few steps in `make test`, more in `make test-long`, and as asked for in `make soak`.

A test whose length is one of these numbers has the mark `campaign`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

KILLS = int(os.environ.get("SKEWLESS_KILLS", "2"))
"""How often the queries of the crash test are killed."""
SEED = int(os.environ.get("SKEWLESS_SEED", "11"))
"""The seed that says when."""
TIMES = float(os.environ.get("SKEWLESS_TIMES", "1"))
"""How many times as many examples as usual the campaigns go through; less than 1 in `make fast`."""


def examples(usual: int) -> int:
    """So many examples in this campaign."""
    return max(1, round(usual * TIMES))


def campaign(usual: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a test of hypothesis as a campaign, with so many examples in `make test`."""
    return lambda test: pytest.mark.campaign(settings(max_examples=examples(usual))(test))
