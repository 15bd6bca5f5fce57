"""The gains of clustering are those of rates at which tuples were routed."""

from __future__ import annotations

from experiments.dalton.figure_9 import CLUSTERS, MEMBERS, clustering_checks
from experiments.dalton.rivals import PAPERS
from experiments.figure import Check, Measured


def _checks(dalton: float) -> list[Check]:
    rates = {name: Measured(10.0, 0.2) for name in PAPERS} | {
        "cm": Measured(12.0, 0.2),
        "dalton": Measured(dalton, 0.2),
    }
    return list(clustering_checks({MEMBERS: rates, CLUSTERS: rates}))


def test_dalton_has_to_beat_the_best_rival_at_the_rate_it_was_routed_at() -> None:
    assert [check.holds for check in _checks(15.0)] == [True, True, True]
    assert [check.holds for check in _checks(11.0)] == [False, False, True]
    assert "over cm, with 12.0 tuples a second against 11.0" in _checks(11.0)[0].why
