"""Nexmark: people who open auctions and bid on them, the streams by which engines are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.core.arrays import BoolArray, FloatArray, Int64Array
from skewless.core.errors import SkewlessError
from skewless.workload.hot_spot import HotSpot, moved
from skewless.workload.stream import check_lengths

PROPORTIONS = (1, 3, 46)
"""Of every 50 events, those that are persons, auctions and bids."""

FIRST_PERSON, FIRST_AUCTION, FIRST_CATEGORY = 1000, 1000, 10
BATCH = 100  # people, or auctions, of which one is hot
LEAD = 10  # ids that are used before their person or auction has come

_EVENTS = sum(PROPORTIONS)
_CATEGORIES = 5
_CHANNELS = 10_000
_HOT_CHANNELS = ("north", "south", "east", "west")
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = ("Flagstaff", "Fresno", "Pocatello", "Salem", "Tacoma", "Laramie", "Mesa", "Oakland", "Eugene", "Spokane")
_GIVEN = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "June", "Karl")
_FAMILY = ("Abel", "Brook", "Carver", "Dean", "Ellis", "Frost", "Grant", "Hale", "Irving")
_SYLLABLES = ("ba", "co", "du", "fe", "gi", "ka", "lo", "mu", "ne", "pi", "ra", "so", "tu", "ve", "wi", "za")
_TEXTS = 1_000  # different texts of each kind that fill rows up
_BYTES = {"person": 200, "auction": 500, "bid": 100}  # of a row, on average
_FIXED = {"person": 70, "auction": 170, "bid": 75}  # of them, those that are not in `extra`

_UTC = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, eq=False)
class Events:
    """Rows of the three streams, each in the order of its time.

    Parameters
    ----------
    persons
        `id, name, email, credit_card, city, state, ts, extra`.
    auctions
        `id, item, description, initial_bid, reserve, ts, expires, seller, category, extra`; prices are in cents.
    bids
        `auction, bidder, price, channel, url, ts, extra`.
    """

    persons: pa.Table
    auctions: pa.Table
    bids: pa.Table

    def __len__(self) -> int:
        return len(self.persons) + len(self.auctions) + len(self.bids)


@dataclass(frozen=True)
class Nexmark:
    """The three streams of Nexmark, with the proportions and the hot keys of the public generator.

    Of every 50 events one is a new person, three are new auctions and 46 are bids. A bid is for the hot auction with
    probability 1 - 1 / `hot_auctions`, and otherwise for any of those in flight. One auction of every 100 is hot, until
    the next 100 have come, so hot keys change all the time; sellers and bidders have hot ones in the same way. Prices
    are log-uniform from 1 to 10^6 dollars.

    Parameters
    ----------
    rate
        Events in a second.
    hot_auctions, hot_sellers, hot_bidders
        The public generator's ratios: of so many rows, all but one have the hot key; 1 for no hot keys.
    in_flight
        Auctions that a bid may be for, and so many come while an auction is open, on average.
    active
        People who bid and sell.
    hot_spots
        Stretches of time in which a share of the bids is for auctions of some workers, as in AutoFlow's evaluation.
    owner
        The worker of each auction, which `hot_spots` need: a function from ids to workers.
    seed
        The same seed gives the same streams.
    start
        The time of the first event, with a time zone.

    Examples
    --------
    >>> events = Nexmark(seed=1).take(50_000)
    >>> len(events.persons), len(events.auctions), len(events.bids)
    (1000, 3000, 46000)
    >>> bids = events.bids["auction"].to_numpy()
    >>> auctions, rows = np.unique(bids, return_counts=True)
    >>> float(np.sort(rows)[-30:].sum().round() / len(bids)) > 0.5      # 30 auctions were hot, one after the other
    True

    References
    ----------
    P. Tucker, K. Tufte, V. Papadimos, D. Maier: NEXMark, a benchmark for queries over data streams. 2008. The public
    generator is that of the repository nexmark/nexmark; it adds the first person's number twice to bidders, so that
    they are no persons, which is not done here.
    """

    rate: float = 10_000.0
    hot_auctions: int = 2
    hot_sellers: int = 4
    hot_bidders: int = 4
    in_flight: int = 100
    active: int = 1_000
    hot_spots: tuple[HotSpot, ...] = ()
    owner: Callable[[Int64Array], Int64Array] | None = None
    seed: int = 1
    start: datetime = datetime(2026, 1, 1, tzinfo=timezone.utc)

    def __post_init__(self) -> None:
        """Check rates, ratios, the start, and that hot spots have owners."""
        rate: Any = self.rate
        if not isinstance(rate, Real) or not 0 < float(rate) < float("inf"):
            raise SkewlessError(f"rate is {rate!r} events a second; give a number of more than 0")
        least = dict.fromkeys(("hot_auctions", "hot_sellers", "hot_bidders", "in_flight", "active"), 1) | {"seed": 0}
        for name, low in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
                raise SkewlessError(f"{name} is {value!r}; give a whole number of at least {low}")
        start: Any = self.start
        if not isinstance(start, datetime) or start.utcoffset() is None:
            raise SkewlessError(
                f"start is {start!r}; give a time with a time zone, such as datetime(2026, 1, 1, tzinfo=timezone.utc)"
            )
        if self.hot_spots and self.owner is None:
            raise SkewlessError("hot spots are auctions of some workers: give owner=, the worker of each auction")

    def blocks(self, n: int, block: int = 1_000_000) -> Iterator[Events]:
        """The first `n` events, at most `block` of them at a time."""
        check_lengths(n, block)
        # A generator for each stream, and as many numbers for each of its rows: the same however it is cut into blocks.
        people, auctions, bids = (np.random.default_rng([self.seed, kind]) for kind in range(3))
        for first in range(0, n, block):
            event = np.arange(first, min(first + block, n))
            kind = np.searchsorted(np.cumsum(PROPORTIONS), event % _EVENTS, side="right")
            each = [event[kind == which] for which in range(3)]
            yield Events(
                self._persons(each[0], people.random((len(each[0]), 8))),
                self._auctions(each[1], auctions.random((len(each[1]), 9))),
                self._bids(each[2], bids.random((len(each[2]), 10))),
            )

    def take(self, n: int) -> Events:
        """The first `n` events."""
        return next(self.blocks(n, max(n, 1)), None) or self._nothing()

    def _nothing(self) -> Events:
        none = np.zeros(0, np.int64)
        return Events(
            self._persons(none, np.zeros((0, 8))),
            self._auctions(none, np.zeros((0, 9))),
            self._bids(none, np.zeros((0, 10))),
        )

    def _persons(self, event: Int64Array, draws: FloatArray) -> pa.Table:
        given, family, mail, host, card, city, state, extra = draws.T
        names = pa.array([f"{one} {other}" for one in _GIVEN for other in _FAMILY])
        cards = np.char.mod("%016d", (card * 10**16).astype(np.int64))
        return pa.table(
            {
                "id": _last_person(event) + FIRST_PERSON,
                "name": names.take(pa.array(_below(given, len(_GIVEN)) * len(_FAMILY) + _below(family, len(_FAMILY)))),
                "email": _joined(_words(_below(mail, 4096)), "@", _words(_below(host, 4096)), ".com"),
                "credit_card": pa.array(cards.tolist(), pa.string()),
                "city": _chosen(_CITIES, city),
                "state": _chosen(_STATES, state),
                "ts": self._times(event),
                "extra": _filling("person", extra),
            }
        )

    def _auctions(self, event: Int64Array, draws: FloatArray) -> pa.Table:
        hot, seller, category, bid, reserve, length, item, description, extra = draws.T
        last = _last_person(event)
        initial = _price(bid)
        sellers = np.where(_is_hot(hot, self.hot_sellers), last // BATCH * BATCH, self._any_person(last, seller))
        open_for = 2 * self.in_flight * _EVENTS / PROPORTIONS[1] / self.rate  # seconds, at most
        microseconds = self._microseconds(event)
        expires = microseconds + 1000 + (length * open_for * 1e6).astype(np.int64)
        return pa.table(
            {
                "id": _last_auction(event) + FIRST_AUCTION,
                "item": _joined(_words(_below(item, 4096)), " ", _words(_below(item * 4096 % 1, 4096)), ""),
                "description": _filling("description", description),
                "initial_bid": initial,
                "reserve": initial + _price(reserve),
                "ts": pa.array(microseconds).cast(_UTC),
                "expires": pa.array(expires).cast(_UTC),
                "seller": sellers + FIRST_PERSON,
                "category": FIRST_CATEGORY + _below(category, _CATEGORIES),
                "extra": _filling("auction", extra),
            }
        )

    def _bids(self, event: Int64Array, draws: FloatArray) -> pa.Table:
        hot, auction, hot_bidder, bidder, price, hot_channel, channel, spot, spotted, extra = draws.T
        last, person = _last_auction(event), _last_person(event)
        low = np.maximum(last - self.in_flight, 0)
        any_auction = low + (auction * (last - low + 1 + LEAD)).astype(np.int64)
        auctions = np.where(_is_hot(hot, self.hot_auctions), last // BATCH * BATCH, any_auction) + FIRST_AUCTION
        if self.owner is not None and self.hot_spots:
            live = low + FIRST_AUCTION, last + FIRST_AUCTION
            auctions = moved(self.hot_spots, event / self.rate, auctions, live, (spot, spotted), self.owner)
        # The second of a batch of people, so that hot bidders are not hot sellers.
        bidders = np.where(
            _is_hot(hot_bidder, self.hot_bidders), person // BATCH * BATCH + 1, self._any_person(person, bidder)
        )
        few = _is_hot(hot_channel, 2)
        number = np.where(few, _below(channel, len(_HOT_CHANNELS)), len(_HOT_CHANNELS) + _below(channel, _CHANNELS))
        return pa.table(
            {
                "auction": auctions,
                "bidder": bidders + FIRST_PERSON,
                "price": _price(price),
                "channel": _CHANNEL_NAMES.take(pa.array(number)),
                "url": _CHANNEL_URLS.take(pa.array(number)),
                "ts": self._times(event),
                "extra": _filling("bid", extra),
            }
        )

    def _any_person(self, last: Int64Array, draw: FloatArray) -> Int64Array:
        """Any of the active people, or one of the few that are still to come."""
        people = last + 1
        active = np.minimum(people, self.active)
        chosen: Int64Array = people - active + (draw * (active + LEAD)).astype(np.int64)
        return chosen

    def _microseconds(self, event: Int64Array) -> Int64Array:
        start = round(self.start.timestamp() * 1e6)
        return start + (event * (1e6 / self.rate)).astype(np.int64)

    def _times(self, event: Int64Array) -> pa.Array:
        return pa.array(self._microseconds(event)).cast(_UTC)


def _last_person(event: Int64Array) -> Int64Array:
    """The person that came last, counted from 0; its own number for a person."""
    return event // _EVENTS * PROPORTIONS[0] + np.minimum(event % _EVENTS, PROPORTIONS[0] - 1)


def _last_auction(event: Int64Array) -> Int64Array:
    """The auction that came last, counted from 0; its own number for an auction."""
    since = np.clip(event % _EVENTS - PROPORTIONS[0], -1, PROPORTIONS[1] - 1)
    return event // _EVENTS * PROPORTIONS[1] + since


def _is_hot(draw: FloatArray, ratio: int) -> BoolArray:
    hot: BoolArray = draw >= 1 / ratio
    return hot


def _below(draw: FloatArray, n: int) -> Int64Array:
    return (draw * n).astype(np.int64)


def _price(draw: FloatArray) -> Int64Array:
    """In cents."""
    return np.round(10 ** (6 * draw) * 100).astype(np.int64)


def _chosen(values: Sequence[str], draw: FloatArray) -> pa.Array:
    return pa.array(values).take(pa.array(_below(draw, len(values))))


def _words(number: Int64Array) -> pa.Array:
    """A word of three syllables for each number below 4096."""
    return _WORDS.take(pa.array(number))


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*(pa.scalar(part) if isinstance(part, str) else part for part in parts), "")


def _filling(kind: str, draw: FloatArray) -> pa.Array:
    """Texts that make rows as long as the benchmark's, within a fifth."""
    return _FILLINGS[kind].take(pa.array(_below(draw, _TEXTS)))


def _texts(length: float, seed: int) -> pa.Array:
    rng = np.random.default_rng(seed)
    syllables = np.array(_SYLLABLES)
    lengths = np.round(length * (0.8 + 0.4 * rng.random(_TEXTS)) / 2).astype(int)
    return pa.array(["".join(syllables[rng.integers(0, len(syllables), n)]) for n in lengths])


def _channel(number: int) -> str:
    return _HOT_CHANNELS[number] if number < len(_HOT_CHANNELS) else f"channel-{number - len(_HOT_CHANNELS)}"


_WORDS = pa.array([one + two + three for one in _SYLLABLES for two in _SYLLABLES for three in _SYLLABLES])
_FILLINGS = {kind: _texts(_BYTES[kind] - _FIXED[kind], seed) for seed, kind in enumerate(_BYTES)}
_FILLINGS["description"] = _texts(100, 3)
_CHANNEL_NAMES = pa.array([_channel(number) for number in range(len(_HOT_CHANNELS) + _CHANNELS)])
_CHANNEL_URLS = pa.array([f"https://auctions.example/{name}/item.htm?query=1" for name in _CHANNEL_NAMES.to_pylist()])
