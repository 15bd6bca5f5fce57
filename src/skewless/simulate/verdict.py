"""Which splitter to choose for a stream, and why, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skewless.core.errors import SkewlessError
from skewless.simulate.replay import Replay

FAIR = 1.1
TOLERANCE = 0.1


@dataclass(frozen=True)
class Verdict:
    """The name of a splitter, and a sentence that says why this one."""

    split: str
    why: str


def choose(replays: Mapping[str, Replay], tolerance: float = TOLERANCE) -> Verdict:
    """The splitter that suits a stream.

    It is hashing if its worst window is within 1.1 of fair. Otherwise, among the splitters whose worst window is
    within `tolerance` of the best one's, it is the one with the fewest fragments per key (to two decimals), then with
    the fewest workers for a hot key (to one), then the fastest.

    Parameters
    ----------
    replays
        The replay of each splitter, by its name.
    tolerance
        How far a worst window may be behind the best one and still count as good.

    Examples
    --------
    >>> import numpy as np
    >>> def result(loads, fragments_per_key):
    ...     loads = np.array(loads)
    ...     each = np.array([fragments_per_key])
    ...     return Replay(loads[None], loads[None], each, each, each, each, loads, 0, 100, 100, 1.0)
    >>> results = {"hash": result([90, 10], 1.0), "shuffle": result([50, 50], 2.0), "cam": result([52, 48], 1.1)}
    >>> verdict = choose(results)
    >>> verdict.split
    'cam'
    >>> verdict.why
    'of the 2 whose worst window is within 10 % of the best (1.00, shuffle), it has the fewest fragments per key (1.10)'
    >>> choose({"hash": result([51, 49], 1.0), "shuffle": result([50, 50], 2.0)})
    Verdict(split='hash', why='the stream is not skewed enough to need more: its worst window is at 1.02 of fair')
    """
    if not replays:
        raise SkewlessError("no splitters to choose from: replay at least one")
    worst = {name: replay.worst_window for name, replay in replays.items()}
    if worst.get("hash", FAIR + 1) <= FAIR:
        return Verdict(
            "hash", f"the stream is not skewed enough to need more: its worst window is at {worst['hash']:.2f} of fair"
        )
    if len(replays) == 1:
        (only,) = replays
        return Verdict(only, f"it is the only one that was tried, and its worst window is at {worst[only]:.2f} of fair")
    best = min(worst, key=worst.__getitem__)
    good = [name for name in replays if worst[name] <= worst[best] * (1 + tolerance)]
    if len(good) == 1:
        return Verdict(best, f"its worst window is the best ({worst[best]:.2f}), and no other comes near")
    fewest = min(replays[name].mean_fragments for name in good)
    few = [name for name in good if replays[name].mean_fragments == fewest]
    hot = {name: round(float(np.nan_to_num(replays[name].mean_hot_fragments, nan=1.0)), 1) for name in few}
    least_split = [name for name in few if hot[name] == min(hot.values())]
    why = (
        f"of the {len(good)} whose worst window is within {100 * tolerance:.0f} % of the best "
        f"({worst[best]:.2f}, {best}), it has the fewest fragments per key ({fewest:.2f})"
    )
    if len(few) > len(least_split):
        why += f", and of the {len(few)} that have so few, hot keys are on the fewest workers ({min(hot.values()):.1f})"
    if len(least_split) > 1:
        why += f" and is the fastest of the {len(least_split)} that are equal in that"
    return Verdict(max(least_split, key=lambda name: replays[name].tuples_per_second), why)
