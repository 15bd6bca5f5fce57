"""Simulates splitters on one core: replays a stream through a splitter, measures, and chooses a splitter."""

from skewless.simulate.replay import Replay, replay

__all__ = ["Replay", "replay"]
