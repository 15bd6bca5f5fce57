"""A job file is read as it is written, and what is wrong with one is said with its line."""

from __future__ import annotations

import pytest

from skewless.job import Job, Key, Sink, Source, Trigger, Window
from skewless.job.expression import Call
from support.jobs import BATCH, JOB, edited, parsed, refusal

pytestmark = pytest.mark.usefixtures("here")


def test_a_job_is_read_as_it_is_written() -> None:
    schema = "ts timestamp, page string, `the price` double, at struct<x: int, y: int>"
    assert parsed(JOB) == Job(
        name="clicks",
        master="local[2]",
        settings={"spark.sql.session.timeZone": "UTC"},
        source=Source("parquet", "in/", schema, stream=True, options={"maxFilesPerTrigger": "1"}),
        key=Key(("page",), 16, "auto"),
        window=Window("ts", "60 seconds", "1 second", "10 seconds", "append"),
        aggregates={"n": Call("count", {}), "spent": Call("sum", {"column": "the price"})},
        sink=Sink("parquet", "out/", "checkpoint/", {}),
        trigger=Trigger(available_now=True),
    )


def test_a_range_of_workers_follows_by_the_trigger() -> None:
    job = parsed(edited("workers = 16", "workers = [2, 16]").replace("available_now = true", 'every = "5 seconds"'))
    assert (job.key.workers, job.trigger.every) == ((2, 16), "5 seconds")
    message = refusal(edited("workers = 16", "workers = [2, 16]", BATCH))
    assert message.endswith("between micro-batches, but [source] stream is false; give one number")


def test_what_is_left_out_has_a_default() -> None:
    job = parsed(
        """
        source.format = "rate"
        key.columns = ["value"]
        window = {time = "timestamp", size = "1 minute", watermark = "0 seconds"}
        aggregates.n = "count()"
        sink.format = "console"
        """
    )
    assert (job.name, job.master, job.settings) == (None, None, {})
    assert job.source == Source("rate", None, None, stream=True, options={})
    assert job.key == Key(("value",), None, "auto")
    assert job.window == Window("timestamp", "1 minute", None, "0 seconds", "append")
    assert job.trigger == Trigger()


def test_a_batch_job_needs_neither_watermark_nor_checkpoint_nor_trigger() -> None:
    job = parsed(edited('watermark = "10 seconds"\n', "", BATCH))
    assert (job.source.stream, job.window.watermark, job.sink.checkpoint) == (False, None, None)


def test_options_are_texts_under_names_with_dots_in_quotes_or_not() -> None:
    text = edited("maxFilesPerTrigger = 1", 'a.b = true\n"c.d" = 0.5\ne.f.g = "x"')
    assert parsed(text).source.options == {"a.b": "true", "c.d": "0.5", "e.f.g": "x"}


