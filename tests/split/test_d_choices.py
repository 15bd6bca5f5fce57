from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.hashing import SEED, xxhash64
from skewless.split import DChoices
from skewless.split.d_choices import TOLERANCE, choices_needed

SHARES = st.lists(st.floats(1e-3, 1.0), max_size=12).map(lambda raw: [x / max(1.0, sum(raw)) for x in raw])


def candidates_of(key: int, workers: int, d: int) -> list[int]:
    return [int(xxhash64(np.array([key]), seed=SEED + j)[0]) % workers for j in range(d)]


def shifting(seed: int) -> list[int]:
    """A skewed stream long enough for slides to leave, whose hot keys change half way."""
    return [int(key) % 40 + 3 * (i > 80) for i, key in enumerate(np.random.default_rng(seed).zipf(1.4, 160))]


def fewest_choices(shares: list[float], n: int) -> int:
    """The inequality of the paper, one prefix after the other."""
    shares = sorted(shares, reverse=True)
    for d in range(2, n):
        for h in range(1, len(shares) + 1):
            b = n - n * ((n - 1) / n) ** (h * d)
            others, tail = sum(shares[h:]), 1 - sum(shares)
            if sum(shares[:h]) + (b / n) ** d * others + (b / n) ** 2 * tail > b * (1 / n + TOLERANCE):
                break
        else:
            return d
    return n


def reference(keys: list[int], workers: int, slide: int, hot_at: float) -> list[int]:
    threshold = max(2, math.ceil(hot_at * slide / workers))
    loads, choices, window, out = [0] * workers, min(2, workers), 0, []
    counts: Counter[int] = Counter()
    hot_until: dict[int, int] = {}
    for i, key in enumerate(keys):
        if i and i % slide == 0:
            choices = fewest_choices([counts[each] / slide for each in hot_until], workers)
            for each in list(hot_until):
                if counts[each] >= threshold:
                    hot_until[each] = window + 1
                elif hot_until[each] == window:
                    del hot_until[each]
            counts.clear()
            window += 1
        counts[key] += 1
        if key not in hot_until and counts[key] >= threshold:
            hot_until[key] = window + 1
        if key in hot_until and choices >= workers:
            among = list(range(workers))
        else:
            among = candidates_of(key, workers, choices if key in hot_until else 2)
        worker = min(among, key=lambda w: loads[w])  # the first of equals
        loads[worker] += 1
        out.append(worker)
    return out


@given(
    st.one_of(st.lists(st.integers(0, 6), max_size=60), st.integers(0, 10**6).map(shifting)),
    st.integers(1, 12),
    st.integers(1, 50),
    st.sampled_from([0.1, 0.5, 1.0]),
)
@settings(max_examples=80)
def test_hot_keys_go_to_the_least_loaded_of_d(keys: list[int], workers: int, slide: int, hot_at: float) -> None:
    splitter = DChoices(workers, slide=slide, hot_at=hot_at, statistics="exact")
    assert splitter.route(np.array(keys, dtype=np.int64)).tolist() == reference(keys, workers, slide, hot_at)


def test_over_a_long_stream_too_d_lies_between_two_and_all() -> None:
    # The first keys of a mild Zipf stream need more than two workers, and fewer than all.
    keys = np.random.default_rng(3).zipf(1.2, 6_000) % 997
    splitter = DChoices(16, slide=1_000, statistics="exact")
    assert splitter.route(keys).tolist() == reference(keys.tolist(), 16, 1_000, 0.2)
    assert 2 < splitter.choices < 16


@given(SHARES, st.integers(1, 40))
def test_the_fewest_choices_are_those_of_the_inequality(shares: list[float], workers: int) -> None:
    assert choices_needed(np.array(shares), workers) == fewest_choices(shares, workers)


def test_without_hot_keys_two_choices_do() -> None:
    assert choices_needed(np.zeros(0), 16) == 2
    assert choices_needed(np.zeros(0), 1) == 1


@pytest.mark.parametrize("workers", [3, 16])
def test_a_key_that_is_everything_needs_all_workers(workers: int) -> None:
    assert choices_needed(np.array([1.0]), workers) == workers


def test_the_order_of_the_shares_does_not_matter() -> None:
    shares = np.array([0.02, 0.3, 0.1])
    assert len({choices_needed(each, 16) for each in (shares, np.sort(shares), np.sort(shares)[::-1])}) == 1


def test_a_hotter_key_needs_no_fewer_choices() -> None:
    needed = [choices_needed(np.array([share]), 32) for share in np.linspace(0.01, 1, 60)]
    assert needed == sorted(needed)
    assert needed[0] == 2 < needed[-1]


def test_a_plan_finds_d_from_the_histogram() -> None:
    seen = Counts(np.array([7, 8]), np.array([1_500, 900]), total=10_000)
    splitter = DChoices(16)
    policy = splitter.plan(seen)
    assert splitter.choices == fewest_choices([0.15, 0.09], 16)
    assert set(policy.lanes_of(7).tolist()) <= set(candidates_of(7, 16, splitter.choices))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slide": 0}, "slide is 0 tuples; give a whole number from 1"),
        ({"hot_at": 0.0}, "hot_at is 0.0; give a share of the fair load from 1e-06 on"),
        ({"hot_at": -1.0}, "hot_at is -1.0; give a share of the fair load from 1e-06 on"),
        ({"statistics": "guess"}, "statistics are 'guess'; choose one of exact, countmin, switch"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        DChoices(4, **options)
