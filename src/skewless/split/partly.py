"""PartLy: a partitioner that learned where to put the keys of a micro-batch, and which to divide."""

from __future__ import annotations

from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import ClassVar

import numpy as np

from skewless.core.arrays import BoolArray, Float, FloatArray, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.core.kernel import lean_kernel
from skewless.split.block_splitter import BlockSplitter
from skewless.split.blocks import BlockPlan
from skewless.split.ways import MOST_PARTS, PARTS, SHARES, pieces
from skewless.split.weights import BLOCK_FEATURES, KEY_FEATURES, Float32Array, Weights

WAYS = len(SHARES)
_SMALLEST = np.where(SHARES > 0, SHARES, 1.0).min(axis=1)
_FULL = 1e3


class PartLy(BlockSplitter):
    """Plans blocks with a small neural network that was trained to keep them even, in tuples and in keys.

    The keys come in turn, most frequent first. For each, the network scores every block and every way of dividing the
    key over it and the next fuller ones: whole, in two to five equal parts, or in parts that differ (3/4 and 1/4, 7/8
    and 1/8, 1/2 and twice 1/4, 1/2, 1/4 and twice 1/8). It sees a few numbers for each block and for the key, relative
    to what is left to place, and one set of weights serves all blocks, so that it plans any number of keys and blocks.

    How even the plans of the shipped weights are depends on both. Up to a Zipf exponent of 1.4 they are near Prompt's
    with 5 to 64 blocks, and at 2.0 with 5 to 12. Outside of that the largest block can be a third of a block above the
    average: with 2 to 4 or 128 and more blocks and hot keys, and at 2.0 with 32 and more. Use `Prompt` there, or train
    with `skewless learn` on your own stream with your number of blocks; docs/learning.md has the table.

    A key of more than five blocks is first cut into pieces that fit a block, because no way could place it. The keys
    beyond the hot ones are a group: each stays at its home, and the hot keys are placed around them.

    The shipped weights were trained by `python -m experiments.partly.shipped`, and `skewless learn` trains others;
    `PartLy(...).weights.made` says how. Training needs the extra `learn`, planning does not.

    Parameters
    ----------
    workers
        Blocks of a batch, one for each worker.
    slide
        Tuples in a batch.
    hot
        How many of the most frequent keys the network places; a plan takes time in proportion.
    weights
        A file of your own from `skewless learn --out`; the shipped one if not given.
    learning
        Whether it goes on learning from the times of tasks while a stream is aggregated on Spark, beside the query and
        not on its path. It needs the extra `learn`. Lessons are about the 128 most frequent keys, or four pieces a
        block where that is more, whatever `hot` is.

    Examples
    --------
    >>> keys = np.random.default_rng(1).zipf(1.5, 24_000) % 1_000
    >>> blocks = PartLy(24).partition(keys)
    >>> bool(np.bincount(blocks).max() < 1.02 * 1_000)
    True

    References
    ----------
    A. S. Abdelhamid, W. G. Aref: PartLy: learning data partitioning for distributed data stream processing. aiDM 2020.
    """

    name: ClassVar[str] = "partly"

    def __init__(
        self,
        workers: int = 1,
        *,
        slide: int = 100_000,
        hot: int = 5_000,
        weights: str | Path | None = None,
        learning: bool = False,
    ) -> None:
        super().__init__(workers, slide=slide)
        if isinstance(hot, bool) or not isinstance(hot, (int, np.integer)) or hot < 1:
            raise SkewlessError(f"hot is {hot!r} keys; give a whole number of at least 1")
        if weights is not None and not isinstance(weights, (str, PathLike)):
            raise SkewlessError(f"weights is {weights!r}; give the path of a file that skewless learn --out wrote")
        if not isinstance(learning, (bool, np.bool_)):
            raise SkewlessError(f"learning is {learning!r}; give True or False")
        missing = [each for each in ("jax", "optax") if learning and find_spec(each) is None]
        if missing:
            raise SkewlessError(
                f"learning=True needs {' and '.join(missing)}; install the extra: pip install 'skewless[learn]', or "
                "leave it out to go by the weights as they are"
            )
        self.hot, self.learning = int(hot), bool(learning)
        self.weights = Weights.load(weights)

    def _divide(
        self,
        keys: Int64Array,
        counts: Int64Array,
        tail: Int64Array | None,
        tail_keys: Int64Array | None = None,
    ) -> BlockPlan:
        which, block, size = place(self.weights, keys, counts, self.workers, self.hot, tail)
        at_home = np.arange(min(self.hot, len(keys)), len(keys))
        return BlockPlan(
            self.workers,
            keys,
            counts,
            np.concatenate([which, at_home]),
            np.concatenate([block, homes(keys[at_home], self.workers)]),
            np.concatenate([size, counts[at_home]]),
        )


