"""What several agents have learned, as what runs it without the extra: `split.PartLy` and `simulate.Advisor`."""

from __future__ import annotations

from typing import Any

import numpy as np

from skewless.learn.agents import Agents
from skewless.simulate.advisor import LAYERS, AdvisorWeights
from skewless.split.weights import Weights


def partitioner_weights(agents: Agents, which: int, made: dict[str, Any]) -> Weights:
    """The policy of a partitioner agent as `split.PartLy` runs it."""
    return Weights.of({name: value[which] for name, value in agents.networks.partitioner.items()}, made)


def advisor_weights(agents: Agents) -> AdvisorWeights:
    """The policy of the scheduler agent as `simulate.Advisor` runs it."""
    names = [name for layer in LAYERS for name in (layer, f"{layer}_bias")]
    return AdvisorWeights({name: np.asarray(agents.networks.scheduler[name], np.float32) for name in names})
