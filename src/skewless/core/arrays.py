"""The array and scalar types that the core uses."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Int64Array: TypeAlias = npt.NDArray[np.int64]
Int32Array: TypeAlias = npt.NDArray[np.int32]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

# Scalars of a kernel: Python's where it is called from Python, numpy's where it is called from another kernel.
Int: TypeAlias = Any
Float: TypeAlias = Any
Bool: TypeAlias = Any
