"""The interval of the synchronisation figure follows the time of its Q-table reducer."""

from __future__ import annotations

import pytest

from experiments.dalton import figure_14


def test_the_interval_doubles_twice_and_comes_back_as_the_reducer_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(figure_14.PHASE, "small", 100.0)
    monkeypatch.setattr(figure_14, "PHASE_FRACTION", 1 / 1024)
    monkeypatch.setattr(figure_14, "SINCE", 60.0)
    intervals, settled, rates = figure_14._adapting("small", lambda doing: None)
    assert settled == [10.0, 20.0, 40.0, 10.0]
    assert [at for at, _interval in intervals] == sorted(at for at, _interval in intervals)
    assert [len(each) for each in rates.values()] == [4, 4, 4]
