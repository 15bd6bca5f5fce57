"""Rows with the worker that a splitter gives them: by the policy of the moment in a stream, by one plan in a batch."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from skewless.control.folder import uri_of
from skewless.control.loop import Chosen
from skewless.control.policy_file import PolicyFile
from skewless.control.routing import Routing
from skewless.control.scaling import Scaling
from skewless.control.teaching import Taught
from skewless.control.workers_file import WorkersFile
from skewless.core.errors import SkewlessError
from skewless.core.policy import Policy
from skewless.elastic import Range
from skewless.spark.listen import register
from skewless.spark.observe import all_counts, top_counts, with_keys_observed
from skewless.spark.route import CONTROL, with_active, with_planned_worker, with_worker
from skewless.spark.session import prepare_routing
from skewless.split import Hash, PartLy, Prompt, Shuffle, Splitter
from skewless.split.teacher import Teacher

FOLDER = "spark.skewless.folder"
FIELDS = "version long, keys array<struct<key: long, lanes: array<int>>>"


def learning(
    rows: DataFrame,
    splitter: Splitter,
    stream: str,
    name: str,
    folder: str | None,
    chosen: Chosen,
    workers: Range | None = None,
    teacher: Teacher | None = None,
) -> DataFrame:
    """Rows of a stream that have their `KEY`, with the worker that the policy of the moment gives them.

    Parameters
    ----------
    rows
        The rows.
    splitter
        The splitter that learns; nobody else has it.
    stream, name
        The stream's identity, and its name for messages.
    folder
        A folder that the driver can write and every executor can read; None for the session's.
    chosen
        What runs, and why.
    workers
        The range of workers that follows the load; None if all of the splitter's are active.
    teacher
        Goes on teaching a `PartLy` from the times of tasks; None for a splitter that is not taught.
    """
    spark = rows.sparkSession
    if not isinstance(splitter, Hash):
        prepare_routing(spark)
    file = PolicyFile(uri_of(folder or session_folder(spark)), stream)
    scaling, rows = following(rows, workers, stream, folder)
    if teacher is None:
        loop = Routing(name, splitter, file, chosen, scaling)
    else:
        assert isinstance(splitter, PartLy)  # nobody else has a teacher
        loop = Taught(name, splitter, file, chosen, teacher, scaling)
    register(spark, stream, loop)
    policy = policy_in(spark, file)
    observed = with_keys_observed(rows, stream, splitter.workers)
    active = splitter.workers if scaling is None else F.col(CONTROL)
    return with_worker(observed, policy, active, shuffle=isinstance(splitter, Shuffle)).drop(CONTROL)


def following(
    rows: DataFrame, workers: Range | None, stream: str, folder: str | None
) -> tuple[Scaling | None, DataFrame]:
    """What decides the number of active workers of a stream, and its rows with that number as last column, `CONTROL`.

    None, and the rows as they are, if the number does not change.
    """
    if workers is None:
        return None, rows
    file = WorkersFile(uri_of(folder or session_folder(rows.sparkSession)), stream)
    return Scaling(workers, "map", file), with_active(rows, file)


def planned(rows: DataFrame, splitter: Splitter) -> tuple[DataFrame, Policy]:
    """Rows of a batch that have their `KEY`, counted once, with the worker of the policy for just these counts."""
    if not isinstance(splitter, Hash):
        prepare_routing(rows.sparkSession)
    if isinstance(splitter, Prompt):
        splitter.refuse_tree()  # Spark counts, and does so before the plan
    # Prompt plans the blocks of a batch from all of its keys.
    count = all_counts if isinstance(splitter, Prompt) else top_counts
    seen = count(rows, splitter.workers)
    policy = Policy.of(splitter.workers) if seen is None else splitter.plan(seen)
    shuffle = isinstance(splitter, Shuffle)
    done = with_planned_worker(rows, policy, shuffle=shuffle)
    if done is None:
        done = with_worker(rows, policy_frame(rows.sparkSession, policy), splitter.workers, shuffle=shuffle)
    return done, policy


def policy_in(spark: SparkSession, file: PolicyFile) -> DataFrame:
    """The policy that the file holds when the DataFrame is run: a row of key and lanes for each hot key.

    A file that is gone, or holds no policy, fails the query, in words, and whatever the session does with files that
    are missing. As one text the file is one row, so that this costs no step more than reading it does.
    """
    reader = spark.read.options(wholetext=True, ignoreMissingFiles=False, ignoreCorruptFiles=False)
    text = reader.text(file.path)
    policy = text.select(F.from_json("value", FIELDS).alias("policy"))
    gone = F.raise_error(
        F.lit(f"the policy at {file.shown(file.name)} is damaged; call agg(...) or repartition() again")
    )
    keys = F.when(F.col("policy.version").isNotNull(), F.col("policy.keys")).otherwise(gone)
    return policy.select(F.inline(keys))


def policy_frame(spark: SparkSession, policy: Policy) -> DataFrame:
    """A policy as a DataFrame whose rows are part of the plan."""
    lanes = pa.ListArray.from_arrays(pa.array(policy.offsets, pa.int32()), pa.array(policy.lanes, pa.int32()))
    return spark.createDataFrame(pa.table({"key": pa.array(policy.keys), "lanes": lanes}), "key long, lanes array<int>")


def session_folder(spark: SparkSession) -> str:
    """Where the policies of a session's streams are: in `spark.skewless.folder`, or if local in a private folder."""
    folder = spark.conf.get(FOLDER, None)
    if folder is not None:
        return folder
    master = spark.conf.get("spark.master", "") or ""
    if not master.startswith("local"):
        raise SkewlessError(
            f"the executors of {master} must be able to read the routing policy; give folder=, or set {FOLDER}, to a "
            "folder on a file system that all machines share, such as the checkpoint's"
        )
    return _private_folder()


@functools.cache
def _private_folder() -> str:
    folder = tempfile.mkdtemp(prefix="skewless-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
