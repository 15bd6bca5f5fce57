"""The chosen costs say what the paper says of its cluster."""

from __future__ import annotations

import pytest

from experiments.costs import work


def test_a_word_count_of_64_threads_peaks_at_40_000_tuples_a_second() -> None:
    assert 56 / work(windows=60).tuple == pytest.approx(40_000)


def test_with_slides_of_20_seconds_one_partitioner_is_a_bottleneck_and_two_are_not() -> None:
    costs = work(windows=3)
    combiners = 56 / costs.tuple
    assert 1 / costs.route < combiners < 2 / costs.route


def test_a_fraction_of_the_stream_keeps_servers_as_busy() -> None:
    whole, part = work(windows=60), work(windows=60, fraction=0.25)
    for name in ("route", "tuple", "emit", "partial", "key"):
        assert 0.25 * getattr(part, name) == pytest.approx(getattr(whole, name))


def test_merging_changes_only_what_follows_the_combining_of_tuples() -> None:
    once, twice = work(windows=60), work(windows=60, merging=2)
    assert (twice.route, twice.tuple) == (once.route, once.tuple)
    assert (twice.emit, twice.partial, twice.key) == (2 * once.emit, 2 * once.partial, 2 * once.key)
