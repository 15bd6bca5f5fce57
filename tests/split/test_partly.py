from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless import metrics, split
from skewless.core.counts import Counts
from skewless.core.errors import SkewlessError
from skewless.core.home import homes
from skewless.split.partly import place
from skewless.split.ways import PARTS, SHARES, pieces
from skewless.split.weights import FORMAT, LAYERS, Weights
from skewless.workload import Zipf

SHIPPED = Weights.load()


def batch(exponent: float, keys: int, seed: int, tuples: int = 60_000) -> np.ndarray:
    return next(Zipf(exponent, keys, seed).blocks(tuples, tuples))


def random_weights(seed: int, hidden: int = 8) -> Weights:
    rng = np.random.default_rng(seed)
    return Weights({name: rng.normal(size=SHIPPED[name].shape).astype(np.float32) for name in SHIPPED.layers}, {})


def plainly(weights: Weights, keys: np.ndarray, counts: np.ndarray, blocks: int, hot: int) -> list[tuple]:
    """The same in plain Python: what the network sees of every block, its scores, and the best that is allowed."""
    tail = np.bincount(homes(keys[hot:], blocks), counts[hot:], blocks).astype(np.int64)
    which, sizes = pieces(counts[:hot], blocks, tail)
    capacity = max(1.0, counts.sum() / blocks)
    load = {b: tail[b] / capacity for b in range(blocks)}
    held = {b: [("tail", k) for k in keys[hot:][homes(keys[hot:], blocks) == b]] for b in range(blocks)}
    order, done = list(range(blocks)), []
    distinct, extra = len(counts), 0.0
    for i, (key, size) in enumerate(zip(which.tolist(), sizes.tolist(), strict=True)):
        order.sort(key=lambda b: load[b])
        first = i == 0 or which[i - 1] != key
        keys_left = len(set(which[i:].tolist())) - (not first)
        now, left = size / capacity, sizes[i:].sum() / capacity
        room, fair = max(left / blocks, 1e-6), (distinct + extra) / blocks
        block_rows = []
        for rank, b in enumerate(order):
            fits = []
            for way in range(len(SHARES)):
                touched = order[rank : rank + PARTS[way]]
                enough = len(touched) == PARTS[way]
                least = min(1 - load[t] - share * now for t, share in zip(touched, SHARES[way], strict=False))
                fits.append(least / room if enough else -3)
            seats = (fair - len(held[b])) / max(keys_left / blocks, 1)
            known = float(not first and key in held[b])
            block_rows.append(np.clip([*fits, (1 - load[b]) / room, seats, known, rank / blocks], -3, 3))
        next_size = sizes[i + 1] / capacity if i + 1 < len(sizes) else 0.0
        rooms = [1 - load[b] for b in order]
        key_row = [
            min(5, now),
            min(10, now / room) / 3,
            np.log10(room) / 3,
            keys_left / max(len(set(which.tolist())), 1),
            np.log10(1 + keys_left / blocks),
            min(5, next_size / max(now, 1e-9)),
            np.clip(rooms[0] / room, 0, 6) / 3,
            np.clip(rooms[-1] / room, -6, 1) / 3,
            min(4, extra / blocks),
            1 / np.sqrt(blocks),
        ]
        w = weights
        hidden = np.array(block_rows) @ w["block"] + w["block_bias"] + np.array(key_row) @ w["key"] + w["key_bias"]
        hidden = np.maximum(np.maximum(hidden, 0) @ w["mid"] + w["mid_bias"], 0)
        scores = hidden @ w["out"] + w["out_bias"]
        piece = (which == key).sum() > 1
        for rank in range(blocks):
            for way in range(len(SHARES)):
                least_share = SHARES[way][SHARES[way] > 0].min()
                if rank + PARTS[way] > blocks or (way and (size * least_share < 1 or piece)):
                    scores[rank, way] = -np.inf
        rank, way = np.unravel_index(scores.argmax(), scores.shape)
        ends = [0, *np.floor(size * np.cumsum(SHARES[way])[: PARTS[way] - 1] + 0.5), size]
        for b, tuples in zip(order[rank : rank + PARTS[way]], np.diff(ends), strict=True):
            load[b] += tuples / capacity
            extra += key not in held[b]
            held[b] += [key] * (key not in held[b])
            done.append((key, b, int(tuples)))
        extra -= first
    merged: dict[tuple[int, int], int] = {}
    for key, b, tuples in done:
        merged[key, b] = merged.get((key, b), 0) + tuples
    return sorted((key, b, tuples) for (key, b), tuples in merged.items())


