"""A job as a file says it, with one thing changed, and how it is read or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from skewless.core.errors import SkewlessError
from skewless.job import Job, read

JOB = """\
name = "clicks"
master = "local[2]"

[spark]
"spark.sql.session.timeZone" = "UTC"

[source]
format = "parquet"
path = "in/"
schema = "ts timestamp, page string, `the price` double, at struct<x: int, y: int>"
stream = true

[source.options]
maxFilesPerTrigger = 1

[key]
columns = ["page"]
workers = 16
split = "auto"

[window]
time = "ts"
size = "60 seconds"
slide = "1 second"
watermark = "10 seconds"
output = "append"

[aggregates]
n = "count"
spent = "sum(`the price`)"

[sink]
format = "parquet"
path = "out/"
checkpoint = "checkpoint/"

[trigger]
available_now = true
"""
BATCH = (
    JOB.replace("stream = true", "stream = false")
    .replace('checkpoint = "checkpoint/"\n', "")
    .replace("[trigger]\navailable_now = true\n", "")
)


def parsed(text: str) -> Job:
    Path("job.toml").write_text(text)
    return read(Path("job.toml"))


def refusal(text: str) -> str:
    with pytest.raises(SkewlessError) as refused:
        parsed(text)
    return str(refused.value)


def edited(old: str, new: str, text: str = JOB) -> str:
    assert text.count(old) == 1, f"{old!r} must be once in the job"
    return text.replace(old, new)