REFUSED = [
    # unknown and missing
    ("[window]", "[windw]", "21: windw is unknown; did you mean window?"),
    ("name =", "nmae =", "1: nmae is unknown; did you mean name?"),
    ("slide =", "sldie =", "24: [window] sldie is unknown; did you mean slide?"),
    ("workers =", "zzz =", "18: [key] zzz is unknown; there is only columns, workers, split, folder"),
    (
        '[aggregates]\nn = "count"\nspent = "sum(`the price`)"\n',
        "",
        '1: there is no [aggregates]; add one, with n = "count"',
    ),
    ('size = "60 seconds"\n', "", '21: [window] needs size, such as size = "60 seconds"'),
    ('columns = ["page"]\n', "", '16: [key] needs columns, such as columns = ["page"]'),
    ('time = "ts"', 'time = ""', '22: [window] time is empty; write one, such as time = "ts"'),
    # kinds
    ("workers = 16", 'workers = "16"', '18: [key] workers is "16", not a whole number'),
    ("workers = 16", "workers = true", "18: [key] workers is true, not a whole number"),
    (
        "workers = 16",
        "workers = 0",
        "18: [key] workers is 0; give at least 1, or leave it out for Spark's shuffle partitions",
    ),
    (
        "workers = 16",
        "workers = [2, 4, 8]",
        "18: [key] workers is [2, 4, 8]; give a number, or the fewest and the most, such as [2, 16]",
    ),
    (
        "workers = 16",
        'workers = [2, "8"]',
        '18: [key] workers is [2, "8"]; give a number, or the fewest and the most, such as [2, 16]',
    ),
    ("workers = 16", "workers = [8, 2]", "18: [key] workers is [8, 2]; give the smaller number first, and at least 1"),
    (
        "workers = 16",
        "workers = [2, 16]",
        "18: [key] workers is [2, 16], a range that follows the load of a stream by the time between micro-batches; "
        'say that time, such as [trigger] every = "10 seconds"',
    ),
    ("stream = true", 'stream = "yes"', '11: [source] stream is "yes", not true or false'),
    ('columns = ["page"]', 'columns = "page"', '17: [key] columns is "page", not a list'),
    ('columns = ["page"]', "columns = []", '17: [key] columns is [], but must name columns, such as ["page"]'),
    ('columns = ["page"]', "columns = [1]", '17: [key] columns is [1], but must name columns, such as ["page"]'),
    (
        'columns = ["page"]',
        'columns = ["page", "page"]',
        '17: [key] columns is ["page", "page"], with page twice; name each column once',
    ),
    ("[spark]\n", "[spark]\na = [1]\n", "5: [spark] a is [1], not a text or a number"),
    (
        "[spark]\n",
        'sql.x = "1"\n',
        "4: sql is unknown; there is only name, master, spark, source, key, window, aggregates, sink, trigger",
    ),
    (
        "[spark]\n",
        '[spark]\nsql.x = "1"\n',
        "5: [spark] sql.x is no setting of Spark's: they start with spark.; write spark.sql.x",
    ),
    (
        '[key]\ncolumns = ["page"]\nworkers = 16\nsplit = "auto"\n',
        "",
        '1: there is no [key]; add one, with columns = ["page"]',
    ),
    # source
    (
        'path = "in/"',
        'path = "nowhere/"',
        "9: [source] path is nowhere/, but there is no such file or directory; paths start where you run this",
    ),
    (
        'path = "in/"',
        'path = "file:///nowhere/*.parquet"',
        "9: [source] path is file:///nowhere/*.parquet, but there is no such file or directory; paths start where you "
        "run this",
    ),
    ('path = "in/"\n', "", '7: [source] needs path, such as path = "in/"'),
    (
        "page string,",
        "page,",
        "10: [source] schema: 'page' is not a column; write a name and a type for each column, such as "
        "'ts timestamp, page string'",
    ),
    # columns that are not in the schema
    (
        'columns = ["page"]',
        'columns = ["pgae"]',
        '17: [key] columns is ["pgae"], but [source] schema has no column pgae; did you mean page?',
    ),
    (
        'time = "ts"',
        'time = "x"',
        "22: [window] time is x, but [source] schema has no column x; there is only ts, page, the price, at",
    ),
    (
        'spent = "sum(`the price`)"',
        'spent = "sum(price)"',
        "30: [aggregates] spent is sum(price), but [source] schema has no column price; did you mean the price?",
    ),
    # key, window
    (
        'split = "auto"',
        'split = "dolton"',
        "19: [key] split is dolton, which is unknown; did you mean dalton?",
    ),
    (
        'slide = "1 second"',
        'slide = "2 minutes"',
        "24: [window] slide is 2 minutes, longer than size, 60 seconds; make it size or shorter, or leave it out",
    ),
    (
        'size = "60 seconds"',
        'size = "1 month"',
        "23: [window] size: '1 month' has no fixed length; use days, such as '30 days'",
    ),
    (
        'watermark = "10 seconds"',
        'watermark = "-1 second"',
        "25: [window] watermark: '-1 second' is less than nothing; write a longer interval, such as '10 seconds'",
    ),
    (
        'output = "append"',
        'output = "complete"',
        "26: [window] output is complete, which is unknown; use append or update",
    ),
    (
        'output = "append"',
        'output = "update"',
        "26: [window] output is update, but parquet files are only appended to; use append",
    ),
    (
        'watermark = "10 seconds"\n',
        "",
        '21: [window] needs watermark, such as watermark = "10 seconds": append writes a window when it has passed; '
        "update does not wait",
    ),
    # aggregates
    ('n = "count"', 'n = "cuont"', "29: [aggregates] n is cuont: there is no aggregate cuont; did you mean count?"),
    (
        'n = "count"',
        'n = "quantile(page)"',
        "29: [aggregates] n is quantile(page): quantile needs q; write quantile(column, q[, k])",
    ),
    (
        'n = "count"',
        'n = "quantile(page, 2)"',
        "29: [aggregates] n is quantile(page, 2): 2.0 is no quantile; give a share from 0 to 1, such as 0.5 for the "
        "median",
    ),
    ('n = "count"', "n = 1", "29: [aggregates] n is 1, not a text in quotes"),
    (
        'n = "count"',
        'page = "count"',
        "29: [aggregates] page is count, but page is already the name of a key column; choose another",
    ),
    (
        'n = "count"',
        'window = "count"',
        "29: [aggregates] window is count, but window is already the name of the window; choose another",
    ),
    (
        'n = "count"\nspent = "sum(`the price`)"\n',
        "",
        '28: [aggregates] is empty; name a result and its aggregate, such as n = "count"',
    ),
    # sink
    (
        'checkpoint = "checkpoint/"\n',
        "",
        '32: [sink] needs checkpoint, such as checkpoint = "checkpoint/": a stopped job goes on from it',
    ),
    ('path = "out/"\n', "", '32: [sink] needs path, such as path = "out/"'),
    # trigger
    (
        "available_now = true",
        "",
        "37: [trigger] has nothing that starts a batch; give one of available_now = true, once = true, "
        'every = "10 seconds"',
    ),
    (
        "available_now = true",
        'available_now = true\nevery = "1 second"',
        "37: [trigger] has both available_now and every; give one of available_now = true, once = true, "
        'every = "10 seconds"',
    ),
    (
        "available_now = true",
        'every = "0 seconds"',
        "38: [trigger] every: '0 seconds' is no time at all; write a longer interval, such as '10 seconds'",
    ),
    # syntax
    ('size = "60 seconds"', "size = ", "23: Invalid value; correct the TOML there"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, message: str) -> None:
    assert refusal(edited(old, new)) == f"job.toml:{message}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'path = "out/"\n',
            'path = "out/"\ncheckpoint = "c/"\n',
            "35: [sink] checkpoint is c/, but [source] stream is false; leave it out",
        ),
        (
            '[sink]\nformat = "parquet"',
            '[sink]\nformat = "memory"',
            "33: [sink] format is memory, which takes only streams; use console, or parquet with a path",
        ),
        (
            'path = "out/"',
            'path = "in/"',
            "34: [sink] path is in/, which is there already; name a new one, or remove it",
        ),
        (
            "[sink]\n",
            "[trigger]\nonce = true\n[sink]\n",
            "32: [trigger] is for streams, but [source] stream is false; leave it out",
        ),
    ],
)
def test_what_is_wrong_with_a_batch_job_is_said_with_its_line(old: str, new: str, message: str) -> None:
    assert refusal(edited(old, new, BATCH)) == f"job.toml:{message}"


