"""`@kernel` and `@inner`: functions on arrays, compiled once and kept on disk for the next process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile `function` with numba; the machine code is cached beside its source.

    Kernels release the GIL and divide as numpy does, without an exception.

    >>> @kernel
    ... def twice(x):
    ...     return 2 * x
    >>> twice(21)
    42
    """
    return _compile(function)


def inner(function: F) -> F:
    """Compile a small function for use inside kernels, which contain its code in place of the call.

    It may read and write arrays, but neither create nor slice them. This makes it faster: for other functions, numba
    counts the references to every array they are given, by atomic increments that cost more than the function itself.
    Its code is on disk only as part of kernels; if it is called from Python, it is compiled again in each process.
    """
    return _compile(function, cache=False, forceinline=True, _nrt=False)


def lean_kernel(function: F) -> F:
    """Compile a kernel with the restrictions and the speed of `inner`, for loops over tuples."""
    return _compile(function, _nrt=False)


def _compile(function: F, cache: bool = True, **options: Any) -> F:
    # A function typed at a prompt or in a doctest has no source file to cache beside.
    cache = cache and not function.__code__.co_filename.startswith("<")
    return cast(F, njit(cache=cache, nogil=True, error_model="numpy", **options)(function))
