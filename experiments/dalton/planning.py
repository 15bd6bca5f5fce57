"""Prompt's rate by what it costs to plan a micro-batch, beside Dalton's."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figure import Table

PLANNING = (0.0, 1.0, 10.0, 100.0)
"""Multiples of what was measured."""


def told_planning(rates: Mapping[float, float], others: Mapping[str, float]) -> str:
    """What planning changes, in a sentence.

    >>> told_planning({0.0: 110.0, 1.0: 100.0, 10.0: 60.0}, {"dalton": 80.0})
    'Planning takes 9 % of its rate; dalton is ahead of it if planning takes 10 times as long.'
    """
    taken = f"Planning takes {100 * (1 - rates[1.0] / rates[0.0]):.1g} % of its rate"
    behind = [times for times, rate in rates.items() if rate < others["dalton"]]
    if not behind:
        return f"{taken}, and dalton is not ahead of it even if planning takes {max(rates):g} times as long."
    return f"{taken}; dalton is ahead of it if planning takes {min(behind):g} times as long."


def planning_table(what: str, rates: Mapping[float, float], others: Mapping[str, float]) -> Table:
    """The rates, and the gain of Dalton."""
    rows = tuple((f"x {times:g}", round(rate), others["dalton"] / rate) for times, rate in rates.items())
    title = f"{what}: prompt by what planning costs"
    return Table(title, ("planning", "tuples a second", "gain of dalton"), rows)
