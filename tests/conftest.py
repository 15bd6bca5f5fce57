"""Settings of every test: hypothesis without deadlines, fresh kernels, Spark workers on this Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from support.kernels import drop_stale_kernels

SOURCE = Path(__file__).parents[1] / "src" / "skewless"


# Their asserts say what they compared, as those of tests do.
pytest.register_assert_rewrite("support.placed", "support.troubles", "support.tuned")

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
    derandomize=False,  # which hypothesis switches on by itself where CI is set
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fast", settings.get_profile("skewless"), max_examples=20)
settings.register_profile("broken", settings.get_profile("skewless"), phases=[Phase.generate])  # any example will do
settings.load_profile("skewless")
