"""Simulates on one core: a splitter on a stream (`replay`), and a whole cluster with its queues (`run`)."""

from skewless.simulate.arrivals import Recorded, Source, sine, steps, varying
from skewless.simulate.cluster import Cluster, Costs, MicroBatches
from skewless.simulate.cooperation import Cooperation
from skewless.simulate.early_release import EarlyRelease
from skewless.simulate.engine import run
from skewless.simulate.follow import Followed, follow
from skewless.simulate.partitioners import Partitioners
from skewless.simulate.profiles import Profile
from skewless.simulate.replay import Replay, replay
from skewless.simulate.result import Run
from skewless.simulate.schedule import GroupAhead, Groups, OneAtATime, Scheduling
from skewless.simulate.sustain import Sustained, sustainable

__all__ = [
    "Cluster",
    "Cooperation",
    "Costs",
    "EarlyRelease",
    "Followed",
    "GroupAhead",
    "Groups",
    "MicroBatches",
    "OneAtATime",
    "Partitioners",
    "Profile",
    "Recorded",
    "Replay",
    "Run",
    "Scheduling",
    "Source",
    "Sustained",
    "follow",
    "replay",
    "run",
    "sine",
    "steps",
    "sustainable",
    "varying",
]
