"""Leaves out what needs the extra `learn`, which `make test-learn` installs and tests."""

from __future__ import annotations

import os

collect_ignore_glob = [] if "SKEWLESS_LEARN" in os.environ else ["src/skewless/learn/*", "tests/learn/*"]