def place(
    weights: Weights, keys: Int64Array, counts: Int64Array, blocks: int, hot: int, tail: Int64Array | None
) -> tuple[Int64Array, Int32Array, Int64Array]:
    """The fragments of the `hot` most frequent keys: place among the counts, block and tuples, those of a key adjacent.

    Keys beyond them are at home. `tail` has the tuples of still other keys in each block.
    """
    at_home = homes(keys[hot:], blocks)
    load = np.bincount(at_home, counts[hot:], blocks).astype(np.int64)
    load += 0 if tail is None else tail
    which, size = pieces(counts[:hot], blocks, load)
    fresh = np.diff(which, prepend=-1) > 0
    capacity = max(1.0, (int(size.sum()) + int(load.sum())) / blocks)
    hidden = weights["mid"].shape[0]
    lanes = np.empty((len(size), MOST_PARTS), np.int32)
    parts = np.zeros((len(size), MOST_PARTS), np.int64)
    _place(
        size,
        fresh,
        capacity,
        load / capacity,
        np.bincount(at_home, minlength=blocks).astype(np.float64),
        np.arange(blocks, dtype=np.int32),
        np.zeros(blocks, np.bool_),
        SHARES,
        PARTS,
        _SMALLEST,
        weights["block"],
        weights["block_bias"],
        weights["key"],
        weights["key_bias"],
        weights["mid"],
        weights["mid_bias"],
        weights["out"],
        weights["out_bias"],
        np.empty((BLOCK_FEATURES, blocks), np.float32),
        np.empty(KEY_FEATURES, np.float32),
        np.empty((hidden, blocks), np.float32),
        np.empty((hidden, blocks), np.float32),
        np.empty((WAYS, blocks), np.float32),
        lanes,
        parts,
    )
    piece, part = np.nonzero(parts)
    order = np.lexsort((lanes[piece, part], which[piece]))
    key, lane, tuples = which[piece][order], lanes[piece, part][order], parts[piece, part][order]
    # Pieces of one key that met in a block are one fragment.
    first = np.flatnonzero((np.diff(key, prepend=-1) != 0) | (np.diff(lane, prepend=-1) != 0))
    return key[first], lane[first], np.add.reduceat(tuples, first) if len(first) else tuples


