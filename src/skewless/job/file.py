"""A job as a file says it: where rows come from, their key, the windows, the aggregates, and where results go.

`read` refuses whatever can be seen to be wrong before Spark starts, with the line of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from skewless import split
from skewless.core.interval import microseconds
from skewless.job import ddl, expression, toml
from skewless.job.expression import Call, nearest
from skewless.job.section import Section

FILES = ("parquet", "orc", "json", "csv", "text", "avro", "xml")
"""Formats whose path is a place in a file system."""
FORGETFUL = ("console", "memory", "noop")
"""Sinks that keep nothing which a restarted query could go on from."""
SPLITS = ("auto", "local", "spark", *split.NAMES)
"""The splits of `api.keyed`, which cannot be asked before Spark is loaded."""
SECTIONS = ("spark", "source", "key", "window", "aggregates", "sink", "trigger")
_EXAMPLES = {
    "source": 'format = "parquet"',
    "key": 'columns = ["page"]',
    "window": 'time = "ts" and size = "60 seconds"',
    "aggregates": 'n = "count"',
    "sink": 'format = "console"',
}


@dataclass(frozen=True)
class Source:
    """Where rows come from: a format of Spark, and what it wants to know."""

    format: str
    path: str | None
    schema: str | None
    stream: bool
    options: Mapping[str, str]


@dataclass(frozen=True)
class Key:
    """What `keyed` is told."""

    columns: tuple[str, ...]
    workers: int | tuple[int, int] | None
    split: str
    folder: str | None = None


@dataclass(frozen=True)
class Window:
    """What `KeyedStream.window` is told, and whether closed windows or changed ones are given."""

    time: str
    size: str
    slide: str | None
    watermark: str | None
    output: str


@dataclass(frozen=True)
class Sink:
    """Where results go."""

    format: str
    path: str | None
    checkpoint: str | None
    options: Mapping[str, str]


@dataclass(frozen=True)
class Trigger:
    """When micro-batches start: one of these, or none for as soon as the last is done."""

    available_now: bool = False
    once: bool = False
    every: str | None = None


@dataclass(frozen=True)
class Job:
    """All that a job file says."""

    name: str | None
    master: str | None
    settings: Mapping[str, str]
    source: Source
    key: Key
    window: Window
    aggregates: Mapping[str, Call]
    sink: Sink
    trigger: Trigger


def read(path: Path) -> Job:
    """The job in a file; the first thing that is wrong with it is refused, with its line and a remedy."""
    document = toml.read(path)
    top = Section(document, "", ("name", "master", *SECTIONS))
    for section, example in _EXAMPLES.items():
        if section not in document.values:
            raise document.error("", f"there is no [{section}]; add one, with {example}")
    name, master = top.get("name", str), top.get("master", str)
    of_source = _section(document, Source)
    source = _source(of_source, master)
    columns = None  # only Spark can tell
    if source.schema is not None:
        with of_source.naming("schema", "schema"):
            columns = ddl.column_names(source.schema)
    of_key = _section(document, Key)
    key = _key(of_key, columns)
    of_window = _section(document, Window)
    window = _window(of_window, columns, stream=source.stream)
    aggregates = _aggregates(Section(document, "aggregates"), key, columns)
    of_sink = _section(document, Sink)
    sink = _sink(of_sink, master, stream=source.stream)
    if sink.format in FILES and source.stream and window.output != "append":
        raise of_window.error("output", f"{window.output}, but {sink.format} files are only appended to; use append")
    if sink.format == "memory" and not name:
        raise of_sink.error("format", "memory, which is a table with the name of the job; add a name to the job")
    trigger = _trigger(_section(document, Trigger), stream=source.stream)
    _check_range(of_key, source, trigger)
    return Job(name, master, _settings(document), source, key, window, aggregates, sink, trigger)


def _section(document: toml.Document, kind: type[Any]) -> Section:
    """The section that is named like a class of settings, with the class's fields as its keys."""
    return Section(document, kind.__name__.lower(), [field.name for field in fields(kind)])


def _settings(document: toml.Document) -> dict[str, str]:
    section = Section(document, "spark")
    settings = section.options()
    for name in settings:
        if not name.startswith("spark."):
            raise section.refusal(name, f"{name} is no setting of Spark's: they start with spark.; write spark.{name}")
    return settings


def _source(section: Section, master: str | None) -> Source:
    kind = section.need("format", str, '"parquet"')
    path, schema = section.get("path", str), section.get("schema", str)
    stream = section.get("stream", bool)
    source = Source(kind, path, schema, stream is not False, section.table("options").options())
    if kind in FILES:
        section.need("path", str, '"in/"')
    if kind in FILES and kind != "text" and source.stream:
        section.need("schema", str, '"ts timestamp, page string": a stream of files does not look for its own')
    local = _local(path, master) if path and kind in FILES else None
    if local and not _whole_part(local).exists():
        raise section.error("path", f"{path}, but there is no such file or directory; paths start where you run this")
    return source


def _key(section: Section, known: tuple[str, ...] | None) -> Key:
    columns = section.need("columns", list, '["page"]')
    if not columns or not all(isinstance(each, str) for each in columns):
        raise section.error("columns", f'{section.shown("columns")}, but must name columns, such as ["page"]')
    _check_known(section, "columns", columns, known)
    if twice := {each for each in columns if columns.count(each) > 1}:
        raise section.error("columns", f"{section.shown('columns')}, with {min(twice)} twice; name each column once")
    workers = _workers(section)
    split = section.get("split", str) or "auto"
    if split not in SPLITS:
        raise section.error("split", f"{split}, which is unknown; {nearest(split, SPLITS)}")
    if split in ("local", "spark") and workers is not None:
        shown = section.shown("workers")
        raise section.error("workers", f"{shown}, but split is {split}, which moves no rows; leave one of them out")
    return Key(tuple(columns), workers, split, section.get("folder", str))


