from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest

from skewless.core.errors import SkewlessError
from skewless.workload import Words


def test_words_are_distinct_pronounceable_and_short_first() -> None:
    vocabulary = Words(vocabulary_size=20_000).vocabulary
    assert len(set(vocabulary)) == len(vocabulary) == 20_000
    assert [len(word) for word in vocabulary] == sorted(len(word) for word in vocabulary)
    assert all(set(word[0::2]) <= set("bdfghjklmnprstvz") and set(word[1::2]) <= set("aeiou") for word in vocabulary)


def test_words_come_with_zipf_frequencies() -> None:
    text = Words(s=1.0, vocabulary_size=1000, seed=2)
    (block,) = text.blocks(100_000)
    counts = Counter(block.to_pylist())
    for rank, word in enumerate(text.vocabulary[:10]):
        assert counts[word] == pytest.approx(100_000 * text.ranks.frequencies[rank], rel=0.1)


def test_words_and_lines_do_not_depend_on_the_block() -> None:
    text = Words(vocabulary_size=300)
    words = list(chain.from_iterable(block.to_pylist() for block in text.blocks(1000, block=77)))
    assert words == next(text.blocks(1000)).to_pylist()
    lines = list(chain.from_iterable(text.lines(100, words_per_line=10, block=7)))
    assert [line.split(" ") for line in lines] == [words[at : at + 10] for at in range(0, 1000, 10)]


def test_another_seed_is_another_text() -> None:
    first, again, other = (next(Words(seed=seed).lines(5)) for seed in (1, 1, 2))
    assert first == again != other
    assert Words(seed=1).vocabulary != Words(seed=2).vocabulary


def test_a_line_holds_a_word() -> None:
    with pytest.raises(SkewlessError, match="at least 1 word, not 0"):
        next(Words().lines(1, words_per_line=0))


def test_a_text_has_a_vocabulary() -> None:
    with pytest.raises(SkewlessError, match="keys, not 0"):
        next(Words(vocabulary_size=0).blocks(1))
