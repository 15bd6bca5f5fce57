"""The interval of the synchronisation figure follows the time of its Q-table reducer."""

from __future__ import annotations

import pytest

from experiments.dalton import adapting, figure_14
from experiments.dalton.word_count import THIRDS, Setup
from experiments.figure import Measured
from skewless.workload import Zipf


def test_the_interval_doubles_twice_and_comes_back_as_the_reducer_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(adapting.PHASE, "small", 200.0)
    monkeypatch.setattr(adapting, "FRACTION", 1 / 1024)
    monkeypatch.setattr(adapting, "SINCE", 60.0)
    intervals, settled, rates = adapting.rates("small", lambda doing: None)
    assert settled == [10.0, 20.0, 40.0, 10.0]
    assert [at for at, _interval in intervals] == sorted(at for at, _interval in intervals)
    assert [len(each) for each in rates.values()] == [4, 4, 4]


def test_a_threshold_of_all_sources_is_as_high_as_twice_that_of_one() -> None:
    sources = Zipf(0.0, 3000, seed=1), Zipf(1.5, 3000, seed=2)
    found = figure_14.by_threshold(Setup(64, 1 / 32, THIRDS), sources)
    both, own, twice, half = (found[name][0] - 1 for name in figure_14.THRESHOLDS)
    assert both == pytest.approx(twice, rel=0.2)
    assert half == pytest.approx(own, rel=0.3)
    assert max(half, own) < 0.75 * min(both, twice)


def test_the_adaptive_interval_is_compared_with_the_best_fixed_one() -> None:
    isolated = dict.fromkeys(adapting.ISOLATED, Measured(100.0, 1.0))

    def value(adaptive: float) -> float:
        paces = {adapting.ADAPTIVE: adaptive, "fixed, 10 s": 90.0, "fixed, 20 s": 110.0}
        rates = {name: [Measured(rate, 1.0)] * 4 for name, rate in paces.items()}
        return adapting.check(rates, isolated).value

    assert value(100.0) == pytest.approx(100 / 110)
    assert value(121.0) == pytest.approx(1.1)
