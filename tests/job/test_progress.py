from __future__ import annotations

from skewless.job.progress import Progress


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}.000Z"


def test_a_line_says_what_is_known() -> None:
    progress = Progress()
    assert progress.line(0, 1000, 10.4, {}, None) == "batch 0 | 1,000 rows | 10 rows/s"
    assert progress.line(1, 5, 1.0, {}, 1.239) == "batch 1 | 5 rows | 1 rows/s | imbalance 1.24"
    assert progress.rows == 1005


def test_the_watermark_is_behind_the_newest_row_of_all_batches() -> None:
    progress = Progress()
    start = {"max": at(100), "watermark": "1970-01-01T00:00:00.000Z"}
    assert "watermark" not in progress.line(0, 1, 1.0, start, None)  # there is none yet
    assert progress.line(1, 1, 1.0, {"max": at(60), "watermark": at(90)}, None).endswith("watermark 00:00:10 behind")
    assert progress.line(2, 0, 1.0, {"watermark": at(95)}, None).endswith("watermark 00:00:05 behind")
    late = {"max": "2026-01-05T04:00:30.000Z", "watermark": at(30)}
    assert progress.line(3, 1, 1.0, late, None).endswith("watermark 100:00:00 behind")


def test_a_batch_without_rows_has_no_rate() -> None:
    assert Progress().line(3, 0, float("nan"), {}, None) == "batch 3 | 0 rows | 0 rows/s"
