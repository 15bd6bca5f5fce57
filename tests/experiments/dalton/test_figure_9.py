"""The gains of clustering are those of rates that repeat themselves; and what the reasons say is computed."""

from __future__ import annotations

from experiments.dalton.clustering import Settled
from experiments.dalton.figure_9 import largest_drawn
from experiments.dalton.rivals import PAPERS
from experiments.dalton.voters import MEMBERS, ONE, PRINTED, clustering_checks
from experiments.figure import Check, Measured


def _settled(rate: float) -> Settled:
    return Settled(Measured(rate, 0.2), 0.99, 0.16, 1.0, 20 * rate)


def _checks(dalton: float) -> list[Check]:
    rates = {name: _settled(10.0) for name in PAPERS}
    rates |= {"cm": _settled(12.0), "dalton": _settled(dalton), PRINTED: _settled(9.0)}
    return list(clustering_checks({MEMBERS: rates, ONE: rates}, {(MEMBERS, 100.0): rates}))


def test_dalton_has_to_beat_the_best_rival_at_the_rate_it_was_routed_at() -> None:
    assert [check.holds for check in _checks(14.0)[:3]] == [True, True, True]
    assert [check.holds for check in _checks(11.0)[:3]] == [False, False, False]
    why = _checks(11.0)[0].why
    assert "over cm, with 12.0 tuples a second against 11.0" in why
    assert "combiner of dalton works 99% of the time and its busiest reducer 16%. A slide has 220 tuples" in why
    assert "if comparing takes 100 times less, the gains are 0.92 to 1.1" in why


def test_clustering_by_the_papers_parameters_is_checked_for_itself() -> None:
    printed = _checks(14.0)[3:]
    assert [check.holds for check in printed] == [False, False, False]
    assert printed[0].essential


def test_the_reason_of_the_largest_gain_with_drawn_exponents_is_computed() -> None:
    rates = dict.fromkeys(PAPERS, 10.0) | {"shuffle": 5.0, "dalton": 15.0}
    phases = {"dalton": [15.0, 15.0], "shuffle": [7.5, 3.0]}
    said = ["s = 0.60", "s = 1.40"], [0.01, 0.3]
    merging = largest_drawn(rates, dict.fromkeys(rates, 15.0), phases, *said)
    assert "over shuffle, 3.00. If partial results cost nothing it would be 1.00, so that merging is what" in merging
    assert "By phase it is 2.00, 5.00; the largest is at s = 1.40, where the hottest key has 30%" in merging
    assert "it is the busiest combiner that makes it slow, and not merging" in largest_drawn(
        rates, rates, phases, *said
    )
