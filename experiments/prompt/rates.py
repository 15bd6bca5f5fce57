"""The rates that techniques sustain, beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.prompt.rivals import PAPERS, PROMPT
from experiments.prompt.throughput import TOLERANCE

Rates = Mapping[str, float]
"""Tuples a second, by technique."""


def factor(found: Rates, names: Sequence[str]) -> float:
    """Prompt's rate over the best of these."""
    return found[PROMPT] / max(found[name] for name in names)


def least(by_exponent: Mapping[float, Rates], name: str, since: float) -> float:
    """Prompt's rate over this technique's, the least from an exponent on."""
    return min(factor(found, (name,)) for z, found in by_exponent.items() if z >= since)


def lowest(found: Rates) -> float:
    """Of the rivals of the thesis besides time-based blocks."""
    return min(found[name] for name in PAPERS if name != "time-based")


def relative(found: Rates) -> Rates:
    """In thousandths of Prompt's rate."""
    return {name: 1000 * rate / found[PROMPT] for name, rate in found.items()}


def said(sines: Sequence[Rates], names: Sequence[str]) -> str:
    """Prompt's rate over the best of these, at the three intervals."""
    first, second, third = (f"{factor(found, names):.2f}" for found in sines)
    return f"{first}, {second} and {third}"


def ties(streams: Mapping[str, Rates]) -> str:
    """Where Prompt and the best rival of the thesis are nearer to each other than rates are found."""
    there = [name for name, found in streams.items() if tie(factor(found, PAPERS))]
    return f" on {', '.join(there)}" if there else " nowhere"


def tie(ratio: float) -> bool:
    """Whether two rates with this ratio are as near as rates are found.

    >>> tie(1.02), tie(1 / 1.02), tie(1.0212), tie(0.98)
    (True, True, False, False)
    """
    return max(ratio, 1 / ratio) <= (1 + TOLERANCE) * (1 + 1e-9)  # 1.02 itself, however it is rounded
