"""The scripts under `examples`, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    """A script of this name; its functions travel to Spark's workers with their code, as those of a program do."""
    path = EXAMPLES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name.replace('/', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(path.parent))  # a script imports what it shares with others from its own folder
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # workers cannot import it
    return module
