"""The loop of a stream whose policy goes on learning from the times of its tasks.

Measure: tasks note their rows, states and times, and the notes ride back with the loads. Analyse: a teacher is told of
them, and returns at once. Plan: the splitter goes by the newest weights that the teacher has. The teacher learns beside
the query; how is not known here.
"""

from __future__ import annotations

from skewless.control.loop import Chosen, Observed
from skewless.control.policy_file import PolicyFile
from skewless.control.routing import Routing
from skewless.control.scaling import Scaling
from skewless.split import PartLy, Splitter
from skewless.split.teacher import TaskTime, Teacher


class Taught(Routing):
    """Learns from every micro-batch, and plans with the weights that a teacher has.

    Parameters
    ----------
    name, splitter, file, chosen, scaling
        As of `Routing`.
    teacher
        Is told of every micro-batch.
    """

    def __init__(
        self,
        name: str,
        splitter: PartLy,
        file: PolicyFile,
        chosen: Chosen,
        teacher: Teacher,
        scaling: Scaling | None = None,
    ) -> None:
        super().__init__(name, splitter, file, chosen, scaling)
        self.teacher = teacher

    def learn(self, seen: Observed) -> None:
        """Tell the teacher, and plan."""
        tasks = times_of(seen)
        if seen.counts is not None and tasks:
            self.teacher.hear(seen.counts, seen.control or self.splitter.workers, tasks)
        super().learn(seen)

    def describe(self) -> list[str]:
        """What runs and why, where hot keys go, and how far the lessons are."""
        return [*super().describe(), self.teacher.describe()]

    def _splitter_now(self) -> Splitter:
        splitter = super()._splitter_now()
        assert isinstance(splitter, PartLy)
        splitter.weights = self.teacher.weights
        return splitter


def times_of(seen: Observed) -> list[TaskTime]:
    """What the tasks of a micro-batch noted of their times; a task that was run twice counts once."""
    found = {note[0]: TaskTime(note[0], note[1], note[2], note[3] / 1e6) for note in seen.notes if len(note) == 4}
    return [found[worker] for worker in sorted(found)]
