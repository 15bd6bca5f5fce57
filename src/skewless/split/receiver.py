"""Prompt inside a task: rows are kept until the input ends, and then every one gets its block."""

from __future__ import annotations

import numpy as np

from skewless.core.arrays import Int, Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.core.hashing import SEED, pmod, xxhash64_long
from skewless.core.kernel import lean_kernel
from skewless.core.key_index import index_of, place_of
from skewless.core.prototype import Prototype
from skewless.split.at_home import leave_home
from skewless.split.base import MOST_WORKERS, as_keys


class Receiver(Prototype):
    """Divides the rows of one task into blocks as Prompt does, so that the blocks of all tasks together are even too.

    Prompt has one receiver, which sees the whole micro-batch. Here each task is a receiver and sees only its own rows.
    If each made a plan of its own, a key would be in other blocks in every task. So the plan of Algorithm 2 starts from
    where the hash of a key puts it, its home, instead of dealing the keys out, and tasks that never talk agree on
    nearly all keys. A block is full at its share of the task's rows and a little more. Small keys stay, as small
    residuals do in Algorithm 2; of a block that is too full, the largest keys leave, since every task knows them for
    the largest. A key that leaves takes the room of the next blocks in an order that only the key determines, largest
    key first, and passes over blocks with hardly any room. A block with more keys than the average sends some of them,
    the first in the order of their hashes, to blocks that have fewer.

    Bounds. A block has at most (1 + slack) of the average of its task's rows, or the average rounded up, so that all
    tasks together are above (1 + slack) of their average by less than a row for each task. Fragments are not bounded so
    strictly. Tasks disagree about the rows that a block has more than its share by chance, which are about the root of
    the share. So tasks need many rows for each block: with 1,000 of them, 24 blocks and 10 k keys of Zipf 0.6 to 1.5,
    eight tasks together have up to 1.04 fragments a key, two up to 1.02, one up to 1.01. With as many rows for each of
    64 blocks eight tasks have up to 1.06, with 400 up to 1.08, and up to 1.12 if all keys are about equally frequent,
    so that no key is the largest in every task. Keys of Zipf 2.0, of which a task of 24 blocks splits 4 % alone, have
    up to 1.06 with two tasks and 1.11 with eight.

    The imbalance in keys (BCI) is 0.5 to 0.75 of hashing's on average. No plan can promise that it is never more: a key
    that is larger than a block has to be split, and where hashing happens to give each block equally many keys, the
    extra fragments alone are uneven unless their number is a multiple of the blocks. Tasks also guess the keys that
    only others have. Of 600 micro-batches with other keys in each, 24 blocks and one, two or eight tasks, it was more
    in 6 of 1,800 cases, all with Zipf 1.5 and five with eight tasks, where a task sees a third of the keys, by up to
    18 % of hashing's. `make bench-blocks` makes this number.

    Algorithm 1, which counts every row as it comes, is not run here: `take` stores the hashes of rows, which are
    needed again when each row gets its block, and `finish` sorts and counts them. A tree of counts would take the same
    core many times as long as the sort that it saves (Figure 2.9), and memory besides.

    Memory: 8 bytes for each row of the task until its input ends; then the rows are copied and sorted, 8 bytes more,
    and counting needs up to 24 bytes for each distinct key among them, and planning up to 80 for each key that leaves
    its home. Where keys are of all homes few leave: with a million rows of a key each it was 33 bytes a row with 24
    blocks. Where all keys of a task have one home, as behind a `repartition` by the same keys to as many workers,
    nearly all leave, and it was 88, or 107 with 10,000 rows (`make bench-blocks`). It never depends on the number
    of keys in the stream.

    Parameters
    ----------
    workers
        Blocks of a micro-batch, one for each worker.
    slack
        How far above the average a block may be, as a share of it.
    buffer
        Only "sort". The paper's tree keeps every key of the input in order while rows arrive, at several times the
        memory, and the plan of a task needs only the order of the few keys that leave.

    Examples
    --------
    Two tasks with the same hot keys, of 10,000 rows each.

    >>> rows = np.random.default_rng(1).zipf(1.5, (2, 10_000))
    >>> receiver = Receiver(8)
    >>> tasks = [receiver.for_task().partition(keys) for keys in rows]
    >>> int(np.bincount(np.concatenate(tasks)).max())  # the average is 2,500
    2524

    References
    ----------
    A. S. Abdelhamid, A. R. Mahmood, A. Daghistani, W. G. Aref: Prompt: dynamic data-partitioning for distributed
    micro-batch stream processing systems. SIGMOD 2020.
    """

    def __init__(self, workers: int = 1, *, slack: float = 0.01, buffer: str = "sort") -> None:
        if not isinstance(workers, (int, np.integer)) or not 1 <= workers <= MOST_WORKERS:
            raise SkewlessError(f"workers is {workers!r}; give a whole number from 1 to {MOST_WORKERS}")
        if not isinstance(slack, (int, float, np.number)) or not 0 <= slack < np.inf:
            raise SkewlessError(f"slack is {slack!r}; give a number from 0, such as 0.01")
        if buffer != "sort":
            raise SkewlessError(
                f"buffer is {buffer!r}; a task sorts its rows when its input ends, so omit buffer, or call "
                "Prompt(buffer=...).partition(keys) on a whole batch"
            )
        self.workers, self.slack = int(workers), slack
        self._chunks: list[Int64Array] = []

    def for_task(self) -> Receiver:
        """One like this for the rows of one task."""
        return self.again(workers=self.workers)

    def take(self, keys: Int64Array) -> None:
        """Keep the key hashes of the next rows; they are not copied."""
        self._chunks.append(as_keys(keys))

    def finish(self) -> list[Int32Array]:
        """End the input: a block for each row, in an array for each call of `take`. The next input starts empty."""
        chunks, self._chunks = self._chunks, []
        if not sum(map(len, chunks)):
            return [np.zeros(0, np.int32) for _ in chunks]
        moves = leave_home(np.concatenate(chunks), self.workers, self.slack)
        index, at, left = index_of(moves.keys), moves.offsets[:-1].copy(), moves.size.copy()
        blocks = []
        for keys in chunks:
            out = np.empty(len(keys), np.int32)
            _route(index, at, moves.block, left, self.workers, keys, out)
            blocks.append(out)
        return blocks

    def partition(self, keys: Int64Array) -> Int32Array:
        """A block for each row, if these are all rows of the task."""
        self.take(keys)
        return np.concatenate(self.finish())


@lean_kernel
def _route(
    index: Int64Array,
    at: Int64Array,
    block: Int32Array,
    left: Int64Array,
    blocks: Int,
    keys: Int64Array,
    out: Int32Array,
) -> None:
    """Send rows home, and those of keys that move to the part `at` of their key, which has so many rows `left`."""
    for i in range(keys.shape[0]):
        hashed = xxhash64_long(keys[i], SEED)
        place = place_of(index, keys[i], hashed)
        if place < 0:
            out[i] = pmod(hashed, blocks)
        else:
            part = at[place]
            out[i] = block[part]
            left[part] -= 1
            if left[part] == 0:
                at[place] += 1
