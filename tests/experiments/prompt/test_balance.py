from __future__ import annotations

import numpy as np
import pytest

from experiments.prompt.figure_2_6 import _thrown, imbalances
from experiments.prompt.figure_2_8 import Spread
from experiments.prompt.setting import Setting
from skewless import metrics, split
from skewless.workload import Zipf


def test_imbalances_are_the_means_of_the_costs_of_each_batch() -> None:
    keys = Zipf(1.0, keys=3000).take(30_000)
    found = imbalances(keys, 3, Setting("small", blocks=16, reducers=1), lambda doing: None)
    parts = np.split(keys, 3)
    blocks = [split.Prompt(16).partition(part) for part in parts]
    assert found["prompt"].bsi.mean == pytest.approx(np.mean([metrics.bsi(each, 16) for each in blocks]))
    pairs = list(zip(parts, blocks, strict=True))
    assert found["prompt"].bci.mean == pytest.approx(np.mean([metrics.bci(*pair, 16) for pair in pairs]))
    assert found["prompt"].ksr.mean == pytest.approx(np.mean([metrics.ksr(*pair, 16) for pair in pairs]))
    assert found["hash"].ksr.mean == 1
    assert found["time-based"].bsi.mean < 1


def test_keys_thrown_at_random_deviate_as_chance_does() -> None:
    # The larger of two halves exceeds the mean by sqrt(keys / (2 pi)) on average.
    assert _thrown(10_000, 2) == pytest.approx(np.sqrt(10_000 / (2 * np.pi)), rel=0.2)


def test_spread_tells_micro_batches_and_tasks_apart() -> None:
    spread = Spread(np.array([[1.0, 3.0], [5.0, 7.0]]))
    assert spread.means.tolist() == [2.0, 6.0]
    assert (spread.across, spread.within, spread.width) == (2.0, 1.0, 4.0)
