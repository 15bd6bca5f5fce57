"""How many steps a second PartLy's environment takes, alone and with training, and how long its tests take.

Claim tested: at least 50,000 steps a second without training, and 10,000 with, on one machine of 2 cores; the tests of
learning take less than 2 minutes.

A step places a key or a piece of one; the steps of padding after the last key of an episode are not counted. Seconds
are those of the clock, and beside them those of the processor, which do not depend on who else uses the machine.

`make bench-learn` runs this and writes docs/results/learn.md; `python -m benchmarks.learn quick` prints only, and
leaves the tests out.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from skewless.learn.batches import invented
from skewless.learn.environment import Environment
from skewless.learn.ppo import PPO, begin, update

BLOCKS, KEYS, LAST = 24, 128, 2
EPISODES = (64, 256, 1_024)
ROUNDS = 5
ALONE, TRAINING, TESTS = 50_000, 10_000, 120.0
TESTED = ("tests/learn", "src/skewless/learn", "tests/test_docs_site.py")


def main(quick: bool) -> None:
    """Measure, and write the results."""
    target = Path("docs/results/learn.md")
    if not target.parent.is_dir():
        sys.exit("there is no docs/results here; run this from the top of the repository, as `make bench-learn` does")
    lines = [
        "# The speed of learning",
        "",
        f"Made by `make bench-learn` with jax {jax.__version__} and Python {platform.python_version()} on "
        f"{os.cpu_count()} cores.",
        "",
        f"Invented micro-batches of up to {BLOCKS} blocks and {KEYS} keys. A step places a key or a piece; padding is",
        f"not counted. The median of {1 if quick else ROUNDS} rounds, without compiling. Asked for are {ALONE:,}",
        f"steps a second without training and {TRAINING:,} with.",
        "",
        "| what | observation | episodes at once | steps a second | steps a second of the processor |",
        "|---|---|---|---|---|",
    ]
    best = {}
    for observation in ("features", "paper"):
        env = Environment(blocks=BLOCKS, keys=KEYS, observation=observation)
        for episodes in EPISODES[: 1 if quick else None]:
            batches = invented(env, np.random.default_rng(1), episodes)
            steps = int((np.asarray(batches.sizes) > 0).sum())
            for what, run in (("environment", alone(env, batches)), ("training", training(env, batches))):
                clock, processor = measured(run, 1 if quick else ROUNDS)
                best[what] = max(best.get(what, 0.0), steps / clock)
                lines.append(
                    f"| {what} | {observation} | {episodes:,} | {steps / clock:,.0f} | {steps / processor:,.0f} |"
                )
                print(lines[-1], flush=True)
    for what, asked in (("environment", ALONE), ("training", TRAINING)):
        lines += [
            "",
            f"The most of {what} is {best[what]:,.0f} steps a second, {best[what] / asked:.1f} times {asked:,}.",
        ]
    if quick:
        return
    target.write_text("\n".join(lines) + "\n")  # among the tests is one that every page of the navigation is there
    seconds = tests()
    lines += [
        "",
        f"The tests of `make test-learn` take {seconds:.0f} s, compiling included; {TESTS:.0f} s are asked for.",
    ]
    target.write_text("\n".join(lines) + "\n")
    print(f"written to {target}")


def alone(env: Environment, batches: Any) -> Callable[[], Any]:
    """Episodes in which random actions are taken, and every observation is made."""

    def episode(batch: Any, key: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            mask = env.mask(batch, state, LAST)
            action = jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf))
            seen = sum(each.sum() for each in env.observe(batch, state).values())
            after, reward = env.step(batch, state, action, LAST)
            ended = env.done(batch, state)
            return jax.tree.map(lambda old, new: jnp.where(ended, old, new), state, after), (reward, seen)

        return jax.lax.scan(step, env.reset(batch), jax.random.split(key, env.keys))[1]

    play = jax.jit(jax.vmap(episode))
    keys = jax.random.split(jax.random.PRNGKey(0), len(batches.blocks))
    return lambda: play(batches, keys)


def training(env: Environment, batches: Any) -> Callable[[], Any]:
    """An update of PPO: the same number of episodes by the network, and the steps of the optimization."""
    ppo = PPO()
    learner = begin(env, ppo, 0)
    return lambda: update(env, ppo, learner, batches, jnp.int32(LAST), jax.random.PRNGKey(1))


def measured(run: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Seconds of the clock and of the processor, the medians; the first run compiles."""
    jax.block_until_ready(run())
    spent = []
    for _ in range(rounds):
        clock, processor = time.perf_counter(), time.process_time()
        jax.block_until_ready(run())
        spent.append((time.perf_counter() - clock, time.process_time() - processor))
    one, other = np.median(spent, axis=0).tolist()
    return one, other


def tests() -> float:
    """Seconds that the tests of learning take."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *TESTED]
    subprocess.run(command, check=True, env=os.environ | {"SKEWLESS_LEARN": "1", "JAX_PLATFORMS": "cpu"})
    return time.perf_counter() - start


if __name__ == "__main__":
    main(quick=sys.argv[1:] == ["quick"])
