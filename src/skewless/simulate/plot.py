"""A comparison as a picture: the load of each worker over time, a small plot for each splitter."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from skewless.core.errors import SkewlessError
from skewless.simulate.compare import Comparison
from skewless.simulate.replay import Replay

COLUMNS = 4


def check_plot(path: Path) -> None:
    """Refuse at once a plot that would fail only after all the work is done."""
    _figure_class()
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise SkewlessError(f"{path}: a plot is a .png, .pdf or .svg file")
    if not path.parent.is_dir():
        raise SkewlessError(f"{path}: there is no directory {path.parent}; make it first")


def draw_loads(comparison: Comparison, path: Path) -> None:
    """Draw the load of each worker, as a multiple of the fair one, in each window of each splitter."""
    columns = min(COLUMNS, len(comparison.replays))
    rows = math.ceil(len(comparison.replays) / columns)
    figure = _figure_class()(figsize=(3.2 * columns, 2.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, (name, result) in zip(grid, comparison.replays.items(), strict=False):
        _draw(axes, name, result)
    for axes in grid[len(comparison.replays) :]:
        axes.remove()
    figure.suptitle(f"{comparison.stream.name}: load of each of {comparison.workers} workers (1 is fair)", fontsize=10)
    figure.supxlabel("tuples", fontsize=9)
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise SkewlessError(f"{path}: the plot cannot be written: {error.strerror}") from error


def _draw(axes: Any, name: str, result: Replay) -> None:
    relative = result.loads / result.loads.mean(axis=1, keepdims=True)
    # A window ends at its last tuple: a stream shorter than one window ends it early.
    ends = np.minimum(np.arange(1, len(relative) + 1) * result.slide + result.window - result.slide, result.tuples)
    # One window gives no line, so it is drawn as a point.
    marker = "." if len(relative) == 1 else None
    axes.axhline(1.0, color="0.6", linewidth=0.8)
    axes.plot(ends, relative, color="tab:blue", alpha=0.5, linewidth=0.7, marker=marker)
    axes.plot(ends, relative.max(axis=1), color="tab:red", linewidth=1.2, marker=marker)
    axes.set_title(f"{name}: worst {result.worst_window:.2f}", fontsize=9)
    axes.tick_params(labelsize=7)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.locator_params(axis="x", nbins=3)


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SkewlessError("plots need matplotlib: pip install 'skewless[plot]'") from error
    return Figure
