"""AutoFlow, Figure 6: hot spots that come suddenly and last for 20 and for 10 seconds."""

from __future__ import annotations

from experiments.autoflow.reducers import AUTOFLOW, OFF, draw, kinds, moving, peaks, run_all, setup
from experiments.autoflow.setting import SPIKES
from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Tell


def run(scale: Scale, tell: Tell) -> Outcome:
    """Both spikes."""
    long, short = all_runs = run_all(SPIKES, scale, tell)
    checks: list[Check] = []
    for kind in kinds(long):
        peak = {
            panel: kinds(runs)[kind][name].peak
            for runs in all_runs
            for panel, name in ((runs.case.off, OFF), (runs.case.on, AUTOFLOW))
        }
        checks += [
            Check(f"{kind}: longest latency, 6b over 6a", peak["6b"] / peak["6a"], high=0.5),
            Check(f"{kind}: longest latency, 6d over 6c", peak["6d"] / peak["6c"], high=0.999),
            Check(f"{kind}: longest latency, 6d over 6b", peak["6d"] / peak["6b"], low=1.001),
            Check(
                f"{kind}: what is left of the peak, 6d over 6b",
                (peak["6d"] / peak["6c"]) / (peak["6b"] / peak["6a"]),
                low=1.001,
                essential=False,
            ),
        ]
    return Outcome(
        (
            *setup(SPIKES, scale),
            Scaled(
                "spikes",
                "20 s and 10 s, by how much is not said",
                "60 % of the rows for one of three reducers for 20 s, 80 % for 10 s: about as many rows too many",
            ),
        ),
        f"The spike of 20 s takes latency to {long.tuples[OFF].peak:.1f} s without moving and to "
        f"{long.tuples[AUTOFLOW].peak:.1f} s with AutoFlow; that of 10 s to {short.tuples[OFF].peak:.1f} and "
        f"{short.tuples[AUTOFLOW].peak:.1f} s, though AutoFlow decides in every period.",
        tuple(checks),
        (peaks(all_runs), moving(all_runs)),
        lambda figure: draw(figure, all_runs),
    )


FIGURE = Figure(
    "autoflow-6",
    "Spikes, by reducer",
    "With a small window_length AutoFlow greatly reduces the latency of a spike of 20 s (6b); one of 10 s it only "
    "relaxes (6d), even with a smaller window_length.",
    run,
)
