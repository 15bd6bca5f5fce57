from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.sliding.model import PaperModel, expected
from skewless.chop import BatchModel, Costs, Tuner, choose
from skewless.core.errors import SkewlessError

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40)).map(lambda pair: (max(pair), min(pair)))
COSTS = Costs(update=1.77e-6, open_close=0.0, other=23.2e-6)
SIZES = np.arange(1, 1001)


@given(SHAPES, st.integers(1, 200))
def test_the_papers_count_is_right_in_two_places(shape: tuple[int, int], batch: int) -> None:
    w, s = shape
    exact, paper = (model(w, s, 1.0, 1, COSTS).updates(batch) for model in (BatchModel, PaperModel))
    assert paper == s * batch * (batch + 1) / 2 + (w - s)
    assert np.sign(paper - exact) == np.sign((batch - 1) * (s * (batch + 2) - 2 * w))


def test_without_a_solution_the_backlog_grows_least() -> None:
    model = PaperModel(100, 1, 1e6, 4, COSTS, 0.1)
    choice = choose(model, 0.05, 10.0)
    possible = SIZES[model.waiting(SIZES) + model.running(SIZES) <= 0.05]
    assert not choice.kept
    assert model.excess(choice.batch) == model.excess(possible).min()


def test_the_papers_count_has_a_minimum_between() -> None:
    model = PaperModel(100, 1, 20_000.0, 4, COSTS, 0.1)
    least = int(SIZES[model.excess(SIZES).argmin()])
    assert 1 < least < 1000


def test_the_model_of_the_last_choice_expects_a_throughput_of_every_size() -> None:
    tuner = Tuner(60_000_000, 1_000_000, 4, 5.0, unit=1e-6, period=1.0)
    tuner.tune(0.0, 0)
    tuner.tune(10.0, 10_000)
    tuner.add(100, 1, 100, 1e-3)
    tuner.tune(20.0, 20_000)
    exact, paper = expected(tuner), expected(tuner, paper=True)
    assert exact.shape == paper.shape == (1000,)
    assert (exact[0], exact[1] < paper[1]) == (paper[0], True)


def test_before_a_choice_nothing_is_expected() -> None:
    with pytest.raises(SkewlessError, match="nothing was chosen yet"):
        expected(Tuner(2, 1, 4, 0.5))