def test_a_memory_sink_wants_a_name_for_its_table() -> None:
    memory = edited(
        '[sink]\nformat = "parquet"\npath = "out/"\ncheckpoint = "checkpoint/"', '[sink]\nformat = "memory"'
    )
    assert parsed(memory).sink == Sink("memory", None, None, {})
    message = "32: [sink] format is memory, which is a table with the name of the job; add a name to the job"
    assert refusal(edited('name = "clicks"\n', "", memory)) == f"job.toml:{message}"


def test_a_section_must_be_one() -> None:
    message = refusal(edited("[trigger]\navailable_now = true", "", "trigger = true\n" + JOB))
    assert message == "job.toml:1: trigger is true, not a section; write [trigger]"


def test_only_paths_of_this_machine_are_looked_for() -> None:
    for path in ("hdfs://host/in", "s3a://bucket/in", "in/*.parquet"):
        assert parsed(edited('path = "in/"', f'path = "{path}"')).source.path == path
    cluster = edited('path = "in/"', 'path = "nowhere/"', edited("local[2]", "spark://host:7077"))
    assert parsed(cluster).source.path == "nowhere/"


def test_a_stream_of_files_needs_a_schema_but_a_batch_does_not() -> None:
    line = JOB[JOB.index("schema =") : JOB.index("stream =")]
    assert refusal(edited(line, "")).startswith("job.toml:7: [source] needs schema, such as schema = ")
    assert parsed(edited(line, "", BATCH)).source.schema is None