@lean_kernel
def _place(
    size: Int64Array,
    fresh: BoolArray,
    capacity: Float,
    load: FloatArray,
    card: FloatArray,
    block: Int32Array,
    here: BoolArray,
    shares: FloatArray,
    ways: Int64Array,
    smallest: FloatArray,
    w_block: Float32Array,
    b_block: Float32Array,
    w_key: Float32Array,
    b_key: Float32Array,
    w_mid: Float32Array,
    b_mid: Float32Array,
    w_out: Float32Array,
    b_out: Float32Array,
    seen: Float32Array,
    key: Float32Array,
    first: Float32Array,
    second: Float32Array,
    score: Float32Array,
    lanes: Int32Array,
    parts: Int64Array,
) -> None:
    """Place the pieces in turn. Blocks are kept in order of load, emptiest first, as in training."""
    blocks, hidden, options = load.shape[0], w_mid.shape[0], ways.shape[0]
    left, keys_left, distinct, extra = 0.0, 0.0, 0.0, 0.0
    for i in range(size.shape[0]):
        left += size[i] / capacity
        keys_left += fresh[i]
    for b in range(blocks):
        distinct += card[b]
    distinct += keys_left
    told = max(keys_left, 1.0)
    _in_order(load, card, block, here)
    for i in range(size.shape[0]):
        now = size[i] / capacity
        room = max(left / blocks, 1e-6)
        if fresh[i]:
            for b in range(blocks):
                here[b] = False
        # What the network sees of each block, ...
        fair = (distinct + extra) / blocks
        seats = max(keys_left / blocks, 1.0)
        for w in range(options):
            for b in range(blocks):
                if b + ways[w] > blocks:
                    seen[w, b] = -3.0
                    continue
                least = np.inf
                for k in range(ways[w]):
                    least = min(least, 1 - load[b + k] - shares[w, k] * now)
                seen[w, b] = min(3.0, max(-3.0, least / room))
        for b in range(blocks):
            seen[options, b] = min(3.0, max(-3.0, (1 - load[b]) / room))
            seen[options + 1, b] = min(3.0, max(-3.0, (fair - card[b]) / seats))
            seen[options + 2, b] = here[b]
            seen[options + 3, b] = b / blocks
        # ... and of the key.
        following = size[i + 1] / capacity if i + 1 < size.shape[0] else 0.0
        key[0] = min(5.0, now)
        key[1] = min(10.0, now / room) / 3
        key[2] = np.log10(room) / 3
        key[3] = keys_left / told
        key[4] = np.log10(1 + keys_left / blocks)
        key[5] = min(5.0, following / max(now, 1e-9))
        key[6] = min(6.0, max(0.0, (1 - load[0]) / room)) / 3
        key[7] = min(1.0, max(-6.0, (1 - load[blocks - 1]) / room)) / 3
        key[8] = min(4.0, extra / blocks)
        key[9] = 1 / np.sqrt(blocks)

        for h in range(hidden):
            bias = b_block[h] + b_key[h]
            for f in range(key.shape[0]):
                bias += key[f] * w_key[f, h]
            for b in range(blocks):
                first[h, b] = bias
        _dense(seen, w_block, first)
        _rectify(first)
        for h in range(hidden):
            for b in range(blocks):
                second[h, b] = b_mid[h]
        _dense(first, w_mid, second)
        _rectify(second)
        for w in range(options):
            for b in range(blocks):
                score[w, b] = b_out[w]
        _dense(second, w_out, score)

        # The pieces of a key that was cut fit a block, and are not divided again.
        piece = not fresh[i] or (i + 1 < size.shape[0] and not fresh[i + 1])
        best, start, way = -np.inf, 0, 0
        for b in range(blocks):
            for w in range(options):
                allowed = b + ways[w] <= blocks and (w == 0 or (size[i] * smallest[w] >= 1 and not piece))
                if allowed and score[w, b] > best:
                    best, start, way = score[w, b], b, w

        # The ends of the parts are rounded, so that the parts add up.
        share, before = 0.0, np.int64(0)
        for k in range(ways[way]):
            share += shares[way, k]
            upto = size[i] if k == ways[way] - 1 else np.int64(np.floor(size[i] * share + 0.5))
            lanes[i, k], parts[i, k] = block[start + k], upto - before
            load[start + k] += (upto - before) / capacity
            if not here[start + k]:
                card[start + k] += 1
                extra += 1
                here[start + k] = True
            before = upto
        extra -= fresh[i]
        keys_left -= fresh[i]
        left = max(0.0, left - now)
        _in_order(load, card, block, here)


@lean_kernel
def _dense(inputs: Float32Array, weights: Float32Array, out: Float32Array) -> None:
    """Add the product. Blocks are innermost, so that the compiler works on several at once, for four inputs a time."""
    inputs_by_four = inputs.shape[0] // 4 * 4
    for h in range(out.shape[0]):
        for f in range(0, inputs_by_four, 4):
            w0, w1, w2, w3 = weights[f, h], weights[f + 1, h], weights[f + 2, h], weights[f + 3, h]
            for b in range(out.shape[1]):
                out[h, b] += (w0 * inputs[f, b] + w1 * inputs[f + 1, b]) + (
                    w2 * inputs[f + 2, b] + w3 * inputs[f + 3, b]
                )
        for f in range(inputs_by_four, inputs.shape[0]):
            weight = weights[f, h]
            for b in range(out.shape[1]):
                out[h, b] += weight * inputs[f, b]


@lean_kernel
def _rectify(values: Float32Array) -> None:
    for h in range(values.shape[0]):
        for b in range(values.shape[1]):
            values[h, b] = max(values[h, b], np.float32(0))


@lean_kernel
def _in_order(load: FloatArray, card: FloatArray, block: Int32Array, here: BoolArray) -> None:
    """Sort by load; insertion is fast, as few blocks have changed, and equal loads stay as they are."""
    for i in range(1, load.shape[0]):
        amount, keys, number, held = load[i], card[i], block[i], here[i]
        at = i
        while at > 0 and load[at - 1] > amount:
            load[at], card[at], block[at], here[at] = load[at - 1], card[at - 1], block[at - 1], here[at - 1]
            at -= 1
        load[at], card[at], block[at], here[at] = amount, keys, number, held