def _workers(section: Section) -> int | tuple[int, int] | None:
    """A number of workers, or the fewest and the most."""
    if isinstance(section.values.get("workers"), list):
        both, shown = section.values["workers"], section.shown("workers")
        if len(both) != 2 or any(type(each) is not int for each in both):
            raise section.error("workers", f"{shown}; give a number, or the fewest and the most, such as [2, 16]")
        if not 1 <= both[0] <= both[1]:
            raise section.error("workers", f"{shown}; give the smaller number first, and at least 1")
        return both[0], both[1]
    workers = section.get("workers", int)
    if workers is not None and workers < 1:
        raise section.error("workers", f"{workers}; give at least 1, or leave it out for Spark's shuffle partitions")
    return workers


def _check_range(section: Section, source: Source, trigger: Trigger) -> None:
    """Refuse a range of workers where no interval between micro-batches says how it is to follow the load."""
    if isinstance(section.values.get("workers"), list) and trigger.every is None:
        shown = (
            f"{section.shown('workers')}, a range that follows the load of a stream by the time between micro-batches"
        )
        if not source.stream:
            raise section.error("workers", f"{shown}, but [source] stream is false; give one number")
        raise section.error("workers", f'{shown}; say that time, such as [trigger] every = "10 seconds"')


def _window(section: Section, known: tuple[str, ...] | None, *, stream: bool) -> Window:
    time = section.need("time", str, '"ts"')
    _check_known(section, "time", [time], known)
    size = section.need("size", str, '"60 seconds"')
    slide, watermark = section.get("slide", str), section.get("watermark", str)
    length = _length(section, "size", size)
    if slide is not None and _length(section, "slide", slide) > length:
        raise section.error("slide", f"{slide}, longer than size, {size}; make it size or shorter, or leave it out")
    if watermark is not None:
        _length(section, "watermark", watermark, zero=True)
    output = section.get("output", str) or "append"
    if output not in ("append", "update"):
        raise section.error("output", f"{output}, which is unknown; use append or update")
    if stream and output == "append" and watermark is None:
        section.need("watermark", str, '"10 seconds": append writes a window when it has passed; update does not wait')
    return Window(time, size, slide, watermark, output)


def _aggregates(section: Section, key: Key, known: tuple[str, ...] | None) -> dict[str, Call]:
    if not section.values:
        raise section.refusal(None, 'is empty; name a result and its aggregate, such as n = "count"')
    calls = {}
    for name in section.values:
        text = section.need(name, str, '"count"')
        if name in (*key.columns, "window", "folder"):
            taken = {"window": "the window", "folder": "the folder of policies"}.get(name, "a key column")
            raise section.error(name, f"{text}, but {name} is already the name of {taken}; choose another")
        with section.naming(name, f"{name} is {text}"):
            calls[name] = expression.parse(text)
            calls[name].measure()
        _check_known(section, name, list(calls[name].columns), known)
    return calls


def _sink(section: Section, master: str | None, *, stream: bool) -> Sink:
    kind = section.need("format", str, '"parquet"')
    path, checkpoint = section.get("path", str), section.get("checkpoint", str)
    if kind in FILES:
        section.need("path", str, '"out/"')
    if stream and kind not in FORGETFUL:
        section.need("checkpoint", str, '"checkpoint/": a stopped job goes on from it')
    if not stream and checkpoint is not None:
        raise section.error("checkpoint", f"{checkpoint}, but [source] stream is false; leave it out")
    if not stream and kind == "memory":
        raise section.error("format", "memory, which takes only streams; use console, or parquet with a path")
    local = _local(path, master) if path and kind in FILES and not stream else None
    if local and local.exists():
        raise section.error("path", f"{path}, which is there already; name a new one, or remove it")
    return Sink(kind, path, checkpoint, section.table("options").options())


def _trigger(section: Section, *, stream: bool) -> Trigger:
    if not section.given:
        return Trigger()
    if not stream:
        raise section.refusal(None, "is for streams, but [source] stream is false; leave it out")
    now, once, every = section.get("available_now", bool), section.get("once", bool), section.get("every", str)
    kinds = [name for name, value in (("available_now", now), ("once", once), ("every", every)) if value]
    if len(kinds) != 1:
        has = f"has both {' and '.join(kinds)}" if kinds else "has nothing that starts a batch"
        raise section.refusal(None, f'{has}; give one of available_now = true, once = true, every = "10 seconds"')
    if every is not None:
        _length(section, "every", every)
    return Trigger(bool(now), bool(once), every)


def _length(section: Section, key: str, text: str, *, zero: bool = False) -> int:
    with section.naming(key, key):
        return microseconds(text, zero=zero)


def _check_known(section: Section, key: str, columns: list[str], known: tuple[str, ...] | None) -> None:
    for column in columns:
        if known is not None and column not in known:
            remedy = nearest(column, known)
            raise section.error(key, f"{section.shown(key)}, but [source] schema has no column {column}; {remedy}")


def _local(path: str, master: str | None) -> Path | None:
    """The path if it is on this machine: a cluster's paths without a scheme are in its own file system."""
    scheme = re.match(r"([a-zA-Z][\w+.-]+):(?://)?", path)
    if scheme:
        return Path(path[scheme.end() :]) if scheme[1].lower() == "file" else None
    return Path(path) if master is None or master.startswith("local") else None


def _whole_part(path: Path) -> Path:
    """A path up to its first pattern, for patterns are Spark's to resolve."""
    parts = path.parts
    pattern = next((i for i, part in enumerate(parts) if re.search(r"[*?\[{]", part)), len(parts))
    return Path(*parts[:pattern])
