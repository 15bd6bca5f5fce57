"""The state of a worker inside Spark: its blobs and its timer, and what Spark knows of the task."""

from __future__ import annotations

from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from skewless.core.errors import SkewlessError
from skewless.core.store import Store
from skewless.core.turn import Turn

_TIMER = "timer"


class StateStore(Store):
    """The blobs of the key in hand, in a map of Spark's state store.

    Parameters
    ----------
    handle
        The handle of the stateful processor.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._map = handle.getMapState("owner", "name string", "data binary")

    @property
    def empty(self) -> bool:
        """Whether there is no blob at all."""
        return not self._map.exists()

    def get(self, name: str) -> bytes | None:
        """The blob, or None."""
        value = self._map.getValue((name,))
        return None if value is None else bytes(value[0])

    def put(self, name: str, data: bytes) -> None:
        """Write a blob."""
        self._map.updateValue((name,), (data,))

    def drop(self, name: str) -> None:
        """Delete a blob."""
        self._map.removeKey((name,))


def set_timer(handle: StatefulProcessorHandle, store: Store, at: int | None) -> None:
    """Have the one timer of the key in hand at this time, in microseconds, or have none."""
    due = store.get(_TIMER)
    wanted = None if at is None else -(-at // 1000)
    if due is not None and int(due) != wanted:
        handle.deleteTimer(int(due))
        store.drop(_TIMER)
    if wanted is not None and (due is None or int(due) != wanted):
        handle.registerTimer(wanted)
        store.put(_TIMER, str(wanted).encode())


def turn_of(owners: tuple[int, ...], value: int) -> Turn:
    """The turn of a worker; refused where Spark has it on another partition than the checkpoint was made with."""
    turn = this_turn()
    if turn.worker >= len(owners) or owners[turn.worker] != value:
        raise SkewlessError(
            f"the session has {len(owners)} shuffle partitions, the checkpoint was made with another number; "
            "set spark.sql.shuffle.partitions to what it was then"
        )
    return turn


def this_turn() -> Turn:
    """The number of the task that runs this, of its micro-batch and of its query, as far as there are such."""
    context = TaskContext.get()
    if context is None:
        return Turn(0)
    names = ("streaming.sql.batchId", "sql.streaming.queryId", "spark.jobGroup.id")  # the last is the run's id
    batch, query, run = (context.getLocalProperty(name) for name in names)
    return Turn(context.partitionId(), int(batch or 0), query or "", run or "", context.taskAttemptId())
