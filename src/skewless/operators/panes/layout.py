"""What a worker of panes must know of its query."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow as pa

from skewless.aggregate.kernel import Kernel
from skewless.core.windows import Windows


@dataclass(frozen=True)
class Layout:
    """The shape of an aggregation.

    Parameters
    ----------
    windows
        Their size and slide.
    keys
        The types of the key columns.
    kernels
        What to aggregate.
    updating
        Whether to give the windows that changed, or each window once it is closed.
    marks
        What each kernel computes, in words: stored state is known by them.
    """

    windows: Windows
    keys: tuple[pa.DataType, ...]
    kernels: tuple[Kernel, ...]
    updating: bool = False
    marks: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """Names everything that stored state depends on."""
        fields = [[type(kernel).__name__, *map(str, kernel.types)] for kernel in self.kernels]
        keys = [str(kind) for kind in self.keys]
        return json.dumps([self.windows.size, self.windows.slide, keys, fields, self.updating, self.marks])
