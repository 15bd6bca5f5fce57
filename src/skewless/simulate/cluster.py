"""What is simulated: a cluster of partitioners, combiners and reducers, and what their work costs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

from skewless.core.arguments import check_whole
from skewless.core.errors import SkewlessError
from skewless.core.windows import Windows

SECOND = 1_000_000  # in the microseconds of `Windows`
_MINUTE_BY_SECONDS = Windows(60 * SECOND, SECOND)


@dataclass(frozen=True)
class Costs:
    """Seconds of work for each thing that a server does.

    Attributes
    ----------
    route
        A partitioner, for a tuple that it sends to a combiner.
    plan
        A partitioner, for a key of a micro-batch, if it plans the whole of it before it sends a tuple, as Prompt does.
    tuple
        A combiner, for a tuple that it adds to its partial results.
    emit
        A combiner, for a partial result that it emits at the end of a window, whoever gets it.
    partial
        A reducer, for a partial result that it merges.
    key
        A reducer, for the result of a key in a window; a combiner, if it forwards the result itself.
    """

    route: float = 0.0
    plan: float = 0.0
    tuple: float = 1e-6
    emit: float = 0.0
    partial: float = 1e-6
    key: float = 0.0

    def __post_init__(self) -> None:
        """Refuse work that takes less than no time."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value < inf:
                raise SkewlessError(f"the cost {field.name} is {value} seconds; give a finite number of at least 0")


@dataclass(frozen=True)
class MicroBatches:
    """An engine that collects tuples for an interval, and then processes them stage by stage.

    Attributes
    ----------
    interval
        Seconds of a micro-batch; the slide of the windows is a multiple of it.
    overhead
        Seconds that each micro-batch takes besides the work on its tuples, such as for scheduling.
    """

    interval: float = 1.0
    overhead: float = 0.0

    def __post_init__(self) -> None:
        """Refuse micro-batches without time."""
        if not self.interval > 0 or not self.overhead >= 0:
            raise SkewlessError(
                f"an interval of {self.interval} s with an overhead of {self.overhead} s; the interval is above 0 and "
                "the overhead at least 0"
            )


@dataclass(frozen=True)
class Cluster:
    """Servers, each with a queue of its own, that compute windows of a keyed stream.

    Partitioners send each tuple to a combiner. At the end of every window, each combiner emits a partial result for
    each key that it holds, to the reducer of that key, which merges them.

    Attributes
    ----------
    combiners, reducers
        Their numbers. The partitioners are given by the splitters that they run.
    windows
        Size and slide in microseconds, as `Windows.of("60 seconds", "1 second")` makes them.
    costs
        What the work costs.
    forward
        Whether a combiner emits the final result itself for a key that was never split within the window. Which keys
        were is known as soon as a partitioner splits them, also where messages would tell it later.
    engine
        None processes a tuple as it comes; micro-batches are collected first.

    Examples
    --------
    >>> cluster = Cluster(combiners=8, reducers=2, windows=Windows.of("60 seconds", "20 seconds"))
    >>> cluster.slide, cluster.slides
    (20.0, 3)
    """

    combiners: int
    reducers: int = 1
    windows: Windows = _MINUTE_BY_SECONDS
    costs: Costs = Costs()
    forward: bool = False
    engine: MicroBatches | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated."""
        for name in ("combiners", "reducers"):
            check_whole(name, getattr(self, name))
        if self.windows.rows or self.windows.size % self.windows.slide:
            raise SkewlessError(f"{self.windows}; the simulator has windows of time that are 1, 2, 3, ... slides long")
        if self.engine is not None:
            batches = self.slide / self.engine.interval
            if batches < 0.5 or abs(batches - round(batches)) > 1e-9:
                raise SkewlessError(
                    f"a slide of {self.slide} s is no multiple of the micro-batches of {self.engine.interval} s"
                )
            if self.forward:
                raise SkewlessError(
                    "micro-batches have nothing to forward: a window is merged from several; omit forward"
                )

    @property
    def slide(self) -> float:
        """Seconds of a slide."""
        return self.windows.slide / SECOND

    @property
    def slides(self) -> int:
        """Slides in a window."""
        return self.windows.size // self.windows.slide
