"""The number of active workers in a loop: late reports, restarts, bounds, and triggers of another interval."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.control.folder import uri_of
from skewless.control.loop import Chosen, LoadLoop, Observed
from skewless.control.placements import Placements
from skewless.control.placing import Placing
from skewless.control.policy_file import PolicyFile
from skewless.control.routing import Routing
from skewless.control.scaling import Scaling
from skewless.control.version import Version
from skewless.control.workers_file import WorkersFile
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.elastic import Range
from skewless.place import Even, Rule
from skewless.split import Dalton

CHOSEN = Chosen("as asked", "as the test asks")
ROW = 0.001  # seconds of a worker


def file_in(path: Path) -> WorkersFile:
    return WorkersFile(uri_of(path), "s1")


def number_in(path: Path) -> int:
    """What the next micro-batch would read."""
    return int(json.loads((path / "workers-s1.json").read_text())["control"])


def seen(batch: int, rows: int, ran: int, *, fixed: float = 0.0, began: int | None = None, **more: object) -> Observed:
    """A micro-batch that begins with every second, and keeps its workers busy."""
    seconds = fixed + rows * ROW / ran
    start = batch * 1_000_000 if began is None else began
    fields = {"rows": rows, "began": start, "seconds": seconds, "busy": seconds, "control": ran, **more}
    return Observed("q", str(fields.pop("run", "run")), batch, **fields)  # type: ignore[arg-type]  # by name


def routed(path: Path, asked: Range) -> LoadLoop:
    scaling = Scaling(asked, "map", file_in(path))
    return LoadLoop("stream", scaling.workers, CHOSEN, scaling)


def warm(loop: LoadLoop, ran: int, run: str = "run") -> None:
    """The first micro-batch of a run, which is not counted."""
    loop.hear(seen(0, 1600, ran, began=-1_000_000, run=run))


def play(
    loop: LoadLoop, path: Path, loads: list[int], late: int = 0, first: int = 0, run: str = "run"
) -> list[tuple[int, float]]:
    """The number of workers and W of each micro-batch; a decision is read `late` micro-batches after the next."""
    numbers, out = [number_in(path)] * (late + 1), []
    for batch, rows in enumerate(loads, first):
        ran = numbers[-late - 1]
        loop.hear(seen(batch, rows, ran, run=run))
        numbers.append(number_in(path))
        out.append((ran, rows * ROW / ran))
    return out


@pytest.mark.parametrize("late", [0, 1, 2])
def test_it_follows_a_rise_and_a_fall_however_late_decisions_come_into_force(tmp_path: Path, late: int) -> None:
    loop = routed(tmp_path, Range(2, 16, "1 second", d=2))
    played = play(loop, tmp_path, [1600] * 3 + [9600] * 8 + [1600] * 8, late)
    assert played[3] == (2, 4.8)
    assert all(ratio <= 0.9 for _, ratio in played[5 + late : 11])  # one decision, and not one more for each late one
    assert {ran for ran, _ in played[5 + late : 11]} == {11}
    assert played[-1] == (2, 0.8)
    assert loop.workers == 2
    assert "11 workers became 2 after micro-batch 12 (W = 0.15), because the rate fell" in loop.describe()


def test_numbers_of_numpy_are_numbers_and_what_is_true_is_none(tmp_path: Path) -> None:
    given = Range(np.int64(2), np.int32(16), "1 second", d=np.int64(1), thres=np.float32(0.5))  # type: ignore[arg-type]
    plain = Range(2, 16, "1 second", d=1, thres=0.5)
    assert (given, repr(given)) == (plain, repr(plain))  # a folder remembers the number by the range in words
    loop = routed(tmp_path, given)
    play(loop, tmp_path, [800, 9600])
    assert (loop.workers, loop._failed) == (16, False)
    for options in ({"thres": True}, {"thres": np.True_}, {"step": True}):
        (name, value), *_ = options.items()
        with pytest.raises(SkewlessError, match=f"{name} is {value!r}; give a number, such as 0"):
            Range(2, 16, "1 second", **options)  # type: ignore[arg-type]  # wrong on purpose
    for least in (True, np.True_, np.float64(2)):
        with pytest.raises(SkewlessError, match=r"workers is \(.*, 16\); give two whole numbers, such as \(2, 16\)"):
            Range(least, 16, "1 second")  # type: ignore[arg-type]  # wrong on purpose


COLD = 31.5
"""Seconds of a micro-batch in which the JVM, Python and compilation begin."""


def test_the_first_micro_batch_of_a_run_is_not_counted_however_long_it_takes(tmp_path: Path) -> None:
    asked = Range(1, 16, "1 second", d=1)
    loop = routed(tmp_path, asked)
    loop.hear(seen(0, 850, 1, seconds=COLD))
    assert loop.workers == number_in(tmp_path) == 1
    assert "1 of 1 to 16 workers are active; W was 31.50 in the last micro-batch" in loop.describe()
    later = COLD * 1e6
    loop.hear(seen(1, 850, 1, began=round(later) + 500_000))
    assert loop.workers == 1
    loop.hear(seen(2, 1600, 1, began=round(later) + 1_500_000))
    assert loop.workers == 2  # the second and the third are counted
    again = routed(tmp_path, asked)  # of another program, which is cold again
    again.hear(seen(3, 1600, 2, seconds=COLD, run="later"))
    assert again.workers == number_in(tmp_path) == 2
    again.hear(seen(4, 2500, 2, began=round(later) + 4_500_000, run="later"))
    assert again.workers == 3
    again.end("later")
    again.hear(seen(5, 2500, 3, seconds=COLD, run="last"))  # of the same program
    assert again.workers == 3
    assert not loop._failed
    assert not again._failed


def test_the_first_micro_batch_of_a_run_of_owners_is_not_counted(tmp_path: Path) -> None:
    asked = Range(1, 16, "1 second", d=1)
    placing = placed(tmp_path, asked)
    for batch in (0, 1):
        placing.hear(replace(owned(placing, batch, 850), seconds=COLD if batch == 0 else 0.85))
    assert (placing.workers, placing.announced) == (1, False)
    again = placed(tmp_path, asked)
    for batch in (2, 3):
        again.hear(replace(owned(again, batch, 850, run="later"), seconds=COLD if batch == 2 else 0.85))
    assert (again.workers, again.announced) == (1, False)
    assert not again._failed


def test_workers_are_added_one_at_a_time_where_that_is_asked_for(tmp_path: Path) -> None:
    loop = routed(tmp_path, Range(2, 16, "1 second", d=2, stride="one"))
    played = play(loop, tmp_path, [1600] * 2 + [9600] * 22)
    changes = [ran for ran, _ in played]
    assert set(np.diff(changes).tolist()) == {0, 1}
    assert changes[2 + 9 * 2] == 11  # nine steps of d micro-batches


@given(st.lists(st.integers(0, 60_000), max_size=60), st.integers(0, 3), st.sampled_from(["one", "straight"]))
def test_the_number_stays_within_its_bounds(
    tmp_path_factory: pytest.TempPathFactory, loads: list[int], late: int, stride: str
) -> None:
    path = tmp_path_factory.mktemp("bounds")
    loop = routed(path, Range(3, 7, "1 second", d=1, stride=stride))
    assert all(3 <= ran <= 7 for ran, _ in play(loop, path, loads, late))
    assert not loop._failed


def test_what_runs_goes_by_the_file(tmp_path: Path) -> None:
    loop = routed(tmp_path, Range(2, 16, "1 second", d=1))
    assert number_in(tmp_path) == 2
    length = (tmp_path / "workers-s1.json").stat().st_size
    warm(loop, 2)
    loop.hear(seen(1, 9600, 2))
    assert number_in(tmp_path) == loop.workers == 11
    assert (tmp_path / "workers-s1.json").stat().st_size == length  # Spark remembers it


def test_loads_and_imbalance_are_of_the_workers_that_were_active(tmp_path: Path) -> None:
    loop = routed(tmp_path, Range(2, 16, "1 second", d=1))
    warm(loop, 2)
    loop.hear(seen(1, 9600, 2, loads={0: 4800, 1: 4800}))
    assert (loop.workers, loop.loads, loop.imbalance) == (11, {0: 4800, 1: 4800}, 1.0)


def test_a_later_run_of_the_query_goes_on_from_the_number_in_the_folder(tmp_path: Path) -> None:
    play(routed(tmp_path, Range(2, 16, "1 second", d=1)), tmp_path, [1600, 9600])
    again = routed(tmp_path, Range(2, 16, "1 second", d=3))
    assert number_in(tmp_path) == 2  # the query is not known yet
    again.hear(seen(1, 9600, 2, run="later"))
    assert number_in(tmp_path) == again.workers == 11
    again.hear(seen(2, 9600, 2, run="later"))  # had begun before that was known: passed over
    assert again.workers == 11
    narrower = routed(tmp_path, Range(2, 8, "1 second", d=3))
    narrower.hear(seen(3, 9600, 2, run="last"))
    assert narrower.workers == 8
    other = routed(tmp_path, Range(2, 16, "1 second", d=3))
    other.hear(Observed("another query", "its run", 0, rows=10, began=0, seconds=0.85, control=2))
    assert other.workers == 2


def test_each_range_of_a_query_goes_on_from_its_own_number(tmp_path: Path) -> None:
    ranges = {"s1": Range(2, 16, "1 second", d=1), "s2": Range(2, 5, "1 second", d=1)}

    def streams() -> dict[str, LoadLoop]:
        files = {stream: WorkersFile(uri_of(tmp_path), stream) for stream in ranges}
        scalings = {stream: Scaling(asked, "map", files[stream]) for stream, asked in ranges.items()}
        return {stream: LoadLoop(stream, each.workers, CHOSEN, each) for stream, each in scalings.items()}

    def numbers(loops: dict[str, LoadLoop]) -> dict[str, int | None]:
        return {stream: loop.workers for stream, loop in loops.items()}

    first = streams()
    for loop in first.values():
        warm(loop, 2)
        loop.hear(seen(1, 9600, 2))
    assert numbers(first) == {"s1": 11, "s2": 5}
    for begin in (lambda loop: loop.start("q", "later"), lambda loop: loop.hear(seen(1, 9600, 2, run="later"))):
        again = streams()
        for loop in again.values():
            begin(loop)
        assert numbers(again) == {"s1": 11, "s2": 5}


def test_the_first_micro_batch_of_a_later_run_has_the_number_in_the_folder(tmp_path: Path) -> None:
    first = routed(tmp_path, Range(2, 16, "1 second", d=1))
    first.start("q", "run")
    assert number_in(tmp_path) == 2
    play(first, tmp_path, [1600, 9600])
    again = routed(tmp_path, Range(2, 16, "1 second", d=3))
    assert number_in(tmp_path) == 2
    again.start("q", "later")
    assert number_in(tmp_path) == again.workers == 11
    again.hear(seen(1, 9600, 11, run="later"))
    again.start("q2", "another")  # of another stream, while this one runs
    assert number_in(tmp_path) == again.workers == 11
    assert not again._failed


def test_a_stream_that_starts_after_another_query_has_the_fewest_workers(tmp_path: Path) -> None:
    play(routed(tmp_path, Range(2, 16, "1 second", d=1)), tmp_path, [1600, 9600])
    other = routed(tmp_path, Range(2, 16, "1 second", d=3))
    other.start("q", "later")  # which is not this stream's
    assert other.workers == 11
    other.start("its own", "its run")
    assert number_in(tmp_path) == other.workers == 2
    unheard = routed(tmp_path, Range(2, 16, "1 second", d=3))
    unheard.start("q", "later")
    unheard.hear(Observed("its own", "its run", 0, rows=10, began=0, seconds=0.85, control=11))
    assert number_in(tmp_path) == unheard.workers == 2
    assert WorkersFile(uri_of(tmp_path), "s1").remembered("q") == 11


def test_the_number_stays_once_two_micro_batches_began_within_an_interval(tmp_path: Path) -> None:
    loop = routed(tmp_path, Range(1, 16, "1 second", d=2))
    play(loop, tmp_path, [1600, 9600, 9600])
    assert loop.workers == 11
    for batch in range(3, 10):  # as with availableNow: the next begins when the last is done
        loop.hear(seen(batch, 1000, 11, began=2_000_000 + batch * 400_000))
    assert loop.workers == 11
    assert any("such as availableNow: the number of workers stays" in line for line in loop.describe())
    loop.end("run")
    play(loop, tmp_path, [1000] * 3, first=20, run="later")  # another run may have the trigger
    assert loop.workers < 11


def test_a_clock_that_is_set_back_once_does_not_hold_the_number_for_good(tmp_path: Path) -> None:
    loop = routed(tmp_path, Range(1, 16, "1 second", d=3))
    for batch, began in enumerate([0, 1_300_000, 1_900_000]):  # was set back by 0.7 s, in a micro-batch of 1.3 s
        loop.hear(seen(batch, 1300, 1, began=began))
    assert loop.scaling is not None
    assert loop.scaling.untimed
    for batch in range(3, 12):
        loop.hear(seen(batch, 1300, 1, began=1_900_000 + 1_300_000 * (batch - 2)))
    assert (loop.scaling.untimed, loop.workers) == (True, 1)
    for batch in range(12, 15):
        loop.hear(seen(batch, 1300, 1, began=1_900_000 + 1_300_000 * (batch - 2)))
    assert (loop.scaling.untimed, loop.workers) == (False, 2)


def test_another_trigger_holds_the_number_where_w_is_at_most_thres(tmp_path: Path) -> None:
    loop = routed(tmp_path, Range(1, 16, "1 second", d=1))
    warm(loop, 1)
    loop.hear(seen(1, 8800, 1, began=0))
    assert loop.workers == 10
    untimed = []
    for batch in range(2, 101):  # one after the other, of 0.88 s
        loop.hear(seen(batch, 8800, 10, began=batch * 880_000 + 7_040_000))
        assert loop.scaling is not None
        untimed.append(loop.scaling.untimed)
    assert all(untimed[untimed.index(True) :])


def test_it_says_that_it_cannot_tell_until_a_micro_batch_has_waited_for_its_time(tmp_path: Path) -> None:
    loop = routed(tmp_path, Range(1, 4, "1 second", d=5))
    said = "cannot be told whether the query falls behind, or has another trigger"
    assert not any(said in line for line in loop.describe())
    for batch, began in enumerate([300_000, 1_600_000, 2_950_000, 4_250_000]):  # back to back, of 1.3 s
        loop.hear(seen(batch, 1300, 1, began=began))
        assert any(said in line for line in loop.describe())
    loop.hear(seen(4, 500, 1, began=5_560_000))
    loop.hear(seen(5, 500, 1, began=7_004_000))
    assert not any(said in line for line in loop.describe())


def test_micro_batches_that_fall_behind_begin_within_no_interval_of_each_other(tmp_path: Path) -> None:
    # Spark begins the next one at once, or at the next multiple of the interval, which may be sooner than an interval.
    loop = routed(tmp_path, Range(1, 4, "1 second", d=2))
    for batch, began in enumerate([0, 1_300_000, 2_000_000, 3_300_000, 4_000_000]):
        loop.hear(seen(batch, 1300, 1, began=began))
    assert loop.workers == 2
    assert loop.scaling is not None
    assert not loop.scaling.untimed


def test_a_trigger_that_is_longer_than_the_interval_is_said(tmp_path: Path) -> None:
    loop = routed(tmp_path, Range(2, 16, "1 second", d=2))
    for batch in range(5):
        loop.hear(seen(batch, 1000, 2, began=10_000_000 * batch))
    assert not any("began 1 second or more after" in line for line in loop.describe())
    loop.hear(seen(5, 1000, 2, began=50_000_000))
    assert any("the last 5 micro-batches began 1 second or more after the one" in line for line in loop.describe())
    loop.hear(seen(6, 1000, 2, began=51_000_000))
    assert not any("began 1 second or more after" in line for line in loop.describe())


def test_the_part_of_w_that_no_worker_shortens_is_left_out_of_what_more_workers_gain(tmp_path: Path) -> None:
    loop = routed(tmp_path / "all", Range(2, 16, "1 second", d=1))
    warm(loop, 2)
    loop.hear(seen(1, 2400, 2, seconds=1.5, busy=1.5))
    assert loop.workers == 4  # 2 * 1.5 / 0.9
    loop = routed(tmp_path / "part", Range(2, 16, "1 second", d=1))
    warm(loop, 2)
    loop.hear(seen(1, 2400, 2, seconds=1.5, busy=1.0))
    assert loop.workers == 5  # 2 * 1.0 / (0.9 - 0.5)


def test_what_owners_follow_is_said_by_the_number_of_keys_and_what_lanes_follow_by_the_rate(tmp_path: Path) -> None:
    placing = placed(tmp_path / "keys", Range(2, 16, "1 second", d=1))
    for batch, (keys, rows) in enumerate([(100, 1600), (100, 1600), (600, 9600)]):
        placing.hear(replace(owned(placing, batch, rows), keys=keys))
    assert placing.scaling is not None
    assert (placing.scaling.last or "").endswith("because the number of keys rose")
    same = placed(tmp_path / "same", Range(2, 16, "1 second", d=1))
    for batch, rows in enumerate([1600, 1600, 9600]):
        same.hear(replace(owned(same, batch, rows), keys=100))
    assert same.scaling is not None
    assert (same.scaling.last or "").endswith("because micro-batches took too much of their interval")


def test_a_splitter_is_made_for_the_number_of_workers(tmp_path: Path) -> None:
    scaling = Scaling(Range(2, 16, "1 second", d=1), "map", file_in(tmp_path))
    loop = Routing("stream", Dalton(16), PolicyFile(uri_of(tmp_path), "s1"), CHOSEN, scaling)
    hot = Counts(np.array([7]), np.array([9000]), 9600)
    for batch, rows in enumerate([100, 9600, 9600]):
        loop.hear(seen(batch, rows, loop.workers or 0, counts=hot))
    assert loop.workers == loop.policy.workers == 11
    assert len(set(loop.policy.lanes_of(7).tolist())) > 2
    versions = loop.policy.version
    loop.hear(seen(3, 100, 11, counts=hot))
    assert loop.policy.workers == loop.workers == 2
    assert loop.policy.lanes_of(7).max() < 2
    assert loop.policy.version > versions


def placed(path: Path, asked: Range) -> Placing:
    scaling = Scaling(asked, "reduce")
    folder = Placements.at(str(path))
    return Placing("s", Even(slots=32), folder, scaling.workers, 16, Rule(), 100, CHOSEN, None, scaling)


def owned(placing: Placing, batch: int, rows: int, run: str = "run") -> Observed:
    """A micro-batch by what the folder says when it begins."""
    found = placing.folder.read_control()
    assert found is not None
    placement = placing.folder.placement(found[0].force)
    counts = tuple([rows // placement.slots] * placement.slots)
    return seen(batch, rows, placement.workers, control=found[0].code, notes=(counts,), run=run)


def test_owners_follow_by_a_placement_that_is_announced_first(tmp_path: Path) -> None:
    placing = placed(tmp_path, Range(2, 16, "1 second", d=1))
    assert placing.placement.workers == 2
    placing.hear(owned(placing, 0, 1600))
    placing.hear(owned(placing, 1, 9600))
    assert (placing.placement.workers, placing.workers, placing.announced) == (2, 11, True)
    placing.hear(owned(placing, 2, 9600))  # ran with the announcement
    assert (placing.placement.workers, placing.announced) == (11, False)
    assert len(np.unique(placing.placement.tail)) == 11
    for batch in range(3, 6):
        placing.hear(owned(placing, batch, 9600))
    assert placing.placement.workers == 11
    for batch in range(6, 9):
        placing.hear(owned(placing, batch, 1600))
    assert placing.placement.workers == 2
    assert not placing._failed


def test_a_later_run_has_the_owners_of_the_placement_in_force(tmp_path: Path) -> None:
    placing = placed(tmp_path, Range(2, 16, "1 second", d=1))
    for batch, rows in enumerate([1600, 9600, 9600]):
        placing.hear(owned(placing, batch, rows))
    again = placed(tmp_path, Range(2, 16, "1 second", d=1))
    assert (again.workers, again.placement.workers) == (11, 11)
    again.hear(owned(again, 3, 9600, run="later"))
    assert (again.workers, again.announced) == (11, False)
    narrower = placed(tmp_path, Range(2, 8, "1 second", d=1))
    narrower.hear(owned(narrower, 4, 9600, run="last"))
    assert (narrower.workers, narrower.announced) == (8, True)


def test_a_placement_that_was_withdrawn_is_decided_anew(tmp_path: Path) -> None:
    placing = placed(tmp_path, Range(2, 16, "1 second", d=2))
    for batch, rows in enumerate([1600, 9600, 9600]):
        placing.hear(owned(placing, batch, rows))
    assert placing.announced
    placing.withdraw()
    assert (placing.workers, placing.announced) == (2, False)
    placing.hear(owned(placing, 3, 9600))
    assert not placing.announced  # d micro-batches have to ask for it again
    placing.hear(owned(placing, 4, 9600))
    assert (placing.workers, placing.announced) == (11, True)


def test_the_number_is_not_set_by_hand_too(tmp_path: Path) -> None:
    placing = placed(tmp_path, Range(2, 16, "1 second"))
    with pytest.raises(SkewlessError, match=r"workers is 5, but 2 to 16 workers of this query follow the load; .*"):
        placing.rebalance(5)
    assert placing.version == Version(0)
