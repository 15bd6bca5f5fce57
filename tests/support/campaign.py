"""How long a campaign goes on: a few steps in `make test`, as many as asked for in `make soak`."""

from __future__ import annotations

import os

KILLS = int(os.environ.get("SKEWLESS_KILLS", "2"))
"""How often the queries of the crash test are killed."""
SEED = int(os.environ.get("SKEWLESS_SEED", "11"))
"""The seed that says when."""
TIMES = float(os.environ.get("SKEWLESS_TIMES", "1"))
"""How many times as many examples as usual the longest tests of examples go through; less than 1 in `make fast`."""


def examples(usual: int) -> int:
    """So many examples in this campaign."""
    return max(1, round(usual * TIMES))
