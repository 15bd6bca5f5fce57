"""PartLy, Figure 4.13: instances of an operator that learn all at once, and one at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figure import Check, Figure, Measured, Outcome, Scale, Scaled, Table, Tell
from experiments.partly.agents import EVERY, INSTANCES, RECORD, SCHEMES
from experiments.picture import legend

AT_ONCE, ONE, FEWER = SCHEMES
BOTH = (AT_ONCE, ONE)


def run(scale: Scale, tell: Tell) -> Outcome:
    """Read what was recorded."""
    record = {seed: each for seed, each in json.loads(RECORD.read_text())["schemes"].items() if each.keys() > {*BOTH}}
    # The third scheme takes long to train; it is compared if all seeds of the record have it.
    schemes = [scheme for scheme in SCHEMES if all(scheme in each for each in record.values())]
    runs = {scheme: [each[scheme] for each in record.values()] for scheme in schemes}
    usual = [each["heuristic"] for each in record.values()]
    needed = {scheme: [_needed(each) for each in runs[scheme]] for scheme in schemes}
    disrupted = {
        scheme: [_disruption(each, cost) for each, cost in zip(runs[scheme], usual, strict=True)] for scheme in schemes
    }
    never = sum(each["converged"] == 0 for scheme in BOTH for each in runs[scheme])
    more = Measured.of(np.subtract(disrupted[ONE], disrupted[AT_ONCE]))
    fewer = (
        ()
        if FEWER not in runs
        else (
            Check(
                "micro-batches until then, one at a time over all at once with the updates of one at a time",
                float(np.mean(needed[ONE]) / np.mean(needed[FEWER])),
                low=1.0,
                essential=False,
                why="More steps to learn from do not help without more updates.",
            ),
            Check(
                "cost that training adds until then, one at a time over all at once with the updates of one at a time",
                float(np.mean(disrupted[ONE]) / np.mean(disrupted[FEWER])),
                high=1.0,
                essential=False,
                why="It takes so much longer that the heuristic of the others does not make up for it.",
            ),
        )
    )
    checks = (
        Check("trainings of both schemes that never beat the heuristic", float(never), high=0.0),
        Check(
            "micro-batches until the policy beats the heuristic, one at a time over all at once",
            float(np.mean(needed[ONE]) / np.mean(needed[AT_ONCE])),
            low=1.0,
        ),
        Check(
            f"the same, seeds of {len(record)} in which it is more",
            float(np.greater(needed[ONE], needed[AT_ONCE]).sum()),
            low=float(len(record)),
        ),
        *fewer,
        Check(
            "cost that training adds to the topology until then, one at a time over all at once",
            float(np.mean(disrupted[ONE]) / np.mean(disrupted[AT_ONCE])),
            high=1.0,
        ),
        Check(
            "the same, the difference of one at a time to all at once over its standard error, paired by seed",
            more.mean / max(more.error, 1e-9),
            high=-2.0,
            why=f"It is {more.mean:.0f} ± {more.error:.0f} with {len(record)} seeds, which cannot be told from none.",
        ),
    )
    return Outcome(
        (
            Scaled("instances of the operator", "not said", f"{INSTANCES}, 12 blocks and 24 keys each"),
            Scaled("heuristic", "not said", "the fewest parts that fit, from the emptiest block on"),
            Scaled(
                "converged",
                "the policy outperforms the heuristic",
                f"its cost on unseen micro-batches is lower in two tests in turn, {EVERY} rounds apart",
            ),
            Scaled(
                "updates",
                "not said",
                f"as many for each instance that learns: {INSTANCES} times as many all at once{_and_fewer(runs)}",
            ),
            Scaled("seeds", "not said", f"{len(record)}"),
        ),
        f"All at once, with {INSTANCES} times the updates, the policy beats the heuristic after "
        f"{np.mean(needed[AT_ONCE]):,.0f} micro-batches of each instance, one at a time after "
        f"{np.mean(needed[ONE]):,.0f}. Until then training adds {np.mean(disrupted[AT_ONCE]):,.0f} and "
        f"{np.mean(disrupted[ONE]):,.0f} to the cost of an instance's micro-batches, each of which costs "
        f"{np.mean(usual):.2f} by the heuristic; paired by seed, {more.mean:+.0f} ± {more.error:.0f} one at a time.",
        checks,
        (
            Table(
                "Micro-batches of each instance until the policy beats the heuristic (0: never), and added cost",
                ("scheme", *(f"seed {seed}" for seed in record), "mean", "added cost"),
                tuple(
                    (
                        scheme,
                        *(int(each["converged"]) for each in runs[scheme]),
                        Measured.of(needed[scheme]),
                        Measured.of(disrupted[scheme]),
                    )
                    for scheme in schemes
                ),
            ),
        ),
        lambda figure: _draw(figure, runs, usual),
    )


def _and_fewer(runs: Mapping[str, Any]) -> str:
    if FEWER not in runs:
        return "; how long all at once takes with as many updates as one at a time is not recorded"
    return "; in the third scheme as many as one at a time"


def _needed(run: Mapping[str, Any]) -> float:
    """Micro-batches until it converged; all of them if it never did."""
    return float(run["converged"] or run["points"][-1]["batches"])


def _disruption(run: Mapping[str, Any], usual: float) -> float:
    """What the micro-batches of an instance cost more than by the heuristic, added up until it converged."""
    points = [each for each in run["points"] if each["batches"] <= _needed(run)]
    steps = np.diff([each["batches"] for each in points], prepend=0)
    return float((steps * [each["while"] - usual for each in points]).sum())


def _draw(figure: Any, runs: Mapping[str, Sequence[Any]], usual: Sequence[float]) -> None:
    panels = figure.subplots(1, 2)
    titles = {"cost": "cost of the policy, unseen micro-batches", "while": "cost of the topology meanwhile"}
    for axes, (name, title) in zip(panels, titles.items(), strict=True):
        for number, scheme in enumerate(runs):
            for at, each in enumerate(runs[scheme]):
                points = each["points"]
                label = scheme if at == 0 else None
                x, y = [p["batches"] for p in points], [p[name] for p in points]
                axes.plot(x, y, color=f"C{number}", linewidth=0.9, label=label)
        axes.axhline(float(np.mean(usual)), color="0.5", linewidth=0.8, label="heuristic")
        axes.set_yscale("log")
        axes.set_xlabel("micro-batches of an instance")
        axes.set_title(title, fontsize=9)
    legend(figure, panels[0])


FIGURE = Figure(
    "partly-4.13",
    "All at once and one at a time",
    "If all instances of an operator train its policy, training is as short as possible; if one does while the others "
    "go by a heuristic, it takes longer and disturbs the topology less.",
    run,
)
