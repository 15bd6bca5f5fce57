"""The data sets of the figures against Table 2 of the paper."""

from __future__ import annotations

import pytest

from experiments.dalton.rivals import RIVALS
from experiments.dalton.scaling import SYNTHETIC, by_costs, streams, tables
from experiments.dalton.word_count import Setup


def test_at_full_size_the_streams_have_the_keys_and_top_shares_of_table_2() -> None:
    found = streams(1.0)
    assert [found[name].keys for name in ("T4SA-like", "Elections-like")] == [450_000, 200_000]
    shares = [float(stream.frequencies[0]) for stream in found.values()]
    assert shares == pytest.approx([0.0269, 0.072, 0.3845], rel=0.01)


def test_with_a_part_of_the_keys_the_top_shares_stay() -> None:
    shares = [float(stream.frequencies[0]) for stream in streams(1 / 16).values()]
    assert shares == pytest.approx([0.0269, 0.072, 0.3845], rel=0.01)


def test_gains_are_shown_by_the_costs_of_merging() -> None:
    setup = Setup(64, 1 / 64)
    rivals = {name: RIVALS[name] for name in ("shuffle", "dalton")}
    known = {"shuffle": 4000.0, "dalton": 20_000.0, "hash": 10_000.0}
    costs = by_costs(setup, rivals, streams(setup.fraction)[SYNTHETIC], (66.0, 60.0), known, lambda _: None)
    assert costs[0.5]["shuffle"] > costs[2.0]["shuffle"]
    rates = {SYNTHETIC: {name: [rate] * 4 for name, rate in known.items()}}
    table = tables(rates, {SYNTHETIC: costs})[-1]
    assert [row[0] for row in table.rows] == ["shuffle"]  # hash was not run with other costs
    assert table.rows[0][2] == 5.0
