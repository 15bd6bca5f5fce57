"""Replays the same stream through several splitters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import isfinite, isnan
from typing import Any

import numpy as np

from skewless import split
from skewless.core.arrays import Int32Array, Int64Array
from skewless.core.errors import SkewlessError
from skewless.metrics import PromptCosts
from skewless.simulate.cluster import Costs
from skewless.simulate.replay import Replay, replay
from skewless.simulate.source import Stream
from skewless.simulate.verdict import Verdict, choose
from skewless.simulate.warm import warm_up

SLIDES = 10
REFERENCES = ("hash", "shuffle")
COSTS = Costs(tuple=1e-6, emit=1e-6, partial=1e-6)
"""Of the makespan: a microsecond for each tuple, partial result that is emitted, and partial result that is merged."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The replay of a stream with each splitter, and which splitter to choose.

    `references` are Prompt's costs of hashing and of shuffling the same stream, to which those of others are relative.
    """

    stream: Stream
    workers: int
    window: int
    slide: int
    replays: dict[str, Replay]
    references: dict[str, PromptCosts]
    verdict: Verdict

    def relative(self, name: str, to: str) -> PromptCosts:
        """Prompt's costs of a splitter relative to those of "hash" or "shuffle"."""
        return self.replays[name].prompt_costs.relative_to(self.references[to])

    def as_dict(self) -> dict[str, Any]:
        """Everything that was measured, in types that JSON knows."""
        return {
            "stream": self.stream.name,
            "tuples": self.stream.tuples,
            "workers": self.workers,
            "window": self.window,
            "slide": self.slide,
            "splitters": [
                {
                    "split": name,
                    "max_over_avg": result.max_over_avg,
                    "mean_window": result.mean_window,
                    "worst_window": result.worst_window,
                    "last_window": result.last_window,
                    "imbalance": result.mean_imbalance,
                    "fragments_per_key": result.mean_fragments,
                    "fragments_per_hot_key": None if isnan(result.mean_hot_fragments) else result.mean_hot_fragments,
                    "fragments_of_the_top_key": result.most_top_fragments,
                    "gamma": result.mean_gamma,
                    **asdict(result.prompt_costs),
                    **{f"relative_to_{to}": _finite(self.relative(name, to)) for to in REFERENCES},
                    "makespan_seconds": result.mean_makespan(COSTS),
                    "hot_keys": result.hot_keys,
                    "tuples_per_second": round(result.tuples_per_second),
                    "loads": result.total.tolist(),
                }
                for name, result in self.replays.items()
            ],
            "choice": {"split": self.verdict.split, "why": self.verdict.why},
        }


def compare(
    stream: Stream,
    splitters: Sequence[str],
    workers: int,
    window: int,
    slide: int,
    on_routed: Callable[[str, int], None] = lambda _name, _tuples: None,
) -> Comparison:
    """Replay a stream through each splitter and choose one.

    All splitters have the same window, and a key counts as hot in the measures from a worker's fair load on, whatever
    share each splitter calls hot by its own default. Prompt plans a batch that it has seen, so it is given each window
    as a batch; the others answer tuple by tuple, and one of them is chosen.

    Parameters
    ----------
    stream
        The stream to replay.
    splitters
        The names of the splitters.
    workers
        The number of workers to route to.
    window, slide
        Tuples in a window and in a slide. Balance is measured in tumbling windows; splitters that remember a window
        move it forward by one slide at a time.
    on_routed
        Called after each block, with the splitter and the number of tuples.

    Examples
    --------
    >>> from skewless.simulate.source import open_stream
    >>> with open_stream("zipf:1.5", tuples=20_000) as stream:
    ...     comparison = compare(stream, ["hash", "shuffle"], workers=4, window=10_000, slide=1_000)
    >>> comparison.verdict.split
    'shuffle'
    """
    replays = {}
    for name in splitters:
        splitter = split.make(name, workers, slide=slide, slides=window // slide)
        warm_up(name, workers)
        blocks = _reported(stream.blocks(), name, on_routed)
        if isinstance(splitter, split.Prompt):
            replays[name] = replay(_WholeBatches(splitter), _batches(blocks, window), workers, window)
        else:
            replays[name] = replay(splitter, blocks, workers, window)
    online = {name: result for name, result in replays.items() if name != split.Prompt.name}
    references = {
        name: (replays.get(name) or replay(split.make(name, workers), stream.blocks(), workers, window)).prompt_costs
        for name in REFERENCES
    }
    return Comparison(stream, workers, window, slide, replays, references, choose(online or replays))


def check_splits(wanted: Sequence[str]) -> list[str]:
    """The splitters in `wanted`, each once; all splitters if it is empty.

    >>> check_splits(["hash", "shuffle", "hash"])
    ['hash', 'shuffle']
    """
    for name in wanted:
        if name not in split.NAMES:
            raise SkewlessError(f"no splitter {name!r}; there are {', '.join(split.NAMES)}")
    return list(dict.fromkeys(wanted or split.NAMES))


def window_and_slide(tuples: int, window: int | None = None, slide: int | None = None) -> tuple[int, int]:
    """Window and slide in tuples; if not given, they suit the stream: about ten windows of ten slides each.

    >>> window_and_slide(5_000_000)
    (500000, 50000)
    >>> window_and_slide(5_000_000, window=60_000)
    (60000, 6000)
    """
    for name, value in (("--window", window), ("--slide", slide)):
        if value is not None and value < 1:
            raise SkewlessError(f"{name} must be at least 1 tuple, not {value}")
    if slide is None:
        # Short windows measure noise, long ones take memory.
        default = min(max(tuples // SLIDES**2, 1_000), 100_000)
        slide = default if window is None else _tenth(window)
    if window is None:
        window = slide * SLIDES
    if window % slide:
        raise SkewlessError(f"--window must be a multiple of --slide, but {window} is none of {slide}")
    return window, slide


def _tenth(window: int) -> int:
    """The length of a slide, if the window is divided into as many equal slides as possible, at most ten."""
    return next(window // slides for slides in range(SLIDES, 0, -1) if window % slides == 0)


@dataclass(frozen=True)
class _WholeBatches:
    """Prompt as the paper has it: each block of the stream is a batch, seen before it is routed."""

    splitter: split.Prompt
    hot_keys: int = 0

    def route(self, keys: Int64Array) -> Int32Array:
        return self.splitter.partition(keys)


def _batches(blocks: Iterator[Int64Array], length: int) -> Iterator[Int64Array]:
    """The same stream in blocks of this length; the last may be shorter."""
    waiting: list[Int64Array] = []
    for block in blocks:
        waiting.append(block)
        while (have := sum(map(len, waiting))) >= length:
            whole = np.concatenate(waiting)
            yield whole[:length]
            waiting = [whole[length:]] if have > length else []
    if waiting:
        yield np.concatenate(waiting)


def _finite(costs: PromptCosts) -> dict[str, float | None]:
    """The costs, without those that are relative to nothing, for which JSON has no number."""
    return {name: value if isfinite(value) else None for name, value in asdict(costs).items()}


def _reported(blocks: Iterator[Int64Array], name: str, on_routed: Callable[[str, int], None]) -> Iterator[Int64Array]:
    for block in blocks:
        yield block
        on_routed(name, len(block))
