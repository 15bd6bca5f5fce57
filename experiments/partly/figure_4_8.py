"""PartLy, Figure 4.8: what training costs with and without partial rewards, and what a plan costs against the keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.partly.curves import BLOCKS as TRAINED_BLOCKS
from experiments.partly.curves import EPISODES, FILE, IMPATIENT, KEYS, PATIENCE, SCHEMES, SEEDS, UPDATES
from experiments.partly.setting import BLOCKS, SEED
from experiments.picture import legend
from skewless import split
from skewless.core.arrays import FloatArray, Int64Array
from skewless.split import Counts
from skewless.workload import Zipf

NUMBERS: dict[Scale, tuple[int, ...]] = {
    "small": (100, 300, 1_000, 3_000, 10_000),
    "full": (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000),
}
ROUNDS = 7
TUPLES_A_KEY = 50
WHOLE = UPDATES * EPISODES  # episodes of a training
GROWING, FINAL, AT_ONCE, _, SOONER = SCHEMES
Curves = Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]


def run(scale: Scale, tell: Tell) -> Outcome:
    """Read the curves that were recorded, and measure plans."""
    curves: Curves = json.loads(FILE.read_text())
    goal = good_enough({scheme: seeds for scheme, seeds in curves.items() if scheme != SOONER})
    # What was added to explain the others is shown as soon as it is recorded, and never moves the goal.
    schemes = [scheme for scheme in SCHEMES if len(curves.get(scheme, {})) == len(SEEDS)]
    needed = {scheme: [episodes_to(curves[scheme][str(seed)], goal) for seed in SEEDS] for scheme in schemes}
    saved = 1 - np.mean(needed[GROWING]) / np.mean(needed[FINAL])
    last = {scheme: [curves[scheme][str(seed)][-1]["cost"] for seed in SEEDS] for scheme in schemes}
    times = {keys: planning(keys, tell) for keys in NUMBERS[scale]}
    growing = [curves[GROWING][str(seed)] for seed in SEEDS]
    first = [next(point["episodes"] for point in points if point["stage"] > 0) for points in growing]
    halves = min(point["cost"] for points in growing for point in points if point["stage"] == 0)
    most = max(times)
    limited = min(1_000, most)
    checks = (
        Check("4.8a: training that partial rewards save (thesis: up to 0.7)", float(saved), low=0.1),
        Check(
            "4.8a: seeds, of 3, for which partial rewards need fewer episodes",
            float(sum(a < b for a, b in zip(needed[GROWING], needed[FINAL], strict=True))),
            low=2.0,
        ),
        Check(
            "4.8a: episodes needed with growing actions over all actions at once",
            float(np.mean(needed[GROWING]) / np.mean(needed[AT_ONCE])),
            high=1.0,
            why=f"Of the {np.mean(needed[GROWING]):,.0f} episodes, the {np.mean(first):,.0f} until more than halves "
            f"are open are too many: in them no seed came below a cost of {halves:.2f}, and then the goal took "
            f"{np.mean(needed[GROWING]) - np.mean(first):,.0f} more, where all actions at once took "
            f"{np.mean(needed[AT_ONCE]):,.0f}. A stage is left when {PATIENCE} updates gained less than 3 % over the "
            f"{PATIENCE} before{_sooner(needed)}.",
        ),
        *(
            Check(
                f"4.8a: episodes needed with growing actions, stages left after {IMPATIENT} updates in place of "
                f"{PATIENCE}, over all actions at once",
                float(np.mean(needed[SOONER]) / np.mean(needed[AT_ONCE])),
                high=1.0,
                essential=False,
                why=_rest(needed),
            )
            for _ in range(SOONER in needed)
        ),
        Check(
            "4.8a: cost at the end with growing actions over all actions at once",
            float(np.mean(last[GROWING]) / np.mean(last[AT_ONCE])),
            high=1.0,
            essential=False,
            why="The seeds differ by more than the two do.",
        ),
        Check(
            f"4.8b: time of PartLy's plan of {most:,} keys over that of cAM's routing",
            float(times[most]["partly"].mean / times[most]["cam"].mean),
            high=1.0,
            why="A network with thousands of multiplications for each of its 5,000 hot keys takes longer than cAM with "
            "all of the tuples.",
        ),
        Check(
            f"4.8b: time of PartLy's plan of {most:,} keys over that of Prompt's",
            float(times[most]["partly"].mean / times[most]["prompt"].mean),
            high=1.0,
            essential=False,
            why="Prompt's plan is a few operations a key; a network with thousands of multiplications for each of its "
            "hot keys cannot be faster, compiled or not.",
        ),
        Check(f"4.8b: milliseconds of PartLy's plan of {limited:,} keys", times[limited]["partly"].mean, high=20.0),
    )
    return Outcome(
        (
            Scaled("simulated micro-batches", "5,000 to 100,000", f"{WHOLE:,} for each curve"),
            Scaled("seeds", "not said", f"{len(SEEDS)} for each curve"),
            Scaled(
                "blocks, keys of the curves", "24, few hundreds to thousands", f"up to {TRAINED_BLOCKS}, up to {KEYS}"
            ),
            Scaled("blocks of the plans", "24", f"{BLOCKS}"),
        ),
        f"To a cost of {goal:.2f} partial rewards take {np.mean(needed[GROWING]):,.0f} episodes and the final reward "
        f"alone {np.mean(needed[FINAL]):,.0f}{_at_least(needed[FINAL])}, so that they save {saved:.0%}"
        f"{_at_least(needed[FINAL])}; all actions at once with partial rewards take "
        f"{np.mean(needed[AT_ONCE]):,.0f}. A plan of {most:,} keys takes {times[most]['partly'].mean:.1f} by PartLy, "
        f"{times[most]['prompt'].mean:.1f} by Prompt and {times[most]['cam'].mean:.1f} ms by cAM.",
        checks,
        (
            Table(
                f"4.8a: episodes until the cost on unseen batches stays below {goal:.2f} ({WHOLE:,}: never)",
                ("training", *(f"seed {seed}" for seed in SEEDS), "mean", "cost at the end"),
                tuple(
                    (scheme, *map(int, needed[scheme]), Measured.of(needed[scheme]), Measured.of(last[scheme]))
                    for scheme in schemes
                ),
            ),
            Table(
                f"4.8b: ms from counts to a plan (cAM: to route all tuples), {BLOCKS} blocks",
                ("keys", "partly", "prompt", "cam"),
                tuple((f"{keys:,}", each["partly"], each["prompt"], each["cam"]) for keys, each in times.items()),
            ),
        ),
        lambda figure: _draw(figure, curves, times, goal),
    )


def _sooner(needed: Mapping[str, Sequence[float]]) -> str:
    if SOONER not in needed:
        return "; none was run with less patience"
    return f"; with {IMPATIENT} in place of {PATIENCE} the goal takes {np.mean(needed[SOONER]):,.0f} episodes"


def _rest(needed: Mapping[str, Sequence[float]]) -> str:
    """What patience explains of the time that growing takes longer, and what is left of it."""
    saved = np.mean(needed[GROWING]) - np.mean(needed[SOONER])
    longer = np.mean(needed[GROWING]) - np.mean(needed[AT_ONCE])
    rest = Measured.of(np.subtract(needed[SOONER], needed[AT_ONCE]))
    told = ", which cannot be told from none" if abs(rest.mean) < 2 * rest.error else ""
    return (
        f"Less patience saves {saved:,.0f} of the {longer:,.0f} episodes that growing takes longer. What is left, "
        f"paired by seed, is {rest.mean:,.0f} ± {rest.error:,.0f}{told}."
    )


def good_enough(curves: Curves) -> float:
    """The cost that counts as learned: a quarter more than the median of all trainings at their end."""
    ends = [points[-1]["cost"] for scheme in curves.values() for points in scheme.values()]
    return 1.25 * float(np.median(ends))


def episodes_to(points: Sequence[Mapping[str, float]], goal: float) -> float:
    """Episodes until the cost is below the goal in two records in turn; all of them if that is never so."""
    costs = [point["cost"] for point in points]
    for i, point in enumerate(points[:-1]):
        if costs[i] <= goal and costs[i + 1] <= goal:
            return point["episodes"]
    return points[-1]["episodes"]


def _at_least(needed: Sequence[float]) -> str:
    return " or more" if max(needed) >= WHOLE else ""


def planning(keys: int, tell: Tell) -> dict[str, Measured]:
    """Milliseconds of each technique, all equally warm and in turn."""
    tell(f"plans of {keys:,} keys")
    stream = Zipf(1.0, keys, SEED).take(keys * TUPLES_A_KEY)
    seen = Counts.of(stream)
    partly, prompt = split.PartLy(BLOCKS), split.Prompt(BLOCKS)
    candidates, _ = split.best_cam(stream[: 20 * keys], BLOCKS)

    def cam(stream: Int64Array) -> None:
        split.CAM(BLOCKS, slide=len(stream), slides=1, candidates=candidates).route(stream)

    steps: list[tuple[str, Any]] = [
        ("partly", lambda: partly.plan(seen)),
        ("prompt", lambda: prompt.plan(seen)),
        ("cam", lambda: cam(stream)),
    ]
    spent: dict[str, list[float]] = {name: [] for name, _ in steps}
    for _ in range(ROUNDS):
        for name, step in steps:
            start = perf_counter()
            step()
            spent[name].append(1e3 * (perf_counter() - start))
    return {name: Measured.of(_without_the_first(each)) for name, each in spent.items()}


def _without_the_first(spent: list[float]) -> FloatArray:
    """The faster half of the rounds after the first, which compiles: others may use the machine."""
    half: FloatArray = np.sort(spent[1:])[: (len(spent) - 1) // 2]
    return half


def _draw(figure: Any, curves: Curves, times: Mapping[int, Mapping[str, Measured]], goal: float) -> None:
    panels = figure.subplots(1, 2)
    for number, (scheme, seeds) in enumerate(curves.items()):
        for seed, points in seeds.items():
            label = scheme if seed == str(SEEDS[0]) else None
            x, y = [p["episodes"] for p in points], [p["cost"] for p in points]
            panels[0].plot(x, y, color=f"C{number}", linewidth=0.9, label=label)
    panels[0].axhline(goal, color="0.5", linewidth=0.8)
    panels[0].set_yscale("log")
    panels[0].set_xlabel("episodes")
    panels[0].set_title("cost on unseen micro-batches", fontsize=9)
    panels[0].legend(fontsize=6)
    for name in ("partly", "prompt", "cam"):
        panels[1].plot(list(times), [each[name].mean for each in times.values()], marker="o", label=name)
    panels[1].set_xscale("log")
    panels[1].set_yscale("log")
    panels[1].set_xlabel("keys")
    panels[1].set_title("ms of a plan", fontsize=9)
    legend(figure, panels[1])


FIGURE = Figure(
    "partly-4.8",
    "What learning and planning cost",
    "Partial rewards shorten training by up to 70 %, and growing actions shorten it too; as the number of keys grows, "
    "PartLy's plans take less time than cAM's and Prompt's.",
    run,
)
