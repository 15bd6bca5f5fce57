"""The loop of a stream whose tasks learn together: the paper's Q-table reducer, on the driver.

Every task of a micro-batch starts from the newest table, and tells what it learned when its rows have ended. Measure:
`observe` collects what the tasks told, in the job itself. Analyse and plan: the rewards of all tasks are learned by the
table of now and merged. Activate: the new version replaces the file that every task reads. Spark tells of a micro-batch
when the next has begun, so a version is read two micro-batches after what it is about, or later.

Tasks may therefore have started from a version that is not the newest. Nothing depends on that: what a task tells is
what its rewards make of any value, so the table of now learns them, as in the paper those that came while a partitioner
awaited a table. A key that the table has dropped since begins again.
"""

from __future__ import annotations

from collections.abc import Iterable

from skewless.control.loop import Chosen, Loop, Observed, loads_of
from skewless.control.q_table import Message, Table, TableFile
from skewless.split import CooperativeDalton
from skewless.split.q_table import learned

_SHOWN = 10  # keys


class Cooperating(Loop):
    """Merges what the tasks of every micro-batch have learned and writes the next version of their table.

    Parameters
    ----------
    name
        The stream's name, for messages.
    splitter
        What every task has one of.
    file
        Where tables go.
    chosen
        What runs, and why.
    """

    def __init__(self, name: str, splitter: CooperativeDalton, file: TableFile, chosen: Chosen) -> None:
        super().__init__(name, splitter.workers, chosen)
        self.splitter, self.file = splitter, file
        self.table = Table.empty(splitter.workers)
        """The newest table."""
        self.behind = 0
        """By how many versions the tasks of the last micro-batch were behind the newest, at most."""
        self.dropped = 0
        """Messages of this loop's life that were of a task or a micro-batch that had told already."""
        self._last: tuple[str, int] = "", -1  # the query, and its micro-batch that was merged last
        file.put(self.table)

    def learn(self, seen: Observed) -> None:
        """Merge what the tasks told and make it the table."""
        self.loads = loads_of(seen, self.workers) or self.loads
        query, batch = self._last
        again = query == seen.query and seen.batch <= batch  # a crash came before Spark knew that it was done
        told = [] if again else one_of_each(map(Message.of, seen.told), seen.batch)
        self.dropped += len(seen.told) - len(told)
        if not told:
            return
        version, options = self.table.version, self.splitter
        self.behind = version - min(message.version for message in told)
        common = learned(
            self.table.common,
            version,
            [message.changes for message in told],
            options.workers,
            options.hot.state.hot_at,
            options.merge,
        )
        self.table, self._last = Table(version + 1, common), (seen.query, seen.batch)
        self.file.put(self.table, seen.query)

    def describe(self) -> list[str]:
        """What runs and why, the version of the table, and the most frequent of its keys."""
        common = self.table.common
        lines = [
            f"Q-table version {self.table.version}: {len(common.keys)} hot keys, from {common.partitioners} tasks that "
            f"started {self.behind} versions before; {self.dropped} messages were dropped"
        ]
        assert common.counts is not None  # of tasks
        most = (-common.counts).argsort(kind="stable")[:_SHOWN]
        shares = zip(common.keys[most], common.counts[most] / max(1, common.load), strict=True)
        return [*super().describe(), *lines, *(f"key hash {key} has {share:.1%} of the rows" for key, share in shares)]


def one_of_each(messages: Iterable[Message], batch: int) -> list[Message]:
    """One message for each task of a micro-batch: that of its last attempt, the rows of which are those that count."""
    last: dict[int, Message] = {}
    for message in messages:
        if message.batch == batch and (message.task not in last or message.attempt > last[message.task].attempt):
            last[message.task] = message
    return [last[task] for task in sorted(last)]
