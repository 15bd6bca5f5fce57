"""Tables and numbers as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.figure import Cell, Measured

_BAR = "\\|"


def table_of(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """The lines of a table."""
    yield from heads(*columns)
    for cells in rows:
        yield row(*cells)


def heads(*columns: str) -> Iterator[str]:
    """The first two lines of a table."""
    yield row(*columns)
    yield "|---" * len(columns) + "|"


def row(*cells: Cell) -> str:
    """A line of a table.

    >>> row("drop | fall", 0.5)
    '| drop \\\\| fall | 0.50 |'
    """
    return f"| {' | '.join(written(cell).replace('|', _BAR) for cell in cells)} |"


def written(cell: Cell) -> str:
    """A cell as text.

    >>> written(12345), written(0.01234), written(3.14159), written(Measured(1.2345, 0.0123))
    ('12,345', '0.012', '3.14', '1.23 ± 0.01')
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, Measured):
        mean = written(cell.mean)
        return f"{mean} ± {cell.error:.{len(mean.partition('.')[2])}f}"
    if isinstance(cell, int) or cell != cell or abs(cell) == float("inf"):
        return f"{cell:,}"
    size = abs(cell)
    if size >= 100:
        return f"{cell:,.0f}"
    if size >= 10:
        return f"{cell:.1f}"
    return f"{cell:.2f}" if size >= 0.1 or round(cell, 2) == cell else f"{cell:.2g}"
