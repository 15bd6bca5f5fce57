"""What runs for a call, and why, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skewless.control.loop import Chosen
from skewless.core.errors import SkewlessError
from skewless.elastic import Range
from skewless.place import Placer
from skewless.split import CooperativeDalton, Prompt, Splitter

MOVELESS = ("local", "spark")
_BARE = "takes about twice as long as moving rows by hash; split='dalton' needs no Python and is two micro-batches late"
_HASHED = (
    "; partial results go to the hash of their key, since Algorithm 3 needs to know which keys are split in any task, "
    "and tasks of a stream never talk"
)
_PACKED = "packs rows on their way; split='local' moves none"


def moving(splitter: Splitter, asked: str | Splitter, *, streaming: bool) -> Chosen:
    """What `repartition` does.

    Parameters
    ----------
    splitter
        The splitter that gives rows their workers.
    asked
        What the user asked for.
    streaming
        Whether the rows are a stream's.
    """
    in_task = splitter.in_task if streaming else splitter.batches_in_task
    return _routing(splitter, asked, "it is even with few fragments", _BARE, in_task=in_task, streaming=streaming)


def aggregating(
    make: Callable[[], Splitter],
    asked: str | Splitter,
    heavy: Sequence[str],
    *,
    native: bool,
    tumbling: bool,
    streaming: bool,
) -> Chosen:
    """What `agg` does.

    Parameters
    ----------
    make
        Makes the splitter, if rows have to move.
    asked
        What the user asked for.
    heavy
        The aggregates that cost more for a row than moving it.
    native
        Whether Spark has all the aggregates.
    tumbling
        Whether there are no windows, or none that overlap.
    streaming
        Whether the rows are a stream's.
    """
    if asked == "spark":
        if not native:
            raise SkewlessError("Spark has no operator of its own for one of these aggregates; use split='auto'")
        return Chosen("spark", "as asked, by its own operators")
    if asked == "local":
        return Chosen("local", "as asked, combining rows where they lie")
    if asked == "auto" and native and tumbling:
        return Chosen("spark", "because its own operators are best for these aggregates where windows do not overlap")
    if asked == "auto" and not heavy:
        why = "because these aggregates cost less than moving a row, so rows are combined where they lie"
        return Chosen("local", why)
    splitter, why = make(), f"{', '.join(heavy)} costs more for a row than moving it"
    cost = _PACKED + _HASHED if streaming and isinstance(splitter, Prompt) else _PACKED
    return _routing(splitter, asked, why, cost, in_task=packs(splitter, streaming=streaming), streaming=streaming)


def packs(splitter: Splitter, *, streaming: bool) -> bool:
    """Whether rows are routed and packed in the task that has them before they are aggregated."""
    # Prompt plans a batch as a whole, and then knows which of its keys are split.
    return splitter.in_task and (streaming or not splitter.plans_batches)


def why_placed(asked: str | Placer) -> str:
    """Why keys are placed as they are."""
    if asked == "hash":
        return "as asked, once and for ever"
    why = "because state that does not merge must be on one worker" if asked == "auto" else "as asked"
    return f"{why}, moving slots of keys between workers"


def followed(asked: Range | None, partitions: int | None = None) -> str:
    """What is said of workers that follow the load, with the partitions of state if there are such; or nothing."""
    if asked is None:
        return ""
    fixed = "" if partitions is None else f"; the {partitions} partitions of state stay as Spark has them at the start"
    return (
        f" How many of these are active follows the load, measured by an interval of {asked.interval}{fixed}. Idle "
        "workers have tasks too, without rows: dynamic allocation gives no executor back that gets one of them more "
        "often than its idle timeout."
    )


def unfollowed(asked: Range) -> str:
    """A sentence about a range of workers that has no use."""
    return f"As no rows move, {asked} have no use; split='bounded', or another, moves rows."


def _routing(
    splitter: Splitter, asked: str | Splitter, why: str, cost: str, *, in_task: bool, streaming: bool
) -> Chosen:
    if in_task:
        how = f"in the task that has the row, which {cost}"
        if isinstance(splitter, CooperativeDalton):
            how += f"; tasks start from one Q-table, and what they learn is merged ({splitter.merge})"
    else:
        how = "learning from each micro-batch" if streaming else "from one pass over the data"
    return Chosen(splitter.name, f"{f'because {why}' if asked == 'auto' else 'as asked'}, {how}")
