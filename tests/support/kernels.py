"""numba's cache, without the kernels that an edit has made stale."""

from __future__ import annotations

import ast
from pathlib import Path


def drop_stale_kernels(source: Path) -> None:
    """Delete those of numba's cached kernels under `source` that hold code of a file that was changed since.

    numba compares a cached kernel with the file of that function alone. A kernel also holds the code of the functions
    it calls, which may be in files that its own imports, directly or not: after an edit there numba would go on
    running the old code. Kernels of other modules stay, so that an edit compiles what it must and no more.
    """
    parts = {path.relative_to(source.parent).with_suffix("").parts: path for path in source.rglob("*.py")}
    files = {".".join(names).removesuffix(".__init__"): path for names, path in parts.items()}
    imports = {name: _imported(path) & files.keys() for name, path in files.items()}
    for name, path in files.items():
        kernels = list((path.parent / "__pycache__").glob(f"{path.stem}.*.nb[ic]"))
        if not kernels:
            continue
        reached, new = set[str](), {name}
        while new:
            reached |= new
            new = {each for one in new for each in imports[one]} - reached
        edited = max(files[each].stat().st_mtime for each in reached)
        if edited > min(kernel.stat().st_mtime for kernel in kernels):
            for kernel in kernels:
                kernel.unlink(missing_ok=True)  # another process may be at it too


def _imported(path: Path) -> set[str]:
    """The modules that a file may import, by the names that it says: of `from a.b import c`, a.b and a.b.c."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found
