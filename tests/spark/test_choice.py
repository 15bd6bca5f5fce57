"""What is said of the choice, without a session."""

from __future__ import annotations

import pytest

from skewless.api.choice import aggregating
from skewless.split import make


@pytest.mark.parametrize(
    ("name", "streaming", "told"),
    [
        ("prompt", True, True),
        ("prompt", False, False),
        ("bounded", True, False),
    ],
)
def test_prompt_in_a_stream_says_where_partial_results_go(name: str, streaming: bool, told: bool) -> None:
    chosen = aggregating(lambda: make(name, 4), name, ("n",), native=False, tumbling=True, streaming=streaming)
    words = chosen.words("clicks", "4 workers")
    assert ("partial results go to the hash of their key, since Algorithm 3 needs to know" in words) == told
