"""Trains several agents by Algorithm 5, and records what becomes of them: `python -m experiments.partly.agents`.

It needs the extra `learn`. The record and the policies are committed, so that Figure 4.10 is made without training.
Whatever is in the record already is not trained again.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).with_name("agents.json")
SEEDS = (1, 2, 3)
BLOCKS, KEYS = 16, 24
TOGETHER = 300  # rounds of a scheduler and a partitioner
INSTANCES, APART, EVERY = 4, 120, 5  # partitioners of one operator, rounds at most, and rounds between two tests
AFTER = 20  # rounds that go on when the policy is deployed
STAGES, SOUND, SICK = 2, 250, 60  # stages of a topology, rounds until they are trained, and rounds with a slow task
FILL = 64  # rounds that fill the buffer anew, with the rewards that follow, before learning goes on
AFTER_RATE = 5e-4  # the learning rate from then on, a quarter of that before
ROUNDS = {"sound": SOUND, "fill": FILL, "after": SICK, "rate": AFTER_RATE}
"""How long stages are trained; what the record has of other numbers is trained anew."""
SLOW = 4.0  # times that a task of the sick stage takes longer
SCHEMES = {"all at once": INSTANCES, "one at a time": 1, "all at once, updates of one": 1}
"""How instances of one operator learn, and for how many of them there are updates.

