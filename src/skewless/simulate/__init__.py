"""Strategies on one core: replay a stream through a splitter, measure, and choose."""

from skewless.simulate.replay import Replay, replay

__all__ = ["Replay", "replay"]
