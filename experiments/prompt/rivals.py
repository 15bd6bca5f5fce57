"""Prompt and its rivals, each as what divides the micro-batches of a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.prompt.setting import PLANNING, Setting
from skewless import metrics, split
from skewless.core.arrays import FloatArray, Int32Array, Int64Array
from skewless.core.hashing import xxhash64
from skewless.simulate.map_reduce import Divided, Partitioner
from skewless.split import BlockPlan, Counts
from skewless.split.receiver import Receiver
from skewless.split.sliding import SlidingSplitter

Plan = Callable[[Int64Array, Int64Array, int], BlockPlan]
Route = Callable[[Int64Array, FloatArray, float, float], Int32Array]

PROMPT = "prompt"
PAPERS = ("time-based", "shuffle", "hash", "PK2", "PK5", "cAM")
"""The rivals in the figures of the thesis."""
PACKINGS: dict[str, Plan] = {"first fit": split.first_fit, "least fragmentation": split.least_fragmentation}
"""The rivals of Figure 2.3, which split as few keys, and do not count the keys of a block."""
EXTRA = "bounded"
TASKS = 8
IN_TASKS = f"prompt in {TASKS} tasks"
"""Prompt as streams on Spark have it: receivers that never talk, and reduce buckets by the hash of the key."""
PARTLY, CM = "partly", "cm"
LEARNERS = ("d-choices", "w-choices", "dagreedy", "dalton")
"""Those that learn from one micro-batch to the next which keys are hot."""
OTHERS = (PARTLY, CM, *LEARNERS)
"""Partitioners of other chapters and papers."""
LEARNED = 4e-6  # seconds of PartLy's plan for each key that its network places, as Figure 4.8b measures it
RIVALS = (*PAPERS, *PACKINGS)
ALL = (PROMPT, *RIVALS, EXTRA)
WITH_TASKS = (*ALL, IN_TASKS)


@dataclass(frozen=True)
class Planned:
    """Divides by a plan of the whole micro-batch, with Algorithm 3 for the buckets if it is Prompt."""

    plan: Plan
    setting: Setting
    allocated: bool
    a_key: float = PLANNING  # seconds of planning for each key
    most: float = float("inf")  # keys that take time to plan

    def __call__(self, keys: Int64Array, times: FloatArray, start: float, length: float) -> Divided:
        """Count, plan, and allocate the buckets."""
        seen = Counts.of(keys)
        plan = self.plan(seen.keys, seen.whole, self.setting.blocks)
        planning = self.a_key * min(self.most, len(seen.keys))
        return Divided.planned(plan, self.setting.reducers, planning, allocated=self.allocated)


@dataclass(frozen=True)
class Routed:
    """Divides by a block for each tuple, which is known when the tuple comes, so that nothing is planned."""

    route: Route
    setting: Setting

    def __call__(self, keys: Int64Array, times: FloatArray, start: float, length: float) -> Divided:
        """Route the tuples."""
        block = self.route(keys, times, start, length)
        return Divided.routed(keys, block, self.setting.blocks, self.setting.reducers)


def partitioner(name: str, setting: Setting, candidates: int = 2) -> Partitioner:
    """What divides micro-batches under this name, at the beginning of a stream.

    `candidates` are those of cAM, see `best_candidates`. A micro-batch is a window of its own for cAM, CM and
    `bounded`, and a slide for those that learn.
    """
    n = setting.blocks
    if name == PROMPT:
        return Planned(split.partition, setting, allocated=True)
    if name == PARTLY:
        return learned(split.PartLy(n), setting)
    if name in PACKINGS:
        return Planned(PACKINGS[name], setting, allocated=False)
    if name == "time-based":
        return Routed(lambda keys, times, start, length: split.time_blocks(times, start, length, n), setting)
    if name == IN_TASKS:
        return Routed(lambda keys, *_: in_tasks(keys, n), setting)
    if name in ("cAM", CM, EXTRA):
        return Routed(lambda keys, *_: in_a_window_of_its_own(name, n, keys, candidates), setting)
    if name in LEARNERS:
        return Routed(by_slides(name, n), setting)
    named = {"shuffle": "shuffle", "hash": "hash", "PK2": "two-choices", "PK5": "five-choices"}
    router = split.make(named[name], n)
    return Routed(lambda keys, *_: router.route(keys), setting)


def learned(splitter: split.PartLy, setting: Setting) -> Planned:
    """PartLy's plans, whose buckets are Algorithm 3's; they take time for the keys that its network places."""

    def plan(keys: Int64Array, counts: Int64Array, blocks: int) -> BlockPlan:
        return splitter.again(workers=blocks)._divide(keys, counts, None)

    return Planned(plan, setting, allocated=True, a_key=LEARNED, most=splitter.hot)


def in_a_window_of_its_own(name: str, n: int, keys: Int64Array, candidates: int) -> Int32Array:
    """Blocks by a splitter that starts anew, and has all of these keys in its window."""
    if name == EXTRA:
        return split.Bounded(n, slide=None, slides=1).route(keys)
    if name == CM:
        return split.CM(n, slide=None, slides=1).route(keys)
    return split.CAM(n, slide=max(1, len(keys)), slides=1, candidates=candidates).route(keys)


def by_slides(name: str, n: int) -> Route:
    """Blocks by a splitter that goes on from one micro-batch to the next, and for which each of them is a slide."""
    splitter = split.make(name, n, slide=None, slides=1)
    assert isinstance(splitter, SlidingSplitter)  # as all that learn are

    def route(keys: Int64Array, *_: object) -> Int32Array:
        out = splitter.route(keys)
        splitter.end_slide()
        return out

    return route


def in_tasks(keys: Int64Array, blocks: int, tasks: int = TASKS) -> Int32Array:
    """Blocks by receivers of a part of the tuples each, which are dealt to them in turn, and which never talk."""
    out, hashed = np.empty(len(keys), np.int32), xxhash64(keys)
    for task in range(tasks):
        out[task::tasks] = Receiver(blocks).partition(hashed[task::tasks])
    return out


def best_candidates(keys: Int64Array, setting: Setting) -> int:
    """The candidates with which cAM processes these keys in the shortest time, as the thesis reports it."""

    def cost(block: Int32Array) -> float:
        divided = Divided.routed(keys, block, setting.blocks, setting.reducers)
        return metrics.makespan(divided.map_times(setting.costs), divided.reduce_times(setting.costs))

    return split.best_cam(keys, setting.blocks, cost)[0]
