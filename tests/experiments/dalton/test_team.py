"""Partitioners that learn together, as the figures run them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.messages import FEWER, TUPLES
from experiments.costs import MEASURED, MESSAGE, SLOWER
from experiments.dalton.rivals import RIVALS
from experiments.dalton.team import Alternating, apart, cooperation, telling
from experiments.dalton.word_count import THIRDS, Setup, together
from skewless.workload import Zipf

SETUP = Setup(16, 1 / 32, THIRDS)


def test_a_fixed_interval_stays_whether_the_reducer_idles_or_is_late() -> None:
    for work in (0.1, 15.0):
        team = cooperation(SETUP, 2, 10.0, work=work)
        team.advance(200.0)
        assert {interval for _at, _query, interval in team.intervals} == {10.0}


def test_all_messages_are_shifted_by_the_first() -> None:
    team = cooperation(SETUP, 2, 20.0, work=7.0, first=5.0)
    team.advance(60.0)
    assert [at for at, _query, _interval in team.intervals] == [12.0, 32.0, 52.0]
    assert {interval for _at, _query, interval in team.intervals} == {20.0}


def test_an_adaptive_interval_does_not() -> None:
    team = cooperation(SETUP, 2, 10.0, work=15.0, adaptive=True)
    team.advance(200.0)
    assert team.intervals[-1][2] == 20.0


def test_two_streams_in_turn_are_cut_anywhere() -> None:
    both = Alternating(Zipf(0.0, 50, seed=1), Zipf(1.5, 50, seed=2))
    whole = next(both.blocks(1000, 1000)).tolist()
    assert [key for block in both.blocks(1000, 64) for key in block.tolist()] == whole
    assert whole[::2] == Zipf(0.0, 50, seed=1).take(500).tolist()
    assert whole[1::2] == Zipf(1.5, 50, seed=2).take(500).tolist()


def test_partitioners_apart_are_as_many_as_asked_for() -> None:
    team = apart(SETUP, RIVALS["dagreedy"], 4)
    assert len(team) == 4
    assert not team.synced


@pytest.mark.parametrize("told", [True, False])
def test_partitioners_that_do_not_talk_forward_only_what_they_are_told_of(told: bool) -> None:
    rival, keys = RIVALS["dagreedy"], [Zipf(0.0, 500, seed=1), Zipf(1.5, 500, seed=2)]
    found = together(SETUP, keys, rival, apart(SETUP, rival, 2, told=told), 20_000.0, 100.0)
    assert (found.results == found.keys).all()  # also of the keys that both split
    assert (found.forwarded.sum() > 0) == told


@pytest.mark.parametrize("values", [True, False])
def test_partitioners_may_keep_their_own_values_and_still_learn_what_is_hot(values: bool) -> None:
    team = cooperation(SETUP, 2, 10.0, work=0.0, values=values)
    keys = Zipf(1.5, 50, seed=3).take(4000)
    at = np.arange(len(keys)) % 2
    team.route(keys, np.linspace(0.0, 25.0, len(keys)), at)
    team.advance(30.0)
    first, second = (router.values(0) for router in team.routers)
    assert len(first) == len(second) == 14
    assert np.array_equal(first, second) == values


def test_a_message_takes_longer_the_more_tuples_it_is_about() -> None:
    assert MESSAGE == (FEWER, TUPLES)  # what the benchmark measures
    assert telling(10.0) == SLOWER * MEASURED["tell"]
    assert telling(1.0) == SLOWER * MEASURED["tell of few"]
    assert telling(1.0) < telling(5.0) < telling(10.0) == telling(40.0)
    assert telling(10.0, partitioners=8) < telling(10.0)


def test_messages_are_charged_by_the_interval() -> None:
    spent = []
    for interval in (1.0, 10.0):
        team = cooperation(SETUP, 2, interval, work=0.0)
        team.advance(interval)
        spent.append(team.spent)
    assert spent == [telling(1.0), telling(10.0)]
