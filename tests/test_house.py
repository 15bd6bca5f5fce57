"""The contracts of the house that a linter of imports does not see."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import types as T

from skewless import aggregate
from skewless.core.windows import Windows
from skewless.operators.panes.combine import Combine
from skewless.operators.panes.layout import Layout
from skewless.operators.panes.worker import PanesWorker
from skewless.spark.result import Result
from skewless.spark.stage import Run, RunAll, Send

SOURCE = Path(__file__).parents[1] / "src" / "skewless"
ARROW = int(pa.__version__.split(".")[0])


@functools.cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    paths = sorted(SOURCE.rglob("*.py"))
    return tuple((str(path.relative_to(SOURCE)), ast.parse(path.read_text())) for path in paths)


@functools.cache
def imported() -> dict[str, set[str]]:
    """What each file imports."""
    found: dict[str, set[str]] = {}
    for path, tree in modules():
        nodes = list(ast.walk(tree))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        found[path] = names | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return found


def subclassing(name: str) -> list[str]:
    """The files with a class that has a base of this name."""
    return [
        path
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).split(".")[-1] == name for base in node.bases)
    ]


def importing(name: str) -> set[str]:
    """The files that import a module of this name, or from it."""
    return {path for path, names in imported().items() if any(f"{each}.".startswith(f"{name}.") for each in names)}


def test_one_file_runs_workers_in_spark_and_one_listens_to_queries() -> None:
    assert subclassing("StatefulProcessor") == ["spark/stage.py"]
    assert subclassing("StreamingQueryListener") == ["spark/listen.py"]


def test_durable_files_are_written_in_one_place() -> None:
    assert importing("pyarrow.fs") == {"control/folder.py"}


def test_spark_is_known_in_few_places() -> None:
    homes = {path.split("/")[0] for path in importing("pyspark")}
    assert homes <= {"spark", "api", "job", "demo"}


def test_every_function_that_runs_in_a_task_settles_first() -> None:
    """Its first step leaves what is imported out of the garbage collection, which Spark runs after every task."""
    found = {}
    for path, tree in modules():
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
        handed = [node.args[0] for node in calls if getattr(node.func, "attr", "") in ("mapInArrow", "arrow_udf")]
        names = {
            name.id
            for each in handed
            if not isinstance(each, ast.Call)  # an object, whose __call__ runs
            for name in ast.walk(each)
            if isinstance(name, ast.Name)
        }
        for node in ast.walk(tree):
            in_task = isinstance(node, ast.FunctionDef) and (node.name in names or node.name in ("__call__", "init"))
            if path.startswith("spark/") and isinstance(node, ast.FunctionDef) and in_task:
                body = node.body[1:] if ast.get_docstring(node) else node.body
                found[f"{path}:{node.name}:{node.lineno}"] = ast.unparse(body[0])
    assert len(found) >= 8, found
    assert set(found.values()) == {"settle()"}, found


def test_what_is_imported_is_left_out_of_the_garbage_collection_of_tasks() -> None:
    twice = "import gc; from skewless.spark.stage import settle; settle(); first = gc.get_freeze_count(); settle(); "
    check = "assert first > 10_000; assert gc.get_freeze_count() == first"
    subprocess.run([sys.executable, "-c", twice + check], check=True)


@pytest.mark.parametrize("outside", ["benchmarks", "experiments"])
def test_nothing_in_the_package_knows_what_is_outside_of_it(outside: str) -> None:
    assert importing(outside) == set()


def local_functions() -> list[object]:
    """What Spark's Python processes are handed for windows that are combined where rows lie."""
    measures = [aggregate.count(), aggregate.sum("v")]
    kernels = (measures[0].bind([]), measures[1].bind([pa.int64()]))
    layout = Layout(Windows(10, 5), (pa.int64(),), kernels, marks=tuple(measure.mark for measure in measures))
    long = T.LongType()
    values = (T.StructField("n", long), T.StructField("s", long))
    result = Result((T.StructField("k", long),), values, layout.windows, T.TimestampType())
    make = partial(PanesWorker, layout)
    return [
        Send(Combine(layout, ((), (3,))), (0, 1)),
        Run(make, result, (0, 1), timed=True),
        RunAll(make, result, (0, 1)),
    ]


@pytest.mark.parametrize(
    "unwanted",
    [
        "numba",
        pytest.param("pandas", marks=pytest.mark.skipif(ARROW < 26, reason="this PyArrow loads pandas for any array")),
        "skewless.place",
        "skewless.chop",
        "skewless.split",
        "skewless.control",
    ],
)
def test_what_runs_where_rows_lie_loads_little(tmp_path: Path, unwanted: str) -> None:
    file = tmp_path / "functions"
    file.write_bytes(cloudpickle.dumps(local_functions()))
    code = f"""
import pickle, sys
pickle.loads(open({str(file)!r}, "rb").read())
loaded = [name for name in sys.modules if (name + ".").startswith({unwanted + "."!r})]
assert "skewless.operators.panes.worker" in sys.modules
sys.exit(f"it loads {{loaded}}" if loaded else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
