"""AutoFlow, Figure 6: hot spots that come suddenly and last for 20 and for 10 seconds."""

from __future__ import annotations

from dataclasses import replace

from experiments.autoflow.reducers import (
    AUTOFLOW,
    DELAY,
    OFF,
    PERIOD,
    SHORT,
    SLOW,
    SPARK,
    TUPLES,
    draw,
    enough,
    kinds,
    longest,
    moving,
    of_batch,
    peaks,
    run_all,
    run_batches,
    run_tuples,
    setup,
    shorter,
    work_of,
)
from experiments.autoflow.setting import SPIKES, Case, too_many
from experiments.autoflow.trace import in_batches, simulated
from experiments.figure import Cell, Check, Figure, Outcome, Scale, Scaled, Table, Tell

SEEDS = (1, 2, 3)
LENGTHS = (1, 2, 5)
"""The paper's figure is about a small window_length: the last one here is not."""
CONTRAST = 1.5
"""AutoFlow leaves at least so much more of the short spike than of the long one, if it only relaxes it."""


def run(scale: Scale, tell: Tell) -> Outcome:
    """Both spikes."""
    long, short = all_runs = run_all(SPIKES, scale, tell)
    work = work_of(TUPLES, scale)
    by_seed, in_batches_by_seed = {}, {}
    for seed in SEEDS:
        tell(f"seed {seed}")
        by_seed[seed] = tuple(_left(case, work, seed) for case in SPIKES)
        in_batches_by_seed[seed] = tuple(_left_in_batches(case, work, seed) for case in SPIKES)
    tell("a reaction that takes longer")
    slow = tuple(_left(case, work, 1, SLOW) for case in SPIKES)
    at_once = tuple(_left(case, work, 1, at_once=True) for case in SPIKES)
    tell("window_length")
    by_length = {
        length: tuple(_left(replace(case, window_length=length), work, 1) for case in SPIKES) for length in LENGTHS
    }
    same = (by_seed[1][0], by_length[SPIKES[0].window_length][1])
    why = (
        "What AutoFlow leaves of a spike is about its time to react over the length of the spike, and with half of "
        "the window_length it reacts sooner. A run isolates the window_length: if it is the same for both spikes, "
        f"AutoFlow leaves {same[1]:.2f} of the short one and {same[0]:.2f} of the long one, "
        f"{same[1] / same[0]:.2f} times as much. An instruction waits up to {PERIOD:g} s for the next "
        "control message, which is more of a short spike: in a run in which it goes out at once, AutoFlow leaves "
        f"{at_once[1]:.2f} and {at_once[0]:.2f}, {at_once[1] / at_once[0]:.2f} times as much. The paper gives the "
        "delays of metrics, control messages and moves "
        f"as a reason, without how long they are. If a message takes {SLOW:g} s instead of {DELAY * 1e3:g} ms, "
        f"AutoFlow leaves {slow[1]:.2f} and {slow[0]:.2f}, {slow[1] / slow[0]:.2f} times as much."
    )
    checks: list[Check] = []
    for kind in kinds(long):
        first, second = longest(long, kind), longest(short, kind)
        cost = "" if kind == TUPLES else shorter(short, kind, scale)
        if kind == SPARK:
            contrast, seeds = second[AUTOFLOW] / second[OFF] / (first[AUTOFLOW] / first[OFF]), ""
        else:
            left = by_seed if kind == TUPLES else in_batches_by_seed
            contrast, seeds = min(d / b for b, d in left.values()), ", smallest of three seeds"
        checks += [
            Check(
                f"{kind}: longest latency, 6b over 6a",
                first[AUTOFLOW] / first[OFF],
                high=0.5,
                why="" if kind == TUPLES else shorter(long, kind, scale),
            ),
            Check(f"{kind}: longest latency, 6d over 6c", second[AUTOFLOW] / second[OFF], high=0.999, why=cost),
            Check(
                f"{kind}: longest latency, 6d over 6b, though the short spike has more rows too many",
                second[AUTOFLOW] / first[AUTOFLOW],
                low=1.001,
                why=why if kind == TUPLES else f"{shorter(long, kind, scale)} {cost}",
            ),
            Check(
                f"{kind}: 6d over 6c, over 6b over 6a{seeds}",
                contrast,
                low=CONTRAST,
                why=why if kind == TUPLES else _contrast(work_of(kind, scale)),
            ),
        ]
    longer, shorter_one = LENGTHS[-1], SPIKES[0].window_length
    checks.append(
        Check(
            f"{TUPLES}: what is left of 6a with window_length {longer}, over that with {shorter_one}",
            by_length[longer][0] / by_length[shorter_one][0],
            low=CONTRAST,
            why="The scheduler decides later.",
        )
    )
    checks += enough(all_runs)
    rows: list[tuple[Cell, ...]] = [
        (f"a message takes {DELAY * 1e3:g} ms, window_length 2 and 1, seed {seed}", *_row(by_seed[seed]))
        for seed in SEEDS
    ]
    rows += [
        (f"a message takes {SLOW:g} s, window_length 2 and 1, seed 1", *_row(slow)),
        *(
            (f"a message takes {DELAY * 1e3:g} ms, window_length {length} and {length}, seed 1", *_row(left))
            for length, left in by_length.items()
        ),
        (f"a message takes {DELAY * 1e3:g} ms, window_length 2 and 1, instructions at once, seed 1", *_row(at_once)),
    ]
    return Outcome(
        (
            *setup(SPIKES, scale),
            Scaled(
                "spikes",
                "20 s and 10 s, by how much is not said",
                f"60 % of the rows for one of three reducers for 20 s, {too_many(SPIKES[0], work):,} more than it can "
                f"add up, and 80 % for 10 s, {too_many(SPIKES[1], work):,} more: what is left of each spike says "
                "more than how high the two are",
            ),
        ),
        f"The spike of 20 s takes latency to {long.tuples[OFF].peak:.1f} s without moving and to "
        f"{long.tuples[AUTOFLOW].peak:.1f} s with AutoFlow; that of 10 s to {short.tuples[OFF].peak:.1f} and "
        f"{short.tuples[AUTOFLOW].peak:.1f} s. AutoFlow leaves {by_seed[1][0]:.2f} of the long spike and "
        f"{by_seed[1][1]:.2f} of the short one. In micro-batches it is {long.batches[OFF].peak:.1f} and "
        f"{long.batches[AUTOFLOW].peak:.1f} s, and {short.batches[OFF].peak:.1f} and "
        f"{short.batches[AUTOFLOW].peak:.1f} s.",
        tuple(checks),
        (
            peaks(all_runs),
            Table(
                "The longest latency beyond two channels, with AutoFlow over without moving, simulated",
                ("run", "6b over 6a", "6d over 6c", "the second over the first"),
                tuple(rows),
            ),
            moving(all_runs),
        ),
        lambda figure: draw(figure, all_runs),
    )


