from __future__ import annotations

import numpy as np
import pytest

from skewless.core.errors import SkewlessError
from skewless.workload import TweetWords


@pytest.mark.parametrize(("words", "top"), [(450_000, 0.0269), (200_000, 0.072), (100_000, 0.3845)])
def test_the_most_frequent_word_has_its_share(words: int, top: float) -> None:
    keys = TweetWords(words, top).take(200_000)
    assert (keys == 0).mean() == pytest.approx(top, rel=0.05)
    assert keys.max() < words
    assert np.bincount(keys).argmax() == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TweetWords(words=1), "words is 1; give at least 2"),
        (lambda: TweetWords(words=100, top=0.01), "top is 0.01; of 100 words give more than 0.01 and less than 1"),
    ],
)
def test_what_makes_no_stream_is_refused(make: object, message: str) -> None:
    with pytest.raises(SkewlessError, match=message):
        make()
