from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.core.errors import SkewlessError
from skewless.workload import Names, voters_like


def edits(a: str, b: str) -> int:
    """Levenshtein's distance, by the textbook's table."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
    return row[-1]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(0, 8), st.integers(0, 10**9), st.integers(0, 10**6))
def test_a_text_is_within_its_typos_of_the_name_it_stands_for(
    people: int, typos: int, seed: int, position: int
) -> None:
    names = Names(people, typos, seed)
    keys = np.array([3, 3, 7, -5, 3])
    for key, person, text in zip(keys, names.persons(keys, position), names.texts(keys, position), strict=True):
        assert 0 <= person < people
        assert edits(text, names.name(int(key), int(person))) <= typos


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 40), st.integers(0, 40))
def test_texts_do_not_depend_on_the_block(n: int, cut: int) -> None:
    names, keys = Names(), voters_like(every=10).take(n)
    assert names.texts(keys[:cut]) + names.texts(keys[cut:], position=min(cut, n)) == names.texts(keys)


def test_people_of_a_key_are_told_apart_and_their_texts_are_alike() -> None:
    names = Names(people=6, typos=2, seed=5)
    far, near = [], []
    for key in range(40):
        own = [names.name(key, person) for person in range(6)]
        far += [1 - edits(a, b) / max(len(a), len(b)) for a, b in combinations(own, 2)]
        keys = np.full(30, key)
        for person, text in zip(names.persons(keys), names.texts(keys), strict=True):
            near.append(1 - edits(text, own[person]) / max(len(text), len(own[person])))
    assert np.mean(np.array(far) > 0.5) < 0.1  # two people who vote for one cluster are rare
    assert min(near) > 0.75


def test_typos_of_every_number_and_kind_are_made() -> None:
    names, keys = Names(people=1, typos=2, seed=2), np.zeros(6000, np.int64)
    name = names.name(0, 0)
    distances = Counter(edits(text, name) for text in names.texts(keys))
    # A typo may undo another or change nothing, rarely.
    assert all(abs(distances[number] / 6000 - 1 / 3) < 0.06 for number in (0, 1, 2))
    lengths = Counter(Names(1, 1, 2).letters(keys)[1].tolist())
    assert all(abs(lengths[len(name) + change] / 3000 - 1 / 3) < 0.05 for change in (-1, 1))


def test_letters_are_the_texts() -> None:
    names, keys = Names(typos=3), np.arange(500)
    letters, lengths = names.letters(keys)
    rows = [row[:length].tobytes().decode() for row, length in zip(letters, lengths, strict=True)]
    assert rows == names.texts(keys)
    assert not any(row[length:].any() for row, length in zip(letters, lengths, strict=True))


def test_people_come_equally_often() -> None:
    counts = np.bincount(Names(people=4, seed=8).persons(np.zeros(40_000, np.int64)))
    assert (abs(counts - 10_000) < 400).all()


def test_a_seed_is_a_stream() -> None:
    keys = np.arange(20)
    first, again, other = (Names(seed=seed).texts(keys) for seed in (1, 1, 2))
    assert first == again != other


def test_no_tuples_have_no_texts() -> None:
    assert Names().texts(np.empty(0, np.int64)) == []


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(SkewlessError, match="at least 1 person, not 0"):
        Names(people=0)
    with pytest.raises(SkewlessError, match="0 to 8 typos at most, not 9"):
        Names(typos=9)
