"""Rates of word counts against what the costs alone say."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.costs import work
from experiments.dalton.rivals import BATCHED, RIVALS
from experiments.dalton.word_count import (
    THIRDS,
    Setup,
    about,
    at_rate,
    capacity,
    gain_checks,
    gains,
    printed_checks,
    sustained,
)
from skewless.simulate import Recorded
from skewless.workload import Zipf

FRACTION = 1 / 32
KEYS = Zipf(1.0, 3000)


def test_one_in_eight_threads_reduces_unless_no_key_is_split() -> None:
    shuffled, hashed = (Setup(64, FRACTION).cluster(RIVALS[name]) for name in ("shuffle", "hash"))
    assert (shuffled.combiners, shuffled.reducers) == (56, 8)
    assert hashed.combiners == 64


def test_if_merging_is_free_shuffling_sustains_what_its_combiners_do() -> None:
    rate = sustained(Setup(16, FRACTION, merging=0.0), RIVALS["shuffle"], KEYS, 70.0, 60.0)
    assert rate == pytest.approx(14 / work(windows=60).tuple, rel=0.02)


def test_hashing_one_key_does_what_one_worker_does() -> None:
    setup = Setup(16, FRACTION, merging=0.0)
    found = at_rate(setup, RIVALS["hash"], Recorded(np.array([7])), 5000.0, 10.0)
    assert capacity(found, FRACTION, 0.0, 10.0) == pytest.approx(1 / work(windows=60).tuple)


def test_capacity_looks_at_the_time_between() -> None:
    keys = np.concatenate([np.full(1000, 7), np.arange(1000)])  # one key, then many
    setup = Setup(16, 1.0, merging=0.0)
    found = at_rate(setup, RIVALS["hash"], Recorded(keys), 100.0, 20.0)
    one = 1 / work(windows=60).tuple
    assert capacity(found, 1.0, 0.0, 10.0) == pytest.approx(one)
    assert capacity(found, 1.0, 10.0, 20.0) > 8 * one


@pytest.mark.parametrize("name", RIVALS)
def test_every_algorithm_gives_each_key_one_result_also_where_keys_are_forwarded(name: str) -> None:
    # The simulator refuses to forward a key that has been split without being hot.
    found = at_rate(Setup(16, FRACTION, THIRDS), RIVALS[name], KEYS, 20_000.0, 100.0)
    assert (found.results == found.keys).all()
    assert (found.forwarded.sum() > 0) == RIVALS[name].forwards


@pytest.mark.parametrize("name", BATCHED)
def test_micro_batches_forward_nothing(name: str) -> None:
    found = at_rate(Setup(16, FRACTION, batches=True), BATCHED[name], KEYS, 20_000.0, 4.0)
    assert found.forwarded.sum() == 0
    assert (found.partials > 0).all()


def test_a_loser_holds_no_check_of_who_wins() -> None:
    lost = gain_checks("here", gains({"dalton": 1.0, "hash": 2.0, "cm": 1.0}, ("hash", "cm")), (1.5, 6.0))
    assert [check.holds for check in lost] == [False, False, False]
    won = gain_checks("here", gains({"dalton": 6.0, "hash": 1.0, "cm": 4.0}, ("hash", "cm")), (1.5, 6.0))
    assert [check.holds for check in won] == [True, True, True]


def test_a_loss_is_never_about_the_gain_of_the_paper() -> None:
    lost = gain_checks("here", (0.95, 0.98), (1.1, 1.8))
    assert [check.holds for check in lost] == [False, False, False]
    won = gain_checks("here", (1.06, 1.5), (1.1, 1.8))
    assert [check.holds for check in won] == [True, True, True]


def test_a_gain_is_about_the_papers_if_it_exceeds_1_by_half_to_twice_as_much() -> None:
    assert about(1.4) == (1.2, 1.8)
    hardly = gain_checks("here", (1.04, 1.3), (1.4, 3.4))  # wins, and by a tenth of what the paper gains
    assert [check.holds for check in hardly] == [True, False, False]
    far = gain_checks("here", (2.0, 6.0), (1.4, 3.4))
    assert [check.holds for check in far] == [True, False, False]


def test_each_check_of_a_gain_has_the_reason_that_explains_it() -> None:
    checks = gain_checks("here", (0.9, 9.0), (1.4, 3.4), "a loss", "hash", why_about="not so much")
    assert [check.why for check in checks] == ["a loss", "not so much", "hash"]


def test_the_papers_parameters_are_checked_for_themselves() -> None:
    rates = {"dalton": 12.0, "dalton as printed": 9.0, "hash": 6.0, "dagreedy": 10.0}
    checks = printed_checks("here", rates, ("hash", "dagreedy"), (1.3, 1.6), "Hash is slow.")
    assert [check.essential for check in checks] == [True, False, False]
    assert [check.holds for check in checks] == [False, False, True]
    assert all("dalton with the paper's parameters" in check.name for check in checks)
    assert "9 tuples a second, and the best rival, dagreedy, 10. With our defaults" in checks[0].why
