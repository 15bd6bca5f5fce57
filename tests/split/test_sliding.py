"""Slides of a number of tuples and slides that end with calls are the same windows."""

from __future__ import annotations

import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.split import CAM, CM, DAGreedy, Dalton, DChoices
from skewless.workload import Zipf

SLIDE, SLIDES = 500, 4


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (CAM, {"slides": SLIDES}),
        (CM, {"slides": SLIDES}),
        (DAGreedy, {"slides": SLIDES, "stats_window": SLIDE}),
        (Dalton, {"slides": SLIDES, "stats_window": SLIDE}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_slide_ended_after_so_many_tuples_is_a_slide_of_so_many_tuples(kind, options):
    keys = Zipf(1.2, keys=300, seed=3).take(10 * SLIDE)
    counted, called = kind(8, slide=SLIDE, **options), kind(8, slide=None, **options)
    for part in np.split(keys, 10):
        np.testing.assert_array_equal(called.route(part), counted.route(part))
        called.end_slide()


@pytest.mark.parametrize("kind", [DAGreedy, Dalton, DChoices])
def test_after_the_first_slide_of_time_hot_keys_are_those_of_slides_of_tuples(kind):
    keys = Zipf(1.2, keys=300, seed=3).take(3 * SLIDE)
    counted, called = kind(8, slide=SLIDE), kind(8, slide=None)
    for part in np.split(keys, 3):
        counted.route(part)
        called.route(part)
        hot = called.hot_keys
        called.end_slide()
    assert hot == counted.hot_keys > 0


@pytest.mark.parametrize("kind", [CAM, CM, DAGreedy, Dalton, DChoices])
def test_slides_of_tuples_are_not_ended_by_calls(kind):
    with pytest.raises(SkewlessError, match="slides end after 10 tuples; give slide=None to end them yourself"):
        kind(4, slide=10).end_slide()
