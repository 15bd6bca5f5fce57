"""Cached kernels go when a file that they hold code of has changed, and stay when another has."""

from __future__ import annotations

import os
from pathlib import Path

from support.kernels import drop_stale_kernels

FILES = {
    "house/__init__.py": "",
    "house/floor/__init__.py": "from house.floor.inner import add",
    "house/floor/inner.py": "def add(): ...",
    "house/roof.py": "from house.floor import add",
    "house/shed.py": "import math",
}


def test_kernels_go_with_what_they_call_and_no_others(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1000, 1000))
    kernels = {}
    for module in ("house/floor/inner", "house/roof", "house/shed"):
        for kind in ("nbi", "1.nbc"):
            kernel = (tmp_path / module).parent / "__pycache__" / f"{Path(module).name}.run-3.py311.{kind}"
            kernel.parent.mkdir(exist_ok=True)
            kernel.touch()
            os.utime(kernel, (2000, 2000))
            kernels[module, kind] = kernel

    def left() -> set[str]:
        drop_stale_kernels(tmp_path / "house")
        return {module for (module, _kind), kernel in kernels.items() if kernel.exists()}

    assert left() == {"house/floor/inner", "house/roof", "house/shed"}
    os.utime(tmp_path / "house/shed.py", (3000, 3000))
    assert left() == {"house/floor/inner", "house/roof"}
    os.utime(tmp_path / "house/floor/inner.py", (3000, 3000))
    assert left() == set()
