"""Settings of every test: hypothesis without deadlines, fresh kernels, Spark workers on this Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

SOURCE = Path(__file__).parents[1] / "src" / "skewless"


def drop_stale_kernels(source: Path) -> None:
    """Delete numba's cache under `source` if any Python file there is newer than the oldest kernel in it.

    numba compares a cached kernel with the file of that function alone. A kernel also holds the code of the functions
    it calls, which may live in other files: after an edit there numba would go on running the old code.
    """
    compiled = [path for path in source.rglob("__pycache__/*") if path.suffix in {".nbi", ".nbc"}]
    kernels = [path.stat().st_mtime for path in compiled if path.suffix == ".nbi"]
    edits = [path.stat().st_mtime for path in source.rglob("*.py")]
    if kernels and max(edits) > min(kernels):
        for path in compiled:
            path.unlink(missing_ok=True)


# All of this must be in place before skewless or Spark is imported, hence here and not in a fixture.
drop_stale_kernels(SOURCE)

# Spark would start its workers with the first python3 on the PATH, which need not have our packages.
os.environ["PYSPARK_PYTHON"] = sys.executable
# Functions of a test are loaded there with the test's module, and so with what that imports from tests/support.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))

# The first example compiles kernels and a busy machine is slow: neither is a failure.
settings.register_profile(
    "skewless",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("skewless")
