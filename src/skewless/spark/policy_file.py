"""The policy as a small file that every micro-batch of a running query reads anew.

Spark lists a static file once and remembers its length, but reads its content in every micro-batch. So the file keeps
one length, padded with spaces, and is replaced whole: a batch sees one version, and never a half of one.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.fs
from pyspark.sql import DataFrame, SparkSession

from skewless.core.errors import SkewlessError
from skewless.core.policy import Policy

SCHEMA = "key long, lanes array<int>, version long"
LENGTH = 1 << 18  # bytes
LOCATION = "spark.skewless.location"


class PolicyFile:
    """Writes policies where the executors of a running query find the newest.

    Parameters
    ----------
    directory
        A folder that the driver can write and every executor can read: any path or URI that Arrow knows.
    length
        Bytes of the file, always. A policy that needs more is cut down to fewer lanes for each key.
    """

    def __init__(self, directory: str, length: int = LENGTH) -> None:
        self.length = length
        self._files, folder = pyarrow.fs.FileSystem.from_uri(_as_uri(directory))
        self._files.create_dir(folder, recursive=True)
        name = f"policy-{uuid.uuid4().hex}.json"
        self._path = f"{folder}/{name}"
        self.uri = f"{_as_uri(directory).rstrip('/')}/{name}"

    @classmethod
    def for_session(cls, spark: SparkSession) -> PolicyFile:
        """A file for a stream of this session: in `spark.skewless.location`, or if local in a private folder."""
        location = spark.conf.get(LOCATION, None)
        if location is None:
            master = spark.sparkContext.master or ""
            if not master.startswith("local"):
                raise SkewlessError(
                    f"the executors of {master} must be able to read the routing policy; set "
                    f"{LOCATION} to a folder on a file system that all machines share, such as the checkpoint's"
                )
            location = tempfile.mkdtemp(prefix="skewless-")
            atexit.register(shutil.rmtree, location, ignore_errors=True)
        return cls(location)

    def write(self, policy: Policy) -> None:
        """Make this the policy of every micro-batch that starts from now on."""
        text = _lines(policy, self.length)
        with self._files.open_output_stream(self._path + ".new") as out:
            # Spaces, as each empty line would be a record to parse.
            out.write(text.ljust(self.length))
        self._files.move(self._path + ".new", self._path)

    def read(self, spark: SparkSession) -> DataFrame:
        """The policy as a static DataFrame of `key`, `lanes` and `version`; one row has a version alone."""
        return spark.read.schema(SCHEMA).json(self.uri)


def policy_frame(spark: SparkSession, policy: Policy) -> DataFrame:
    """A policy as a DataFrame whose rows are part of the plan."""
    lanes = pa.ListArray.from_arrays(pa.array(policy.offsets, pa.int32()), pa.array(policy.lanes, pa.int32()))
    versions = pa.array(np.full(len(policy), policy.version, dtype=np.int64))
    return spark.createDataFrame(pa.table({"key": pa.array(policy.keys), "lanes": lanes, "version": versions}), SCHEMA)


def _rows(policy: Policy) -> list[tuple[int, list[int]]]:
    parts = np.split(policy.lanes, policy.offsets[1:-1]) if len(policy) else []
    return [(int(key), lanes.tolist()) for key, lanes in zip(policy.keys, parts, strict=True)]


def _lines(policy: Policy, length: int) -> bytes:
    """A JSON line for each key, with fewer lanes a key, and at last fewer keys, where they would not fit."""
    rows = _rows(policy)
    while True:
        lines = [{"key": key, "lanes": lanes, "version": policy.version} for key, lanes in [(None, None), *rows]]
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
        if len(text) <= length:
            return text
        if max(len(lanes) for _, lanes in rows) > 1:
            rows = [(key, lanes[::2]) for key, lanes in rows]
        else:
            rows = rows[: len(rows) // 2]


def _as_uri(path: str) -> str:
    return path if "://" in path else f"file://{path}"
