"""Micro-batches to learn from: from the counts of a stream, or invented with any skew."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from skewless.core.arrays import Int64Array
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.learn.environment import Batch, Environment
from skewless.split.ways import pieces

MOST_SKEW = 2.2
_FIELDS = len(Batch._fields)


def batch_of(env: Environment, seen: Counts, blocks: int | None = None) -> Batch:
    """The micro-batch with these counts. The keys that do not fit the environment join the tail, at home.

    >>> batch = batch_of(Environment(blocks=2, keys=4), Counts.of(np.array([7, 7, 7, 7, 8, 8, 9, 5])))
    >>> batch.sizes.tolist(), float(batch.grain)
    ([1.0, 0.5, 0.25, 0.25], 0.25)
    """
    return Batch(*map(jnp.asarray, _arrays(env, seen, env.blocks if blocks is None else blocks)))


def batches_of(env: Environment, seen: Sequence[Counts], blocks: int | None = None) -> Batch:
    """Several micro-batches, stacked for `jax.vmap`."""
    return _stack([_arrays(env, each, env.blocks if blocks is None else blocks) for each in seen])


def invented(env: Environment, rng: np.random.Generator, number: int) -> Batch:
    """Micro-batches of Zipf's law with exponents from 0 to 2.2, of any number of keys, blocks and tuples.

    Four in ten have an exponent above 1.4, where the first key is larger than any block. In half of them there are more
    keys than the environment has room for, so that the tail is in the blocks already. In half of them the number of
    blocks is that of the environment, in the others it is smaller.
    """
    return _stack([_invent(env, rng) for _ in range(number)])


class Resampled:
    """Draws micro-batches like those seen: one of them at random, and its tuples anew.

    Attributes
    ----------
    identity
        Tells the micro-batches seen from others, so that a checkpoint of a training on these is known again.
    """

    def __init__(self, seen: Sequence[Counts], blocks: int) -> None:
        self._seen, self._blocks = list(seen), blocks
        self._whole = [each.whole for each in seen]
        parts = [part for seen, whole in zip(self._seen, self._whole, strict=True) for part in (seen.keys, whole)]
        told = b"".join(np.ascontiguousarray(part, np.int64).tobytes() for part in parts)
        self.identity = f"{len(self._seen)} micro-batches {sha256(told).hexdigest()[:12]}"

    def __call__(self, env: Environment, rng: np.random.Generator, number: int) -> Batch:
        """So many micro-batches."""
        drawn = []
        for each in rng.integers(0, len(self._seen), number):
            whole = self._whole[each]
            counts = rng.multinomial(whole.sum(), whole / whole.sum())
            kept = np.flatnonzero(counts)
            drawn.append(Counts(self._seen[each].keys[kept], counts[kept], int(counts.sum())))
        return batches_of(env, drawn, self._blocks)


def resampled(seen: Sequence[Counts], blocks: int) -> Resampled:
    """A source of micro-batches like those seen: one of them at random, and its tuples drawn anew."""
    return Resampled(seen, blocks)


def _invent(env: Environment, rng: np.random.Generator) -> tuple[Any, ...]:
    blocks = env.blocks if rng.random() < 0.5 else int(rng.integers(min(4, env.blocks), env.blocks + 1))
    room = max(2, env.keys - 2 * blocks)  # a cut key has at most about as many pieces as there are blocks
    keys = int(rng.integers(max(2, room // 8), room + 1) if rng.random() < 0.5 else rng.integers(room, 8 * room))
    skew = rng.uniform(1.4, MOST_SKEW) if rng.random() < 0.4 else rng.uniform(0.0, 1.4)
    ideal = 1 / np.arange(1, keys + 1) ** skew
    tuples = int(10 ** rng.uniform(np.log10(200 * blocks), np.log10(20_000 * blocks)))
    counts = rng.multinomial(tuples, ideal / ideal.sum())
    names = np.flatnonzero(counts)
    seen = Counts(_names(rng, len(names)), counts[names], tuples)
    return _arrays(env, seen, blocks)


def _names(rng: np.random.Generator, number: int) -> Int64Array:
    """Distinct keys."""
    names: Int64Array = np.cumsum(rng.integers(1, 1 << 30, number))
    return names


class Told(NamedTuple):
    """A micro-batch as an episode places it.

    Attributes
    ----------
    keys, counts
        All of its keys, most frequent first, and their tuples.
    told
        How many of them are placed one by one; the others are at home.
    which, size
        The pieces of those, as `split.ways.pieces` has them.
    tail, tail_keys
        The tuples and the keys that are in each block in any case.
    """

    keys: Int64Array
    counts: Int64Array
    told: int
    which: Int64Array
    size: Int64Array
    tail: Int64Array
    tail_keys: Int64Array


def told_pieces(env: Environment, seen: Counts, blocks: int) -> Told:
    """The pieces of a micro-batch that fit the environment; the other keys are at home."""
    if not 1 <= blocks <= env.blocks:
        raise SkewlessError(f"{blocks} blocks do not fit an environment of {env.blocks}; give 1 to {env.blocks}")
    order = np.argsort(-seen.counts, kind="stable")
    keys, counts = seen.keys[order], seen.whole[order]
    told = min(len(keys), env.keys)
    while True:
        at_home = homes(keys[told:], blocks)
        tail = seen.tail_loads(blocks) + np.bincount(at_home, counts[told:], blocks).astype(np.int64)
        which, size = pieces(counts[:told], blocks, tail)
        if len(which) <= env.keys:
            break
        told -= len(which) - env.keys
        if told < 1:
            raise SkewlessError(
                f"the first key alone has {len(which)} pieces; give the environment more than {env.keys}"
            )
    return Told(keys, counts, told, which, size, tail, np.bincount(at_home, minlength=blocks))


def _arrays(env: Environment, seen: Counts, blocks: int) -> tuple[Any, ...]:
    keys, _, _, which, size, tail, at_home = told_pieces(env, seen, blocks)
    total = int(size.sum() + tail.sum())
    unit = blocks / total
    sizes, fresh = np.zeros(env.keys, np.float32), np.zeros(env.keys, bool)
    sizes[: len(size)] = size * unit
    fresh[: len(size)] = np.diff(which, prepend=-1) > 0
    tail_load, tail_keys = np.zeros(env.blocks, np.float32), np.zeros(env.blocks, np.float32)
    tail_load[:blocks] = tail * unit
    unlisted = max(0, seen.domain - len(keys)) / blocks
    tail_keys[:blocks] = at_home + unlisted
    return sizes, fresh, np.int32(blocks), tail_load, tail_keys, np.float32(unit)


def _stack(arrays: Sequence[tuple[Any, ...]]) -> Batch:
    return Batch(*(jnp.asarray(np.stack([each[field] for each in arrays])) for field in range(_FIELDS)))
