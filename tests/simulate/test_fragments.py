"""Fragments of a sliding window, against sets of what each slide brought."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.hashing import xxhash64
from skewless.simulate.fragments import Fragments


@settings(max_examples=100)
@given(
    slides=st.lists(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), max_size=30), min_size=1, max_size=8),
    length=st.integers(1, 4),
    reducers=st.integers(1, 3),
)
def test_the_window_is_that_of_sets(slides, length, reducers):
    fragments = Fragments(4, reducers, length)
    for number, brought in enumerate(slides):
        keys, workers = (np.array(brought, dtype=np.int64).reshape(-1, 2)).T
        fragments.add(np.ascontiguousarray(keys), workers.astype(np.int32))
        window = {pair for slide in slides[max(0, number - length + 1) : number + 1] for pair in slide}
        live = np.zeros((4, reducers), dtype=int)
        for key, worker in window:
            live[worker, xxhash64([key])[0] % reducers] += 1
        np.testing.assert_array_equal(fragments.live, live)
        distinct = {key for key, _ in window}
        assert fragments.live_keys.sum() == len(distinct)
        held = fragments.held(np.arange(-9, 10))
        assert {(key - 9, worker) for key, worker in zip(*held.nonzero(), strict=True)} == window
        fragments.end_slide()


def test_many_keys_outgrow_the_tables_and_old_ones_make_room():
    fragments = Fragments(2, 1, slides=2)
    for slide in range(6):
        keys = np.arange(5000) + 5000 * slide
        fragments.add(np.repeat(keys, 2), np.tile(np.array([0, 1], dtype=np.int32), 5000))
        expected = 5000 * min(2, slide + 1)
        assert fragments.live.sum(axis=1).tolist() == [expected, expected]
        assert fragments.live_keys.tolist() == [expected]
        fragments.end_slide()
    assert len(fragments.state.keys) <= 1 << 16
