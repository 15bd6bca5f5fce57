"""Files that come by the clock, whatever the query does with them, and what following the load makes of them.

`python -m benchmarks.elastic runs clock` uses it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def feed(files: Sequence[Path], into: Path, interval: float, ticks: int) -> float:
    """Move so many of the files in each interval, evenly, in a thread of its own; when the first interval begins.

    That is the next multiple of the interval, with which Spark begins a micro-batch. Each file comes in the middle of
    its part of the interval, so that none comes as a micro-batch begins.
    """
    begins = (time.time() // interval + 1) * interval

    def move() -> None:
        for number, file in enumerate(files):
            time.sleep(max(0.0, begins + (number + 0.5) * interval / ticks - time.time()))
            file.rename(into / file.name)

    threading.Thread(target=move, daemon=True).start()
    return begins


def section(done: list[dict[str, Any]], rise: float, fall: float, calm: float, names: str) -> list[str]:
    """What the page says of the run, whose rate was high from `rise` to `fall` seconds after it began."""
    high = [each for each in done if rise < round(each["since"]) <= fall]  # that have rows of the high rate
    ups = [number for number, each in enumerate(high) if each["W"] > calm]
    back = next((each for each in high[ups[0] :] if each["W"] <= calm), None) if ups else None
    if not ups:
        said = [f"W stays at most {calm}."]
    elif back is None:
        said = ["W came back only when the load had fallen."]
    else:
        later = [each for each in high if each["since"] > back["since"]]
        since = back["since"] - rise
        again = [each["W"] for each in later if each["W"] > calm]
        most = f", by W of up to {max(again):.2f}" if again else ""
        said = [
            f"W is at most {calm} again while it is high, first in a micro-batch that began {since:.0f} s after",
            f"the rise. Of the {len(later)} after that one with rows of the high rate {len(again)} are above it{most}.",
        ]
    return [
        "## By the clock",
        "",
        f"{names}, and a source without a limit: `python -m benchmarks.elastic runs clock`. The rows of each interval",
        "are the same, but they come by the clock in files of their own, and a micro-batch reads all that are there.",
        f"The rate is high from {rise:.0f} s to {fall:.0f} s.",
        *said,
        f"The highest W is {max(each['W'] for each in done):.2f}. The rows written are those of the files here too.",
        "",
        "| micro-batch | began, s | rows | workers with rows | W |",
        "|---|---|---|---|---|",
        *(
            f"| {each['batch']} | {each['since']:.1f} | {each['rows']:,} | {each['busy']} | {each['W']:.2f} |"
            for each in done
        ),
    ]
