"""The state of an owner inside Spark: its blobs, its timer, and the check that it is where it was."""

from __future__ import annotations

from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from skewless.core.errors import SkewlessError
from skewless.core.store import Store

_TIMER = "timer"


class StateStore(Store):
    """The blobs of the key in hand, in a map of Spark's state store.

    Parameters
    ----------
    handle
        Of the stateful processor.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._map = handle.getMapState("owner", "name string", "data binary")

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


def partition_of(owners: tuple[int, ...], value: int) -> int:
    """The partition of state of an owner; refused where Spark has it on another than the checkpoint was made with."""
    context = TaskContext.get()
    assert context is not None  # this runs in a task
    at = context.partitionId()
    if at >= len(owners) or owners[at] != value:
        raise SkewlessError(
            f"the session has {len(owners)} shuffle partitions, the checkpoint was made with another number; "
            "set spark.sql.shuffle.partitions to what it was then"
        )
    return at


def property_of(name: str) -> str:
    """What Spark tells every task of a stream: the number of its micro-batch, the id of its query."""
    context = TaskContext.get()
    value = context.getLocalProperty(name) if context else None
    assert value is not None  # or this is no task of a stream
    return value
