"""Results of figures as data: docs/results/figures.json, from which the page is rendered."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.figure import SCALES, Cell, Check, Measured, Scale, Scaled, Table, command, verdict
from experiments.registry import by_number
from skewless.core.errors import SkewlessError

WIDTH = 150


@dataclass(frozen=True)
class Record:
    """A figure as it was made at one scale.

    Parameters
    ----------
    id, title, claim
        Those of the figure.
    scale
        "small", or "full" for the paper's sizes.
    setup, found, checks, tables
        Those of the outcome.
    picture
        The file of the picture, from docs/.
    seconds
        Processor time that it took, without what it shares with figures before it.
    """

    id: str
    scale: Scale
    title: str
    claim: str
    setup: tuple[Scaled, ...]
    found: str
    checks: tuple[Check, ...]
    tables: tuple[Table, ...]
    picture: str
    seconds: float

    @property
    def verdict(self) -> str:
        """The outcome of the checks."""
        return verdict(self.checks)

    @property
    def why(self) -> str:
        """Why it is not that all checks hold, a line for each cause; empty if they do."""
        by_cause: dict[str, list[str]] = {}
        for check in self.checks:
            if not check.holds:
                by_cause.setdefault(check.why or "the cause is not known.", []).append(check.name)
        return "\n".join(f"{'; '.join(names)}: {cause}" for cause, names in by_cause.items())


def read(path: Path) -> list[Record]:
    """The records of a file; none if it is not there."""
    if not path.exists():
        return []
    try:
        return [_record(each) for each in json.loads(path.read_text())]
    except (ValueError, KeyError, TypeError) as error:
        raise SkewlessError(
            f"{path} is no file of figures ({error!r}); get it back with git checkout, or delete it"
        ) from error


def write(path: Path, records: Iterable[Record]) -> None:
    """Write the records, sorted, so that the file is whole at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ordered = sorted(records, key=lambda record: (by_number(record.id), SCALES.index(record.scale)))
    new = path.with_suffix(".new")
    new.write_text(_lines([_data(record) for record in ordered]) + "\n")
    new.replace(path)


def put(records: Sequence[Record], new: Record) -> list[Record]:
    """The records with a new one in place of that of the same figure and scale."""
    return [each for each in records if (each.id, each.scale) != (new.id, new.scale)] + [new]


def _data(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "scale": record.scale,
        "title": record.title,
        "claim": record.claim,
        "verdict": record.verdict,
        "why": record.why,
        "found": record.found,
        "command": command(record.id, record.scale),
        "checks": [
            {
                "name": check.name,
                "value": _number(check.value),
                "bound": check.bound,
                "holds": check.holds,
                "low": check.low,
                "high": check.high,
                "essential": check.essential,
                "why": check.why,
            }
            for check in record.checks
        ],
        "setup": [line._asdict() for line in record.setup],
        "tables": [
            {"title": t.title, "columns": t.columns, "rows": [[_cell(cell) for cell in row] for row in t.rows]}
            for t in record.tables
        ],
        "picture": record.picture,
        "seconds": round(record.seconds, 2),
    }


def _record(data: dict[str, Any]) -> Record:
    if data["scale"] not in SCALES:
        raise ValueError(f"scale {data['scale']!r}")
    checks = tuple(
        Check(each["name"], float(each["value"]), each["low"], each["high"], each["essential"], each["why"])
        for each in data["checks"]
    )
    tables = tuple(
        Table(
            each["title"], tuple(each["columns"]), tuple(tuple(_uncell(cell) for cell in row) for row in each["rows"])
        )
        for each in data["tables"]
    )
    setup = tuple(Scaled(**line) for line in data["setup"])
    plain = {name: data[name] for name in ("id", "scale", "title", "claim", "found", "picture", "seconds")}
    return Record(**plain, setup=setup, checks=checks, tables=tables)


def _number(value: float) -> float | str:
    """JSON has no infinity; `float` reads the string."""
    value = float(value)
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)


def _cell(cell: Cell) -> Any:
    if isinstance(cell, Measured):
        return {"mean": _number(cell.mean), "error": _number(cell.error)}
    return _number(cell) if isinstance(cell, float) else cell


def _uncell(cell: Any) -> Cell:
    if isinstance(cell, dict):
        return Measured(float(cell["mean"]), float(cell["error"]))
    return float(cell) if cell in ("nan", "inf", "-inf") else cell


def _lines(value: Any, indent: str = "") -> str:
    """JSON with a line for whatever fits one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, (dict, list, tuple)) or not value:
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key)}: {_lines(each, inner)}" for key, each in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _lines(each, inner) for each in value) + f"\n{indent}]"
