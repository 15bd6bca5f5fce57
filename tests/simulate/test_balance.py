from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from skewless import metrics, split
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.simulate.balance import RIVALS, balance_table, balances

BATCHES = [np.random.default_rng(seed).zipf(1.4, 4_000) % 200 for seed in (1, 2)]


@pytest.mark.slow
def test_every_technique_is_measured_on_every_micro_batch() -> None:
    found = balances(BATCHES, 6)
    assert list(found) == ["partly", *RIVALS]
    for i, keys in enumerate(BATCHES):
        blocks = homes(keys, 6)
        assert found["hash"].bsi[i] == pytest.approx(metrics.bsi(blocks, 6) / (len(keys) / 6))
        assert found["hash"].bci[i] == pytest.approx(metrics.bci(keys, blocks, 6))
        assert found["hash"].splits[i] == 0
        prompt = split.Prompt(6).partition(keys)
        assert found["prompt"].ksr[i] == pytest.approx(metrics.ksr(keys, prompt, 6))
        on_several = [key for key in np.unique(keys) if len(np.unique(prompt[keys == key])) > 1]
        assert found["prompt"].splits[i] == len(on_several)


def test_the_best_of_a_column_is_marked() -> None:
    text = io.StringIO()
    Console(file=text, width=140, force_terminal=True).print(balance_table(balances(BATCHES, 6), "clicks"))
    hashed = next(line for line in text.getvalue().splitlines() if "hash" in line)
    assert "\x1b[1m1.000" in hashed  # no technique has fewer fragments


def test_nothing_to_divide_is_refused() -> None:
    for nothing in ([], [np.zeros(0, np.int64)]):
        with pytest.raises(SkewlessError, match="give at least one micro-batch"):
            balances(nothing, 4)
