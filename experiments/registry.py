"""Finds the figures: one module each, loaded when it is run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from experiments.figure import Figure
from skewless.core.errors import SkewlessError

HOME = Path(__file__).parent


def modules(home: Path = HOME) -> dict[str, str]:
    """The module of each figure by its id, in the order of papers and numbers."""
    found = {_id_of(path): f"{home.name}.{path.parent.name}.{path.stem}" for path in home.glob("*/figure_*.py")}
    return {name: found[name] for name in sorted(found, key=by_number)}


def load(module: str) -> Figure:
    """The figure of a module."""
    figure = import_module(module).FIGURE
    if not isinstance(figure, Figure):
        raise SkewlessError(f"{module}.FIGURE is a {type(figure).__name__}; make it a Figure")
    return figure


def choose(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """The figures that are asked for by id or by paper; all if none is.

    >>> choose(["gedik"], ["dalton-9", "gedik-3", "gedik-10"])
    ['gedik-3', 'gedik-10']
    """
    chosen = set()
    for each in wanted:
        matching = [name for name in known if each in (name, paper_of(name))]
        if not matching:
            raise SkewlessError(f"no figure {each!r}; there are {', '.join(known)}, or all of a paper by its name")
        chosen |= set(matching)
    return [name for name in known if not wanted or name in chosen]


def paper_of(figure: str) -> str:
    """The paper of a figure.

    >>> paper_of("prompt-2.6")
    'prompt'
    """
    return figure.split("-")[0]


def by_number(figure: str) -> tuple[str, list[int], str]:
    """A key to sort ids by: 9 comes before 10, and 2.10 after 2.6.

    >>> sorted(["gedik-10", "gedik-9", "dalton-15"], key=by_number)
    ['dalton-15', 'gedik-9', 'gedik-10']
    """
    return paper_of(figure), [int(number) for number in re.findall(r"\d+", figure)], figure


def _id_of(path: Path) -> str:
    return f"{path.parent.name}-{path.stem.removeprefix('figure_').replace('_', '.')}"
