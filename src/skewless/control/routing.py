"""The loop of a split stream: what a micro-batch observed becomes the policy of the next.

Measure: `observe` counts the rows and the most frequent keys in the job itself, in the JVM. Analyse and plan: the
splitter is handed the counts. Activate: the new policy replaces the file that every micro-batch reads. Spark tells of a
micro-batch when the next has begun, and does not wait for the loop, so a policy is in force two micro-batches after
what it is about, or later where micro-batches take less time than planning. A restarted driver learns anew.
"""

from __future__ import annotations

import numpy as np

from skewless.control.loop import Chosen, LoadLoop, Observed
from skewless.control.policy_file import PolicyFile
from skewless.control.scaling import Scaling
from skewless.core.policy import Policy
from skewless.split import Splitter

_SHOWN = 10  # keys


class Routing(LoadLoop):
    """Learns from every micro-batch of a stream and writes the next policy.

    Parameters
    ----------
    name
        The stream's name, for messages.
    splitter
        The splitter that plans the policies.
    file
        Where policies go.
    chosen
        What runs, and why.
    scaling
        What decides the number of active workers; None if that does not change. The splitter is for the most workers
        there can be, and one like it is made for every other number.
    """

    def __init__(
        self, name: str, splitter: Splitter, file: PolicyFile, chosen: Chosen, scaling: Scaling | None = None
    ) -> None:
        super().__init__(name, splitter.workers if scaling is None else scaling.workers, chosen, scaling)
        self.splitter, self.file = splitter, file
        self.policy: Policy = Policy.of(splitter.workers)
        file.put(self.policy)

    def learn(self, seen: Observed) -> None:
        """Plan for what was observed and make it the policy."""
        super().learn(seen)
        if seen.counts is not None:
            self.policy = self._splitter_now().plan(seen.counts)
            self.file.put(self.policy, seen.query)

    def _splitter_now(self) -> Splitter:
        """The splitter; one that has learned nothing yet, if it was for another number of workers."""
        if self.workers != self.splitter.workers:
            version = self.splitter.version
            self.splitter = self.splitter.again(workers=self.workers)
            self.splitter.version = version
        return self.splitter

    def describe(self) -> list[str]:
        """What runs and why, and where hot keys go."""
        return [*super().describe(), *lanes_in_words(self.policy)]


def lanes_in_words(policy: Policy) -> list[str]:
    """A line for each of the keys that are on the most workers."""
    lines = []
    most = sorted(policy.keys.tolist(), key=lambda key: -len(set(policy.lanes_of(key).tolist())))
    for key in most[:_SHOWN]:
        workers, lanes = np.unique(policy.lanes_of(key), return_counts=True)
        shares = (f"{worker} ({share:.0%})" for worker, share in zip(workers, lanes / lanes.sum(), strict=True))
        lines.append(f"key hash {key} is on workers {', '.join(shares)}")
    return lines
