"""The page of a run whose owners of state follow the load.

`python -m benchmarks.elastic moving` uses it.
"""

from __future__ import annotations

import os
import textwrap
from itertools import pairwise
from typing import Any


def page(done: list[dict[str, Any]], setting: str, first: int, last: int, calm: float, slots: int) -> list[str]:
    """What became of W and of the placement, if the load was high from micro-batch `first` to the one before `last`."""
    high = [each for each in done if first <= each["batch"] < last]
    back = next((each["batch"] - first for each in high if each["W"] <= calm), None)
    later = [each["W"] for each in high if back is not None and each["batch"] - first > back]
    again = sum(ratio > calm for ratio in later)
    came = (
        f"W is not at most {calm} again while the load is high."
        if back is None
        else f"W is at most {calm} again {back} micro-batches after the rise, and above it in {again} of the "
        f"{len(later)} after that one with the high load."
    )
    before = [done[0]["placement"], *(each["placement"] for each in done)]
    changed = [sum(a != b for a, b in zip(was, now, strict=True)) for was, now in pairwise(before)]
    said = (
        f"{setting} {came} What was counted, and the state of each key in the end, are those of the files, in which no "
        "row is missing and none is twice."
    )
    return [
        "# Owners that follow the load",
        "",
        "Made by `python -m benchmarks.elastic moving`, in wall-clock time, with "
        f"{slots} local slots on {os.cpu_count()} cores.",
        "",
        *textwrap.wrap(said, 110, break_on_hyphens=False),
        "",
        "| micro-batch | rows | workers with rows | W | slots that had changed owners when the driver heard of it |",
        "|---|---|---|---|---|",
        *(
            f"| {each['batch']} | {each['rows']:,} | {each['busy']} | {each['W']:.2f} | {moved} |"
            for each, moved in zip(done, changed, strict=True)
        ),
    ]
