"""The weights of a trained PartLy as a file: arrays and words, nothing that could run."""

from __future__ import annotations

import json
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from skewless.core.errors import SkewlessError
from skewless.split.ways import SHARES

FORMAT = "skewless-partly-1"
BLOCK_FEATURES, KEY_FEATURES = len(SHARES) + 4, 10
LAYERS = ("block", "key", "mid", "out")
_SHIPPED = files("skewless.split") / "partly.npz"
_MOST_HIDDEN = 1024
UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, SyntaxError, MemoryError, OverflowError),
    *(RuntimeError, struct.error, zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)
"""What reading a damaged archive of arrays raises; which of them depends on the byte that is wrong."""

Float32Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Weights:
    """A policy: for each layer what it multiplies with and what it adds.

    Attributes
    ----------
    layers
        `block` and `key` turn features into the first hidden layer, `mid` into the second, `out` into a score for each
        way of dividing a key. Each has its matrix under its name, and its bias under the name with `_bias`.
    made
        How it was made: command, seed, and where the training ended.
    """

    layers: dict[str, Float32Array]
    made: dict[str, Any]

    def __getitem__(self, name: str) -> Float32Array:
        """A matrix or a bias."""
        return self.layers[name]

    def save(self, path: str | Path) -> None:
        """Write a file that `load` reads."""
        arrays: dict[str, Any] = {"format": np.array(FORMAT), "made": np.array(json.dumps(self.made)), **self.layers}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def of(cls, parameters: Mapping[str, Any], made: Mapping[str, Any]) -> Weights:
        """The weights among the parameters of a network; what only training needs is left out."""
        names = [name for layer in LAYERS for name in (layer, f"{layer}_bias")]
        return cls({name: np.asarray(parameters[name], np.float32) for name in names}, dict(made))

    @classmethod
    def load(cls, path: str | Path | None = None) -> Weights:
        """The weights in a file, or those that the package ships.

        >>> Weights.load("README.md")
        Traceback (most recent call last):
            ...
        skewless.core.errors.SkewlessError: README.md is no file of PartLy's weights (...); train one with skewless
        learn --out
        """
        name = "the shipped file" if path is None else str(path)
        try:
            with (_SHIPPED if path is None else Path(path)).open("rb") as file:
                found = read_arrays(file)
        except FileNotFoundError:
            raise SkewlessError(f"there is no file {name}; train one with skewless learn --out {name}") from None
        except UNREADABLE as error:
            raise _refused(name, str(error) or type(error).__name__) from None
        wrong = _wrong(found)
        if wrong:
            raise _refused(name, wrong)
        return cls({each: np.ascontiguousarray(found[each]) for each in _shapes(1)}, json.loads(str(found["made"])))


def read_arrays(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    """The arrays of a file by name; a damaged file raises one of `UNREADABLE`."""
    # Without pickles: a file from elsewhere can hold numbers and text, and no code.
    try:
        arrays = np.load(file, allow_pickle=False)
    except ValueError:  # numpy's own words advise to unpickle it
        raise ValueError("it is no archive of arrays") from None
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        raise ValueError("it holds one array, and not several by name")
    return {name: arrays[name] for name in arrays.files}


def _shapes(hidden: int) -> dict[str, tuple[int, ...]]:
    return {
        "block": (BLOCK_FEATURES, hidden),
        "block_bias": (hidden,),
        "key": (KEY_FEATURES, hidden),
        "key_bias": (hidden,),
        "mid": (hidden, hidden),
        "mid_bias": (hidden,),
        "out": (hidden, len(SHARES)),
        "out_bias": (len(SHARES),),
    }


def _wrong(found: Mapping[str, NDArray[Any]]) -> str:
    """What is wrong with the arrays of a file; nothing if they are weights."""
    if "format" not in found or str(found["format"]) != FORMAT:
        return f"its format is {str(found['format'])[:40] if 'format' in found else 'not said'}, not {FORMAT}"
    hidden = found["mid"].shape[0] if "mid" in found and found["mid"].ndim else 0
    if not 1 <= hidden <= _MOST_HIDDEN:
        return f"its hidden layer is {hidden} wide; 1 to {_MOST_HIDDEN} are possible"
    for name, shape in _shapes(hidden).items():
        if name not in found:
            return f"{name} is missing"
        if found[name].shape != shape or found[name].dtype != np.float32:
            return f"{name} is {found[name].dtype} of shape {found[name].shape}, not float32 of shape {shape}"
        if not np.isfinite(found[name]).all():
            return f"{name} has values that are no numbers"
    try:
        made = json.loads(str(found["made"])) if "made" in found else None
    except (ValueError, RecursionError):  # no JSON, or lists in lists without end
        made = None
    return "" if isinstance(made, dict) else "it does not say how it was made"


def _refused(name: str, why: str) -> SkewlessError:
    return SkewlessError(f"{name} is no file of PartLy's weights ({why}); train one with skewless learn --out")
