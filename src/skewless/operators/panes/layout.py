"""What an owner must know of its query."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

from skewless.aggregate.kernel import Kernel
from skewless.core.windows import Windows


@dataclass(frozen=True)
class Layout:
    """Windows, the types of the key columns, what to aggregate, and whether to give changes or closed windows.

    `marks` says in words what each kernel computes, for stored state to be known by.
    """

    spec: Windows
    keys: tuple[pa.DataType, ...]
    kernels: tuple[Kernel, ...]
    updating: bool = False
    marks: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """Names everything that stored state depends on."""
        fields = [[type(kernel).__name__, *map(str, kernel.types)] for kernel in self.kernels]
        keys = [str(kind) for kind in self.keys]
        return json.dumps([self.spec.size, self.spec.slide, keys, fields, self.updating, self.marks])
