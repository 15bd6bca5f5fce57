"""Whether the throughput is best with 4 hot keys, and falls with more."""

from __future__ import annotations

import pytest

from experiments.dalton.figure_10 import HOT, throughput_checks, why_rates
from experiments.dalton.hot_keys import Routed


@pytest.mark.parametrize(
    ("at_4", "at_8", "rest", "holds"),
    [
        (100.0, 90.0, 80.0, [True, True]),
        (100.0, 101.0, 80.0, [True, True]),  # rates are found to 2 %
        (100.0, 125.0, 80.0, [False, True]),  # 8 hot keys are clearly better
        (100.0, 99.0, 99.0, [True, False]),  # more hot keys lower nothing
    ],
)
def test_four_hot_keys_are_best_and_more_are_worse(at_4: float, at_8: float, rest: float, holds: list[bool]) -> None:
    rates = [50.0, 60.0, at_4, at_8, *[rest] * (len(HOT) - 4)]
    assert [check.holds for check in throughput_checks("60 s by 1 s", rates, "")] == holds
    assert all(check.essential for check in throughput_checks("60 s by 1 s", rates, ""))


def test_the_reason_has_the_error_of_a_rate_and_of_how_far_rates_are_apart() -> None:
    by_seed = [[80.0] * 2 + [each, best] + [60.0] * 4 for each, best in ((90.0, 95.0), (110.0, 125.0))]
    why = why_rates(by_seed, {4: 1.0, 8: 1.0, 600: 1.0}, [Routed(each, 1.0, 1.0, 1.0) for each in HOT])
    assert "100 (± 10) with 4, 110 (± 15) with 8" in why
    assert "that with 4 is -10 (± 5) above that with 8 and 40 (± 10) above that with 600" in why