@given(
    counts=st.lists(st.integers(1, 3_000).map(lambda c: c if c % 3 else c // 40 + 1), min_size=1, max_size=25),
    blocks=st.integers(1, 9),
    hot=st.integers(1, 30),
    seed=st.integers(0, 30),
)
@settings(max_examples=40)
def test_the_kernel_places_as_plain_python_does(counts: list[int], blocks: int, hot: int, seed: int) -> None:
    weights = random_weights(seed) if seed else SHIPPED
    sizes = np.sort(np.array(counts, np.int64))[::-1].copy()
    keys = np.arange(len(sizes)) * 7919
    fragments = place(weights, keys, sizes, blocks, hot, None)
    assert sorted(zip(*(column.tolist() for column in fragments), strict=True)) == plainly(
        weights, keys, sizes, blocks, hot
    )


@given(
    counts=st.lists(st.integers(1, 5_000), min_size=1, max_size=60),
    blocks=st.integers(1, 40),
    hot=st.integers(1, 80),
)
@settings(max_examples=40)
def test_every_tuple_has_a_block_whatever_the_number_of_keys_and_blocks(
    counts: list[int], blocks: int, hot: int
) -> None:
    keys = np.repeat(np.arange(len(counts)), counts)
    out = split.PartLy(blocks, hot=hot).partition(keys)
    assert len(out) == len(keys)
    assert out.min() >= 0
    assert out.max() < blocks


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("keys", [300, 2_000])
def test_blocks_are_nearly_as_even_as_those_of_prompt_and_hold_as_few_keys_as_those_of_hash(
    exponent: float, keys: int
) -> None:
    stream = batch(exponent, keys, seed=77)
    blocks, prompt = split.PartLy(24).partition(stream), split.Prompt(24).partition(stream)
    assert metrics.bsi(blocks, 24) <= 1.1 * metrics.bsi(prompt, 24) + 0.02 * len(stream) / 24
    assert metrics.bci(stream, blocks, 24) <= metrics.bci(stream, homes(stream, 24), 24)


def test_a_plan_balances_the_tail_too() -> None:
    stream = batch(1.2, 3_000, seed=5)
    told = Counts.of(stream, told=200)
    policy = split.PartLy(16).plan(Counts(told.keys, told.counts, told.total))
    loads = np.bincount(policy.route(stream), minlength=16)
    assert loads.max() < 1.15 * loads.mean()
    assert loads.max() < np.bincount(homes(stream, 16)).max() / 2


def test_keys_beyond_the_hot_ones_stay_at_home() -> None:
    stream = batch(1.0, 500, seed=6)
    seen = Counts.of(stream)
    policy = split.PartLy(8, hot=20).plan(seen)
    assert set(policy.keys.tolist()) <= set(seen.keys[:20].tolist())


def test_a_policy_of_ones_own_is_followed(tmp_path: Path) -> None:
    random_weights(3).save(tmp_path / "mine.npz")
    stream = batch(1.0, 200, seed=8)
    mine = split.PartLy(8, weights=tmp_path / "mine.npz")
    assert mine.partition(stream).tolist() != split.PartLy(8).partition(stream).tolist()
    assert mine.again(workers=4).partition(stream).max() == 3


def test_the_shipped_file_is_small_and_says_how_it_was_made() -> None:
    assert (Path(split.__file__).parent / "partly.npz").stat().st_size < 1_000_000
    assert SHIPPED.made["command"].startswith("python -m experiments.partly.shipped")
    assert "seed" in SHIPPED.made
    assert "means of the last 10" in SHIPPED.made["curve"]


class Harmful:
    def __reduce__(self) -> tuple:
        return Path.touch, (Path("harmed"),)


def spoiled(path: Path, **changes: np.ndarray | None) -> Path:
    arrays = dict(SHIPPED.layers) | {"format": np.array(FORMAT), "made": np.array("{}")} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": np.array("other-3")}, "its format is other-3, not skewless-partly-1"),
        ({"format": None}, "its format is not said"),
        ({"mid": None}, "its hidden layer is 0 wide"),
        ({"out": None}, "out is missing"),
        ({"key": np.zeros((3, 3), np.float32)}, "key is float32 of shape (3, 3)"),
        ({"block": SHIPPED["block"].astype(np.float64)}, "block is float64"),
        ({"out_bias": np.full(9, np.nan, np.float32)}, "out_bias has values that are no numbers"),
        ({"made": np.array("no json")}, "it does not say how it was made"),
        ({"made": np.array("[" * 200_000)}, "it does not say how it was made"),
    ],
)
def test_a_foreign_file_is_refused_in_words(tmp_path: Path, changes: dict, said: str) -> None:
    path = spoiled(tmp_path / "mine.npz", **changes)
    with pytest.raises(SkewlessError) as caught:
        split.PartLy(8, weights=path)
    assert str(caught.value).startswith(f"{path} is no file of PartLy's weights (")
    assert said in str(caught.value)
    assert "train one with skewless learn --out" in str(caught.value)


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pickled.npz").write_bytes(pickle.dumps(Harmful()))
    np.save(tmp_path / "objects.npy", np.array([Harmful()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "inside.npz", mid=np.array([Harmful()], dtype=object))
    for name in ("pickled.npz", "objects.npy", "inside.npz"):
        with pytest.raises(SkewlessError, match="is no file of PartLy's weights") as caught:
            split.PartLy(8, weights=tmp_path / name)
        assert "unsafely" not in str(caught.value)  # nobody is advised to unpickle it
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, part: float) -> None:
    SHIPPED.save(tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "mine.npz").write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(SkewlessError, match="is no file of PartLy's weights"):
        split.PartLy(8, weights=tmp_path / "mine.npz")
    middle = len(whole) // 2
    (tmp_path / "mine.npz").write_bytes(whole[:middle] + bytes(40) + whole[middle + 40 :])
    with pytest.raises(SkewlessError, match="is no file of PartLy's weights"):
        split.PartLy(8, weights=tmp_path / "mine.npz")


def test_wherever_a_byte_is_wrong_a_file_is_read_as_it_was_or_refused_in_words(tmp_path: Path) -> None:
    SHIPPED.save(tmp_path / "mine.npz")
    whole, said = (tmp_path / "mine.npz").read_bytes(), set()
    with zipfile.ZipFile(tmp_path / "mine.npz") as archive:
        starts = [member.header_offset for member in archive.infolist()]
    for at in {*range(0, len(whole), 61), *(start + more for start in starts for more in range(0, 130, 7))}:
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        (tmp_path / "mine.npz").write_bytes(damaged)
        try:
            found = Weights.load(tmp_path / "mine.npz")
        except SkewlessError as error:
            said.add(str(error).split("(")[1][:20])
        else:
            assert all((found[name] == SHIPPED[name]).all() for name in SHIPPED.layers)
    assert len(said) > 1


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    for hot in (0, "a", 2.5, True):
        with pytest.raises(SkewlessError, match=f"hot is {hot!r} keys; give a whole number of at least 1"):
            split.PartLy(8, hot=hot)  # type: ignore[arg-type]
    with pytest.raises(SkewlessError, match="learning is 'no'; give True or False"):
        split.PartLy(8, learning="no")  # type: ignore[arg-type]
    with pytest.raises(SkewlessError, match="weights is 3; give the path of a file"):
        split.PartLy(8, weights=3)  # type: ignore[arg-type]
    with pytest.raises(SkewlessError, match=r"there is no file .*none\.npz; train one with skewless learn --out"):
        split.PartLy(8, weights=tmp_path / "none.npz")


def test_all_layers_are_checked() -> None:
    assert {name.removesuffix("_bias") for name in SHIPPED.layers} == set(LAYERS)


def test_learning_is_refused_in_words_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skewless.split.partly.find_spec", lambda name: None)
    with pytest.raises(SkewlessError, match=r"learning=True needs jax and optax; install the extra: pip install"):
        split.PartLy(4, learning=True)
    assert not split.PartLy(4).learning
