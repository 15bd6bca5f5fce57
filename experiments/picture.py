"""Pictures of figures, small enough to be committed and the same for the same numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from experiments.figure import Cell, Measured
from skewless.core.errors import SkewlessError

_ROUND = re.compile(r"(\d+\.\d\d)\d+")  # a hundredth of a point is finer than any screen

LARGEST = 200_000  # bytes of a picture
IN_A_ROW = 6  # names of a legend that fit the width
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text, which is smaller than its outlines
    "svg.hashsalt": "skewless",  # ids that do not change from run to run
    "font.size": 8.0,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.0,
}


def save(draw: Callable[[Any], None], path: Path) -> None:
    """Draw into a new figure of matplotlib and write it as SVG."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SkewlessError("figures need matplotlib: pip install 'skewless[plot]'") from error
    with rc_context(STYLE):
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        draw(figure)
        path.parent.mkdir(parents=True, exist_ok=True)
        # The same picture is the same file, whenever it is made.
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
        path.write_text(_ROUND.sub(r"\1", written.getvalue()))
    if path.stat().st_size > LARGEST:
        raise SkewlessError(f"{path} takes {path.stat().st_size:,} bytes; draw fewer points, it is to be committed")


def lines(
    axes: Any,
    xs: Sequence[Any],
    series: Mapping[str, Sequence[Cell]],
    *,
    x: str,
    y: str,
    title: str = "",
    first: int = 0,
) -> None:
    """A line for each series, with bars for standard errors where the cells have them.

    `first` numbers the first series, which gives it its colour and marker.
    """
    for number, (name, cells) in enumerate(series.items(), first):
        means = [cell.mean if isinstance(cell, Measured) else cell for cell in cells]
        errors = [cell.error for cell in cells if isinstance(cell, Measured)]
        marker = "os^Dvx*P"[number % 8]
        axes.errorbar(xs, means, yerr=errors or None, label=name, marker=marker, color=f"C{number}")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=9)


def legend(figure: Any, axes: Any) -> None:
    """One legend below all plots."""
    handles, labels = axes.get_legend_handles_labels()
    columns = min(len(labels), IN_A_ROW)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
