from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.core.hashing import xxhash64
from skewless.core.ring import Ring

KEYS = np.random.default_rng(7).integers(-(2**63), 2**63 - 1, 20_000)
CHANNELS = st.sets(st.integers(0, 50), min_size=1, max_size=12)


@given(CHANNELS, st.integers(0, 50), st.integers(1, 40))
def test_a_new_channel_takes_keys_and_no_other_key_moves(channels: set[int], new: int, replicas: int) -> None:
    before = Ring(sorted(channels - {new}) or [new + 1], replicas)
    after = Ring([*before.channels, new], replicas)
    was, now = before.route(KEYS), after.route(KEYS)
    moved = was != now
    assert (now[moved] == new).all()
    assert set(now.tolist()) <= set(after.channels)


@given(CHANNELS, st.integers(1, 40))
def test_the_same_channels_route_alike_in_whatever_order_they_come(channels: set[int], replicas: int) -> None:
    ring = Ring(sorted(channels), replicas)
    again = Ring(sorted(channels, reverse=True), replicas)
    assert again == ring
    assert again.route(KEYS).tolist() == ring.route(KEYS).tolist()


@pytest.mark.parametrize("n", [1, 4, 10, 32])
def test_a_new_channel_moves_about_its_share_of_the_keys(n: int) -> None:
    moved = (Ring(n).route(KEYS) != Ring(n + 1).route(KEYS)).mean()
    assert moved == pytest.approx(1 / (n + 1), rel=0.15)


def test_a_thousand_replicas_balance_ten_channels() -> None:
    # a million keys, for the ring's own spread to show and not the sample's
    loads = np.bincount(Ring(10).route(np.arange(1_000_000)), minlength=10)
    assert loads.max() / loads.mean() < 1.1
    assert loads.min() / loads.mean() > 0.9


def test_few_replicas_balance_worse() -> None:
    few, many = (np.bincount(Ring(10, replicas).route(KEYS), minlength=10).max() for replicas in (1, 1000))
    assert few > 1.5 * many


@given(CHANNELS, st.integers(1, 20))
def test_a_key_belongs_to_the_next_point_clockwise(channels: set[int], replicas: int) -> None:
    ring = Ring(sorted(channels), replicas)
    points = {
        int(point) % 2**64: channel
        for channel in ring.channels
        for point in xxhash64(np.full(replicas, channel, np.int32), np.arange(replicas))
    }
    positions = xxhash64(KEYS[:50], seed=0x5EED).view(np.uint64).tolist()
    nearest = [points[min(points, key=lambda point: (point - position) % 2**64)] for position in positions]
    assert ring.route(KEYS[:50]).tolist() == nearest


def walked(ring: Ring, keys: np.ndarray, most: dict[int, int]) -> list[int]:
    """The channel of each key if keys come in the order of the ring, and each goes on until a channel has room."""
    points = sorted(
        (int(point) % 2**64, channel)
        for channel in ring.channels
        for point in xxhash64(np.full(ring.replicas, channel, np.int32), np.arange(ring.replicas))
    )
    positions = xxhash64(keys, seed=0x5EED).view(np.uint64).tolist()
    found, room = {}, dict(most)
    first = {at: next((i for i, (point, _) in enumerate(points) if point >= at), 0) for at in positions}
    wraps = {at: at > points[-1][0] for at in positions}
    for key in sorted(range(len(keys)), key=lambda i: (wraps[positions[i]], first[positions[i]], i)):
        at = first[positions[key]]
        while not room[points[at][1]]:
            at = (at + 1) % len(points)
        found[key] = points[at][1]
        room[points[at][1]] -= 1
    return [found[key] for key in range(len(keys))]


@given(CHANNELS, st.integers(1, 8), st.integers(0, 60))
def test_a_key_whose_channel_is_full_goes_on_clockwise(channels: set[int], replicas: int, count: int) -> None:
    ring = Ring(sorted(channels), replicas)
    least, more = divmod(count, len(channels))
    most = {channel: least + (i < more) for i, channel in enumerate(ring.channels)}
    assert ring.spread(KEYS[:count]).tolist() == walked(ring, KEYS[:count], most)


@given(CHANNELS, CHANNELS, st.integers(1, 20), st.integers(1, 200))
def test_no_more_keys_move_than_the_shares_demand(
    channels: set[int], others: set[int], replicas: int, count: int
) -> None:
    keys = KEYS[:count]
    before = Ring(sorted(channels), replicas).spread(keys)
    after = Ring(sorted(others), replicas).spread(keys, before)
    held = [np.count_nonzero(after == channel) for channel in others]
    assert set(after.tolist()) <= others
    assert max(held) - min(held) <= 1
    least, more = divmod(count, len(others))
    had = sorted((np.count_nonzero(before == channel) for channel in others), reverse=True)
    stay = sum(min(have, least + (i < more)) for i, have in enumerate(had))
    assert np.count_nonzero(before == after) == stay
    if channels < others:
        assert set(after[before != after].tolist()) <= others - channels


def test_few_keys_are_spread_evenly_too() -> None:
    slots = np.arange(256)
    loads = np.bincount(Ring(16).spread(slots), minlength=16)
    assert loads.max() / loads.mean() <= 1.1
    by_the_ring = Ring(16).spread(slots) == Ring(16).route(slots)
    assert by_the_ring.mean() > 0.85  # most are where the ring alone would have them
    assert np.bincount(Ring(16).route(slots)).max() == 22


def test_keys_may_be_of_any_stride_and_size() -> None:
    ring = Ring([3, 5])
    small = np.arange(-50, 50, dtype=np.int16)
    assert ring.route(small[::-3]).tolist() == ring.route(small.astype(np.int64)).tolist()[::-3]
    assert ring.route(np.empty(0, np.int64)).tolist() == []


def test_one_channel_owns_every_key() -> None:
    assert set(Ring([9], replicas=1).route(KEYS).tolist()) == {9}


def test_a_ring_is_a_value_that_does_not_change() -> None:
    ring = Ring(3, replicas=10)
    assert ring == Ring([2, 0, 1], replicas=10) != Ring(3, replicas=11)
    assert hash(ring) == hash(Ring([2, 0, 1], replicas=10))
    assert repr(ring) == "Ring(channels=(0, 1, 2), replicas=10)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        ring.replicas = 4  # type: ignore[misc]  # what the test is about


@pytest.mark.parametrize(
    ("channels", "replicas", "message"),
    [
        (0, 10, "0 has no channels"),
        (-2, 10, "-2 has no channels"),
        ([], 10, "no channels"),
        ([1, 2, 1], 10, "repeat"),
        ([-1, 2], 10, "from -1 to 2"),
        ([2**31], 10, "2147483648"),
        (3, 0, "0 replicas"),
    ],
)
def test_a_ring_that_cannot_be_is_refused(channels: int | list[int], replicas: int, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        Ring(channels, replicas)


@pytest.mark.parametrize("keys", [np.zeros((2, 2), np.int64), np.array([0.5]), np.array([1], np.uint64)])
def test_keys_that_are_not_a_row_of_longs_are_refused(keys: np.ndarray) -> None:
    with pytest.raises(SkewlessError, match=f"keys of {keys.dtype}"):
        Ring(3).route(keys)
