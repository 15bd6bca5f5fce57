from __future__ import annotations

from experiments.dalton.statistics import MODES, costs
from skewless.workload import Zipf


def test_the_map_grows_with_its_keys_and_the_sketch_does_not() -> None:
    found = costs(Zipf(0.0, keys=20_000), 100_000, [100, 50_000], 1, lambda doing: None)
    assert list(found) == list(MODES)
    small, large = found["map"]
    assert large.bytes > 8 * small.bytes >= 8 * 100 * 16  # at least a key and a count for each
    assert found["sketch"][0].bytes == found["sketch"][1].bytes
    assert all(cost.seconds > 0 for each in found.values() for cost in each)
