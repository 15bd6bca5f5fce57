"""Arguments that are refused in words."""

from __future__ import annotations

import numpy as np

from skewless.core.errors import SkewlessError


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Refuse what is no whole number of at least so much, or too large for 64 bits.

    >>> check_whole("slides", 2.5)
    Traceback (most recent call last):
    ...
    skewless.core.errors.SkewlessError: slides is 2.5; give a whole number from 1
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not least <= value < 2**63:  # type: ignore[operator]  # it is a number
        raise SkewlessError(f"{name} is {value!r}; give a whole number from {least}")
