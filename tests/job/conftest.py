"""The folder that job files and their paths are in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path
