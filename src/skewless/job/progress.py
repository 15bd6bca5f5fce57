"""What a running query reports: one line for each micro-batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

_NONE_YET = datetime.fromtimestamp(0, timezone.utc)  # Spark's watermark before the first row


@dataclass
class Progress:
    """Adds up the micro-batches of a query.

    Examples
    --------
    >>> progress = Progress()
    >>> times = {"max": "2026-01-01T00:01:00.000Z", "watermark": "2026-01-01T00:00:48.000Z"}
    >>> progress.line(12, 500_000, 412_345.6, times, imbalance=1.034)
    'batch 12 | 500,000 rows | 412,346 rows/s | imbalance 1.03 | watermark 00:00:12 behind'
    >>> progress.line(13, 0, 0.0, {}, None, scaling=(5, 0.834))
    'batch 13 | 0 rows | 0 rows/s | 5 active at W 0.83'
    >>> progress.rows
    500000
    """

    rows: int = 0
    """The rows of all micro-batches so far."""
    _newest: datetime = field(default=_NONE_YET)

    def line(
        self,
        batch: int,
        rows: int,
        rate: float,
        times: Mapping[str, str],
        imbalance: float | None,
        scaling: tuple[int, float] | None = None,
    ) -> str:
        """Add a micro-batch, and return the line that reports it.

        Parameters
        ----------
        batch
            The number of the micro-batch.
        rows
            Rows that it read.
        rate
            Rows per second; not finite if there were no rows.
        times
            Spark's `eventTime`: the newest row (`max`) and the `watermark`, as far as it knows them.
        imbalance
            The imbalance of the workers' loads, if known.
        scaling
            The number of active workers and W, where workers follow the load.
        """
        self.rows += rows
        if "max" in times:
            self._newest = max(self._newest, _moment(times["max"]))
        words = [f"batch {batch}", f"{rows:,} rows", f"{rate if math.isfinite(rate) else 0:,.0f} rows/s"]
        if imbalance is not None:
            words.append(f"imbalance {imbalance:.2f}")
        if scaling is not None:
            words.append(f"{scaling[0]} active at W {scaling[1]:.2f}")
        watermark = _moment(times["watermark"]) if "watermark" in times else _NONE_YET
        if watermark > _NONE_YET and self._newest > _NONE_YET:
            words.append(f"watermark {_clock(self._newest - watermark)} behind")
        return " | ".join(words)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _clock(span: timedelta) -> str:
    minutes, seconds = divmod(max(0, round(span.total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}"