The last one tells what more steps are worth from what more updates are.
"""
TESTED = 32  # episodes of a test
_TEST = 99  # the seed of what is tested, which is the same for all


def record() -> dict[str, Any]:
    """Train whatever is not in the record yet; it is written after each training."""
    found: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}

    def keep(*done: object) -> None:
        RECORD.write_text(json.dumps(found, indent=1) + "\n")
        print(*done, "done", flush=True)

    for seed in map(str, SEEDS):
        for name, train in (("together", together), ("stages", stages)):
            there = found.setdefault(name, {}).get(seed)
            if not there or (name == "stages" and there["rounds"] != ROUNDS):
                found[name][seed] = train(int(seed))
                keep(name, seed)
        told = found.setdefault("schemes", {}).setdefault(seed, {})
        if "heuristic" not in told:
            told["heuristic"] = usual_cost()
        for scheme in SCHEMES:
            if scheme not in told:
                told[scheme] = learned_by(scheme, int(seed), told["heuristic"])
                keep(scheme, seed)
    return found


def policy(seed: int, part: str) -> Path:
    """The file of a policy that was trained together with another."""
    return Path(__file__).with_name(f"agents-{seed}-{part}.npz")


def together(seed: int) -> list[dict[str, float]]:
    """A scheduler and a partitioner learn at the same time; their policies are kept."""
    import jax

    from skewless.learn import agents, policies
    from skewless.learn.environment import Environment
    from skewless.learn.topology import Topology

    topology = Topology(Environment(blocks=BLOCKS, keys=KEYS), batches=8)
    settings = agents.Settings(rate=1e-3, room=1024, settle=TOGETHER // 2)
    ours, everybody = agents.begin(topology, settings, seed), np.ones(1, bool)
    points = []
    for number in range(1, TOGETHER + 1):
        key = jax.random.fold_in(jax.random.PRNGKey(seed), number)
        ours, _ = agents.play_round(topology, settings, ours, key, everybody)
        ours = agents.learn(topology, settings, ours, jax.random.fold_in(key, 1))
        if number % (4 * EVERY) == 0:
            ended = agents.tested(topology, settings, ours, jax.random.PRNGKey(_TEST), TESTED)
            # The first two micro-batches of an episode have a number of blocks that was drawn.
            ratio = np.asarray(ended.ratio)[:, 2:]
            points.append(
                {
                    "batches": number * settings.episodes * topology.batches,
                    "cost": _rounded(np.asarray(ended.cost).mean()),
                    "W": _rounded(ratio.mean()),
                    "late": _rounded((ratio > 1).mean()),
                }
            )
    policies.partitioner_weights(ours, 0, {"command": "python -m experiments.partly.agents", "seed": seed}).save(
        policy(seed, "partitioner")
    )
    layers: dict[str, Any] = dict(policies.advisor_weights(ours).layers)
    np.savez_compressed(policy(seed, "scheduler"), **layers)
    return points


def usual_cost() -> float:
    """What a micro-batch of an instance costs by the heuristic."""
    import jax

    from skewless.learn import agents

    return _rounded(agents.heuristic_cost(_instances(), jax.random.PRNGKey(_TEST), 4 * TESTED))


def learned_by(scheme: str, seed: int, heuristic: float) -> dict[str, Any]:
    """Instances of one operator learn one policy: all of them at once, or one while the others go by the heuristic."""
    import jax
    import jax.numpy as jnp

    from skewless.learn import agents

    topology, at_once = _instances(), scheme != "one at a time"
    test = jax.random.PRNGKey(_TEST)
    settings = agents.Settings(shared=True, updates=2 * SCHEMES[scheme], settle=APART // 2)
    ours, learned = agents.begin(topology, settings, seed), jnp.ones(INSTANCES, bool)
    learned = learned if at_once else learned.at[1:].set(False)
    points: list[dict[str, float]] = []
    deployed = 0.0
    for number in range(1, APART * INSTANCES // SCHEMES[scheme] + 1):
        key = jax.random.fold_in(jax.random.PRNGKey(seed), number)
        ours, ended = agents.play_round(topology, settings, ours, key, learned)
        ours = agents.learn(topology, settings, ours, jax.random.fold_in(key, 1))
        if number % EVERY == 0:
            greedy = agents.tested(topology, settings, ours, test, TESTED)
            points.append(
                {
                    "batches": number * settings.episodes,
                    "cost": _rounded(np.asarray(greedy.cost).mean()),
                    "while": _rounded(np.asarray(ended.cost).mean()),
                }
            )
            if deployed and points[-1]["batches"] >= deployed + AFTER * settings.episodes:
                break
            if not deployed and _beats(points, heuristic):
                deployed = points[-1]["batches"]
                learned = jnp.ones(INSTANCES, bool)
    return {"converged": deployed, "points": points}


def _instances() -> Any:
    from skewless.learn.topology import Topology

    return Topology(partitioners=INSTANCES, batches=1, advised=False)


def stages(seed: int) -> dict[str, Any]:
    """Two stages are trained with local rewards; then the second gets a slow task, or not, and learning goes on.

    What was learned stays, and what was seen is forgotten, as its rewards were others. So the buffer is filled again
    before learning goes on: updates from a few micro-batches alone would change a policy whatever the reward.
    """
    import jax

    from skewless.learn import agents
    from skewless.learn.topology import Topology

    sound = Topology(partitioners=STAGES, batches=1, advised=False)
    settings = agents.Settings(settle=SOUND // 2)
    slower = replace(settings, rate=AFTER_RATE)
    test, everybody = jax.random.PRNGKey(_TEST), np.ones(STAGES, bool)

    def play(topology: Topology, ours: Any, number: int) -> Any:
        key = jax.random.fold_in(jax.random.PRNGKey(seed), number)
        return agents.play_round(topology, settings, ours, key, everybody)[0], jax.random.fold_in(key, 1)

    def train(topology: Topology, settings: Any, ours: Any, first: int, rounds: int) -> Any:
        for number in range(first, first + rounds):
            ours, key = play(topology, ours, number)
            ours = agents.learn(topology, settings, ours, key)
        return ours

    before = train(sound, settings, agents.begin(sound, settings, seed), 0, SOUND)
    was = np.asarray(agents.choices(sound, settings, before, test))
    bsi = np.asarray(agents.tested(sound, settings, before, test, TESTED).bsi).mean(axis=(0, 1))
    told: dict[str, Any] = {"rounds": ROUNDS, "trained": {"bsi": [_rounded(each) for each in bsi]}}
    for reward in ("local", "global"):
        for state, slow in (("sound", 1.0), ("sick", SLOW)):
            topology = replace(sound, local=reward == "local", slow=(1.0, slow))
            after = before._replace(buffer=agents.begin(topology, settings, seed).buffer)
            for number in range(SOUND, SOUND + FILL):
                after, _ = play(topology, after, number)
            after = train(topology, slower, after, SOUND + FILL, SICK)
            now = np.asarray(agents.choices(sound, settings, after, test))
            bsi = np.asarray(agents.tested(sound, settings, after, test, TESTED).bsi).mean(axis=(0, 1))
            told[f"{reward}, {state}"] = {
                "changed": [_rounded(each) for each in _changed(was, now)],
                "bsi": [_rounded(each) for each in bsi],
            }
    return told


def _changed(was: Any, now: Any) -> Any:
    """For each partitioner, the mean distance of its probabilities: 0 if they are the same, 1 if none is shared."""
    return (np.abs(np.exp(was) - np.exp(now)).sum(axis=-1) / 2).mean(axis=(0, 1))


def _beats(points: list[dict[str, float]], heuristic: float) -> bool:
    """Whether the policy was better than the heuristic in two tests in turn."""
    return len(points) > 1 and all(each["cost"] < heuristic for each in points[-2:])


def _rounded(value: Any) -> float:
    return round(float(value), 5)


if __name__ == "__main__":
    record()
