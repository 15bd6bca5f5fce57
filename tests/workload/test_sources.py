from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.workload import Sources, Zipf, zipf_sources


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 2000), st.integers(1, 2500))
def test_the_stream_does_not_depend_on_the_block(n: int, block: int) -> None:
    stream = zipf_sources(3, s=1.0, keys=100)
    keys, sources = (np.concatenate(column) for column in zip(*stream.blocks(n, block), strict=True))
    np.testing.assert_array_equal(keys, stream.take(n)[0])
    np.testing.assert_array_equal(sources, stream.take(n)[1])


def test_each_source_has_hot_keys_of_its_own() -> None:
    keys, sources = zipf_sources(4, s=1.5, keys=1000).take(200_000)
    hot = [set(np.argsort(np.bincount(keys[sources == source], minlength=1000))[-10:].tolist()) for source in range(4)]
    assert len(set.union(*hot)) == 40


def test_each_source_follows_its_distribution() -> None:
    parts = [Zipf(0.0, keys=50), Zipf(1.5, keys=50)]
    keys, sources = Sources(parts, seed=9).take(200_000)
    for source, part in enumerate(parts):
        seen = np.bincount(keys[sources == source], minlength=50)
        expected = part.frequencies * seen.sum()
        assert ((seen - expected) ** 2 / expected).sum() < 49 + 5 * (2 * 49) ** 0.5


def test_sources_come_at_their_rates() -> None:
    _, sources = Sources([Zipf(1.0)] * 3, rates=[1, 2, 5]).take(80_000)
    np.testing.assert_allclose(np.bincount(sources) / 80_000, [1 / 8, 2 / 8, 5 / 8], atol=0.01)
    assert sources.dtype == np.int32


def test_sources_are_interleaved() -> None:
    _, sources = zipf_sources(2, s=1.0).take(10_000)
    assert 4500 < np.count_nonzero(np.diff(sources)) < 5500


def test_a_seed_is_a_stream() -> None:
    first, again, other = (zipf_sources(2, s=1.0, seed=seed).take(1000)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_what_is_no_set_of_sources_is_refused() -> None:
    with pytest.raises(SkewlessError, match="at least 1 source"):
        Sources([])
    with pytest.raises(SkewlessError, match="2 sources need as many rates"):
        Sources([Zipf(1.0), Zipf(1.0)], rates=[1])
    with pytest.raises(SkewlessError, match="each above 0"):
        Sources([Zipf(1.0)], rates=[0])
    with pytest.raises(SkewlessError, match="1 to 10"):
        zipf_sources(11, s=1.0, keys=10)
    with pytest.raises(SkewlessError, match="at least 0, not -1"):
        zipf_sources(1, s=1.0).take(-1)
