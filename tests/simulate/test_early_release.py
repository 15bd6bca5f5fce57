"""Early release: cuts before heartbeats, and streams of which nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.simulate import Costs, MicroBatches, Recorded, Source
from skewless.simulate.early_release import EarlyRelease
from skewless.simulate.map_reduce import Divided, process


def planned_for(planning):
    """A partitioner that remembers what it was given and takes these seconds to plan it, one after the other."""
    seen, seconds = [], iter(planning)

    def partitioner(keys, times, start, length):
        seen.append((keys, times, start, length))
        one = np.array([len(keys)])
        return Divided(one, one, one, next(seconds))

    return partitioner, seen


def run(planning, release, rate=64.0, interval=1.0):
    partitioner, seen = planned_for(planning)
    source = Source(Recorded(np.arange(100_000)), rate)
    done = process(source, partitioner, MicroBatches(interval), Costs(0, 0, 0, 0, 0), len(planning) * interval, release)
    return done, seen


@given(st.lists(st.floats(0.02, 0.025), min_size=1, max_size=30))
def test_planning_that_takes_about_as_long_every_time_delays_no_batch(planning) -> None:
    done, _ = run(planning, EarlyRelease(1.0))
    assert (done.late == 0).all()
    assert (done.cuts >= np.arange(1, len(planning) + 1) - 0.05 - 1e-12).all()


def test_without_early_release_planning_delays_every_batch() -> None:
    done, _ = run([0.02, 0.03], None)
    assert done.late == pytest.approx([0.02, 0.03])


def test_planning_beyond_the_largest_slack_delays_by_the_rest_only() -> None:
    done, _ = run([0.2, 0.2, 0.2], EarlyRelease(1.0))
    assert done.cuts == pytest.approx([0.95, 1.95, 2.95])
    assert done.late == pytest.approx([0.15, 0.15, 0.15])


@given(st.lists(st.floats(0, 0.2), min_size=1, max_size=20), st.floats(1, 200))
def test_rows_after_the_cut_go_to_the_next_batch_and_none_is_lost(planning, rate) -> None:
    done, seen = run(planning, EarlyRelease(1.0), rate)
    keys = np.concatenate([each[0] for each in seen])
    assert (keys == np.arange(len(keys))).all()
    assert len(keys) == np.ceil(done.cuts[-1] * rate - 1e-6)
    start = 0.0
    for (_, times, began, length), cut in zip(seen, done.cuts, strict=True):
        assert began == start
        assert ((times >= start - 1e-6) & (times < cut)).all()
        assert began + length == pytest.approx(cut)
        start = cut


@given(st.lists(st.floats(0, 0.03), min_size=1, max_size=150))
def test_slack_is_a_high_quantile_of_what_planning_took(planning) -> None:
    release = EarlyRelease(1.0, quantile=0.9, headroom=1.0, remember=50)
    for seconds in planning:
        release.took(seconds)
    last = sorted(planning[-50:])
    # So many of the last were planned within the slack, and one fewer would be too few.
    assert release.slack in last
    assert np.mean([seconds <= release.slack for seconds in last]) >= 0.9
    below = [seconds for seconds in last if seconds < release.slack]
    assert len(below) <= 0.9 * (len(last) - 1) + 1


def test_slack_never_exceeds_its_share_of_the_interval() -> None:
    release = EarlyRelease(3.0)
    assert release.slack == pytest.approx(0.15)
    release.took(1.0)
    assert release.slack == pytest.approx(0.15)


@pytest.mark.parametrize("wrong", [{"quantile": 1.5}, {"most": 1.0}, {"headroom": 0.5}, {"remember": 0}])
def test_what_makes_no_sense_is_refused(wrong) -> None:
    with pytest.raises(SkewlessError, match=next(iter(wrong))):
        EarlyRelease(1.0, **wrong)
    with pytest.raises(SkewlessError, match="interval"):
        EarlyRelease(0.0)
    with pytest.raises(SkewlessError, match="at least 0"):
        EarlyRelease(1.0).took(-1.0)
