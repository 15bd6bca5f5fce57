"""The one door to the school: loads what goes on teaching a policy, if that is asked for, and hands it down."""

from __future__ import annotations

from skewless.split import PartLy, Splitter
from skewless.split.teacher import Teacher


def teacher_of(splitter: Splitter) -> Teacher | None:
    """A teacher for this splitter, if it is one that goes on learning; else nothing is loaded."""
    if not isinstance(splitter, PartLy) or not splitter.learning:
        return None
    from skewless.learn.teacher import RunTimeTeacher  # needs the extra learn

    return RunTimeTeacher(splitter.weights)
