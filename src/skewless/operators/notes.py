"""What a worker notes in its store beside its state: the format, and what the state depends on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from skewless.core import blob
from skewless.core.errors import SkewlessError
from skewless.core.store import Store

FORMAT = 1
"""The format of everything in a store. State of another one is refused."""
_NAME = "state"


def read_notes(store: Store, mark: str, what: str) -> tuple[dict[str, Any], list[pa.Array]] | None:
    """What was noted, and the columns with it; None in an empty store.

    Parameters
    ----------
    store
        The worker's store.
    mark
        Names everything that the state depends on. State of another mark is refused.
    what
        What the mark lists, for the message: "windows, key and aggregates".
    """
    data = store.get(_NAME)
    if data is None:
        if store.empty:
            return None
        raise SkewlessError(
            "the checkpoint has state without a format number, as version 0.5 and older ones wrote it, which this "
            "version cannot read; start with a new checkpoint, or go on with the version that wrote it"
        )
    noted = blob.load(data)
    notes: dict[str, Any] = json.loads(blob.notes(noted)["notes"])
    if notes["format"] != FORMAT:
        raise SkewlessError(
            f"the checkpoint has state of format {notes['format']}, and this version of skewless reads format "
            f"{FORMAT}; go on with the version that wrote it, or start with a new checkpoint"
        )
    if notes["mark"] != mark:
        raise SkewlessError(
            f"the checkpoint is of another query: its {what} were {notes['mark']}, now they are {mark}; "
            "use a new checkpoint for a changed query"
        )
    return notes, noted.columns


def write_notes(store: Store, mark: str, notes: dict[str, Any], columns: Sequence[pa.Array] = ()) -> None:
    """Note what is to be known when the store is read again."""
    text = json.dumps({"format": FORMAT, "mark": mark, **notes})
    store.put(_NAME, blob.dump(columns, {"notes": text}))