def _left(case: Case, work: float, seed: int, delay: float = DELAY, at_once: bool = False) -> float:
    """What AutoFlow leaves of the longest latency, without the two channels that every row passes."""
    off, on = (
        simulated(run_tuples(case, name, work, seed=seed, delay=delay, at_once=at_once), case, PERIOD).peak - 2 * delay
        for name in (OFF, AUTOFLOW)
    )
    return on / off


def _left_in_batches(case: Case, work: float, seed: int, fixed: float | None = None) -> float:
    """The same in micro-batches, which have no channels."""
    off, on = (in_batches(run_batches(case, name, work, fixed, seed), case).peak for name in (OFF, AUTOFLOW))
    return on / off


def _contrast(work: float) -> str:
    """How much more is left of the short spike where micro-batches cost less: a run that isolates it."""
    said = []
    for fixed in (of_batch(), SHORT):
        long, short = (_left_in_batches(case, work, 1, fixed) for case in SPIKES)
        said.append(f"where micro-batches cost {fixed:.2f} s, {short:.2f} and {long:.2f}, {short / long:.2f} times")
    return (
        "A micro-batch's own latency is in what is left of both spikes, and brings the two closer to each other. In "
        f"simulated runs AutoFlow leaves of the short and of the long spike, {'; '.join(said)} as much."
    )


def _row(left: tuple[float, ...]) -> tuple[Cell, ...]:
    long, short = left
    return round(long, 3), round(short, 3), round(short / long, 2)


FIGURE = Figure(
    "autoflow-6",
    "Spikes, by reducer",
    "With a small window_length AutoFlow greatly reduces the latency of a spike of 20 s (6b); one of 10 s it only "
    "relaxes (6d), even with a smaller window_length.",
    run,
)
