"""Gedik, Figure 12: how long construction takes over the scaler of the frequency threshold."""

from __future__ import annotations

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Tell
from experiments.gedik.sweep import SIGMAS, setup, sigmas
from experiments.gedik.times import draw, milliseconds, table, whole

FASTER = (
    "The paper has about 10 s for readj and slightly more than 0.5 s for redist, on a machine of its time. Here the "
    "loops are compiled, the penalties are kept up to date from choice to choice instead of computed anew, as gedik-13 "
    "says, and readj tries only pairs that include the busiest or the idlest channel."
)
LOW, DEFAULT = SIGMAS.index(0.008), SIGMAS.index(0.1)


def run(scale: Scale, tell: Tell) -> Outcome:
    """Time the last step of growth over sigma."""
    times = milliseconds(sigmas("LCL", scale, tell))
    scan, redist, readj = ([whole(times, name, i) for i in range(len(SIGMAS))] for name in ("scan", "redist", "readj"))
    maps = {name: [each.mean for each in times[name]] for name in ("redist", "readj")}
    readj_ms, redist_ms = readj[LOW], redist[LOW]
    checks = (
        Check("readj, sigma = 0.008 over 0.1", readj[LOW] / readj[DEFAULT], low=50),
        Check("redist, sigma = 0.008 over 0.1", redist[LOW] / redist[DEFAULT], low=3),
        Check("readj over redist at sigma = 0.008", readj[LOW] / redist[LOW], low=8, high=60),
        Check("scan over redist at sigma = 0.008", scan[LOW] / redist[LOW], high=0.5),
        Check("milliseconds of readj at sigma = 0.1", readj[DEFAULT], high=50),
        Check("milliseconds of readj at sigma = 0.008", readj_ms, low=5_000, high=20_000, essential=False, why=FASTER),
        Check("milliseconds of redist at sigma = 0.008", redist_ms, low=250, high=1_000, essential=False, why=FASTER),
        Check(
            "readj's map alone, its growth from sigma = 0.03 to 0.008 over redist's",
            (maps["readj"][0] / maps["readj"][1]) / (maps["redist"][0] / maps["redist"][1]),
            low=1.5,
        ),
    )
    return Outcome(
        setup(scale, Scaled("threshold scaler sigma", "0.008 to 1", f"{SIGMAS[0]:g} to {SIGMAS[-1]:g}")),
        f"At sigma = 0.008 readj takes {readj[LOW]:.0f} ms, redist {redist[LOW]:.1f} and scan {scan[LOW]:.1f}; at 0.1, "
        f"{readj[DEFAULT]:.1f}, {redist[DEFAULT]:.1f} and {scan[DEFAULT]:.1f}.",
        checks,
        (table("sigma", SIGMAS, times),),
        draw(SIGMAS, times, "sigma", log=True),
    )


FIGURE = Figure(
    "gedik-12",
    "Frequency threshold scaler and construction time",
    "Readj takes around 10 s at sigma = 0.008 and less than 0.05 s at 0.1, redist slightly more than 0.5 s at 0.008, "
    "and scan little at any.",
    run,
)
