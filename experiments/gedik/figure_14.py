"""Gedik, Figure 14: how long construction takes over the skew."""

from __future__ import annotations

from experiments.figure import Check, Figure, Outcome, Scale, Scaled, Table, Tell
from experiments.gedik.sweep import SKEWS, setup, skews
from experiments.gedik.times import RING, draw, milliseconds, table, whole

VALUES = SKEWS["LCL"]
LOW, FLAT, HIGH = 0, VALUES.index(0.8), VALUES.index(1.0)


def run(scale: Scale, tell: Tell) -> Outcome:
    """Time the last step of growth over Zipf exponents."""
    series = skews("LCL", scale, tell)
    times = milliseconds(series)
    items = [sample.tracked for sample in series["scan"]]
    scan, redist, readj = ([whole(times, name, i) for i in range(len(VALUES))] for name in ("scan", "redist", "readj"))
    rise = {name: times[name][HIGH].mean / times[name][FLAT].mean for name in ("redist", "readj")}
    checks = (
        Check("scan, z = 1 over 0.1", scan[HIGH] / scan[LOW], high=1.25),
        Check("redist, ring and map, up to z = 0.8, over z = 0.1", redist[FLAT] / redist[LOW], high=1.15),
        Check("readj, ring and map, up to z = 0.8, over z = 0.1", readj[FLAT] / readj[LOW], high=1.15),
        *(
            Check(
                f"the map of {name} alone up to z = 0.8, over z = 0.1",
                times[name][FLAT].mean / times[name][LOW].mean,
                high=1.15,
                essential=False,
                why=f"At z = 0.1 the map has {items[LOW].mean:.0f} items and takes {times[name][LOW].mean:.2f} ms, and "
                f"at 0.8 it has {items[FLAT].mean:.0f} and takes {times[name][FLAT].mean:.2f} ms. The paper shows ring "
                f"and map together, of which the ring takes {times[RING][FLAT].mean:.2f} ms here.",
            )
            for name in ("redist", "readj")
        ),
        Check("the map of redist, z = 1 over 0.8", rise["redist"], low=1.2),
        Check("the map of readj, z = 1 over 0.8", rise["readj"], low=1.5),
        Check("the rise of readj over that of redist", rise["readj"] / rise["redist"], low=1.1),
    )
    return Outcome(
        setup(scale, Scaled("Zipf exponent z", "0.1 to 1", "0.1 to 1")),
        f"From z = 0.8 to 1 the map of readj takes {rise['readj']:.1f} times as long and that of redist "
        f"{rise['redist']:.1f} times, while scan takes {scan[HIGH] / scan[FLAT]:.2f} times as long in all.",
        checks,
        (
            table("z", VALUES, times),
            Table("Items in the map", tuple(f"z = {z:g}" for z in VALUES), (tuple(items),)),
        ),
        draw(VALUES, times, "Zipf exponent z"),
    )


FIGURE = Figure(
    "gedik-14",
    "Skew and construction time",
    "Skew hardly changes the construction time of scan; those of redist and readj stay flat up to z = 0.8 and rise "
    "beyond, readj's faster.",
    run,
)
