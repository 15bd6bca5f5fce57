"""A micro-batch as an episode: its keys come in turn, and an action places a key or divides it over blocks.

Everything here is a pure function of arrays with fixed shapes, so that thousands of episodes are stepped at once by
`jax.vmap` and compiled by `jax.jit`. Sizes are in units of a block: 1 is the average block of the micro-batch.

References
----------
A. S. Abdelhamid, W. G. Aref: PartLy: learning data partitioning for distributed data stream processing. aiDM 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from skewless.core.arrays import FloatArray
from skewless.core.errors import SkewlessError
from skewless.split.ways import MOST_PARTS, PARTS, SHARES, STAGES

Array: TypeAlias = jax.Array
Observation: TypeAlias = dict[str, Array]

OBSERVATIONS = ("features", "paper")
WAYS = len(SHARES)
BLOCK_FEATURES = WAYS + 4
KEY_FEATURES = 10
_FULL = 1e3  # load of a block that is only padding: it is the last in order, and never fits
_shares = jnp.asarray(SHARES, jnp.float32)
_parts = jnp.asarray(PARTS)
_open = jnp.asarray(STAGES)


@dataclass(frozen=True)
class Costs:
    """What an imbalance costs, by Prompt's model (eq. 2.6): block sizes, cardinalities and fragments.

    Attributes
    ----------
    size
        Cost of a BSI of one average block.
    keys
        Cost of a BCI of one block's share of the keys.
    split
        Cost of as many extra fragments as there are blocks, which is about what Prompt needs.
    bonus
        The partial rewards of an episode in which every action keeps to both limits, added up.
    average
        Weight of the running average over the episodes before in the final reward.
    """

    size: float = 4.0
    keys: float = 0.4
    split: float = 0.2
    bonus: float = 1.0
    average: float = 0.5


class Batch(NamedTuple):
    """One micro-batch, padded; `skewless.learn.batches` makes them from counts.

    Attributes
    ----------
    sizes
        The pieces in turn, 0 beyond the last; all of them and the tail add up to the number of blocks.
    fresh
        Whether a piece is the first of its key.
    blocks
        The number of blocks; the environment may have more, which stay empty.
    tail, tail_keys
        What is in each block in any case, and of how many keys.
    grain
        The size of one tuple.
    """

    sizes: Array
    fresh: Array
    blocks: Array
    tail: Array
    tail_keys: Array
    grain: Array


class State(NamedTuple):
    """A partial assignment.

    Attributes
    ----------
    at
        The piece whose turn it is.
    load, card, here, block
        For each block what is in it, how many keys it has, whether the current key is one of them, and its number.
        With the observation "features" they are in order of load, emptiest first.
    left, keys_left
        What is still to be placed, and how many keys, the current one included.
    extra
        Fragments beyond one for each key.
    matrix
        The part of each piece in each block, for the observation "paper"; else empty.
    """

    at: Array
    load: Array
    card: Array
    here: Array
    block: Array
    left: Array
    keys_left: Array
    extra: Array
    matrix: Array


@dataclass(frozen=True)
class Environment:
    """The rules of an episode.

    An action is the number of a block times `WAYS` plus a way: the key, or piece, is divided by that way, beginning
    with that block and going on with those after it. Which ways are open depends on the stage of training.

    Parameters
    ----------
    blocks
        Most blocks of an episode.
    keys
        Most pieces of an episode; a `Batch` with fewer is padded with zeros.
    observation
        "paper" has the counts and the key x block matrix, so that a network for it fits these numbers of keys and
        blocks only. "features" has a few numbers for each block and for the key, relative to what is left to place, so
        that one network serves any number of keys and blocks; blocks are in order of load.
    costs
        What imbalance costs.

    Examples
    --------
    Two equal keys on two blocks; each is put into the emptiest block, which is the first in order.

    >>> env = Environment(blocks=2, keys=2)
    >>> batch = Batch(*map(jnp.array, ([1.0, 1.0], [True, True], 2, [0.0, 0.0], [0.0, 0.0], 0.01)))
    >>> state = env.reset(batch)
    >>> for _ in range(2):
    ...     state, reward = env.step(batch, state, 0, stage=0)
    >>> bool(env.done(batch, state)), float(env.cost(batch, state))
    (True, 0.0)
    """

    blocks: int = 24
    keys: int = 256
    observation: str = "features"
    costs: Costs = Costs()

    def __post_init__(self) -> None:
        """Refuse an environment without room."""
        if self.blocks < 1 or self.keys < 1:
            raise SkewlessError(f"{self.blocks} blocks and {self.keys} keys; give at least 1 of each")
        if self.blocks > MOST_PARTS and self.keys < self.blocks:
            raise SkewlessError(
                f"{self.blocks} blocks and {self.keys} keys; a micro-batch of one key is cut into a piece for each "
                f"block, so give at least {self.blocks} keys"
            )
        if self.observation not in OBSERVATIONS:
            raise SkewlessError(f"observation is {self.observation!r}; choose one of {', '.join(OBSERVATIONS)}")

    @property
    def actions(self) -> int:
        """The number of actions, those that are masked included."""
        return self.blocks * WAYS

    @property
    def bounds(self) -> dict[str, tuple[float, float, tuple[int, ...]]]:
        """The least and the largest value of each array of an observation, and its shape."""
        if self.observation == "paper":
            return {"counts": (0, self.blocks, (self.keys,)), "matrix": (0, 1, (self.keys, self.blocks))}
        return {"blocks": (-3, 3, (self.blocks, BLOCK_FEATURES)), "key": (-10, 10, (KEY_FEATURES,))}

    def reset(self, batch: Batch) -> State:
        """The state before the first key."""
        there = jnp.arange(self.blocks) < batch.blocks
        wide = self.keys if self.observation == "paper" else 0
        state = State(
            at=jnp.int32(0),
            load=jnp.where(there, batch.tail, _FULL),
            card=batch.tail_keys,
            here=jnp.zeros(self.blocks, bool),
            block=jnp.arange(self.blocks),
            left=batch.sizes.sum(),
            keys_left=batch.fresh.sum().astype(jnp.float32),
            extra=jnp.float32(0),
            matrix=jnp.zeros((wide, self.blocks)),
        )
        return self._in_order(state)

    def done(self, batch: Batch, state: State) -> Array:
        """Whether all keys are placed."""
        beyond = state.at >= self.keys
        return beyond | (batch.sizes[jnp.minimum(state.at, self.keys - 1)] <= 0)

    def mask(self, batch: Batch, state: State, stage: int | Array) -> Array:
        """The actions that are allowed: open in this stage, with enough blocks, and no fragment below a tuple.

        The pieces of a key that was cut fit a block, so that they are not divided again.
        """
        enough = jnp.arange(self.blocks)[:, None] + _parts <= batch.blocks
        smallest = jnp.where(_shares > 0, _shares, 1).min(axis=1)
        following = jnp.minimum(state.at + 1, self.keys - 1)
        piece = ~batch.fresh[state.at] | ((batch.sizes[following] > 0) & ~batch.fresh[following])
        divisible = ((batch.sizes[state.at] * smallest >= batch.grain) & ~piece) | (_parts == 1)
        opened = jnp.arange(WAYS) < _open[stage]
        return (enough & divisible & opened).reshape(-1)

    def step(self, batch: Batch, state: State, action: Array | int, stage: int | Array) -> tuple[State, Array]:
        """The state after an action, and its partial reward.

        The partial reward is positive if the blocks that the action touches keep to both limits: N / m tuples, and
        their share of the keys (with the fragments so far). What the action adds beyond the limits is subtracted, and
        so is the cost of its fragments. An action that is masked puts the key whole into the block and earns nothing.
        """
        size, fresh = batch.sizes[state.at], batch.fresh[state.at]
        allowed = self.mask(batch, state, stage)[action]
        first = jnp.minimum(action // WAYS, batch.blocks - 1)
        way = jnp.where(allowed, action % WAYS, 0)
        place = jnp.arange(self.blocks) - first
        share = jnp.where((place >= 0) & (place < MOST_PARTS), _shares[way, jnp.clip(place, 0, MOST_PARTS - 1)], 0)
        touched = share > 0
        here = state.here & ~fresh
        new = touched & ~here
        load, card = state.load + share * size, state.card + new
        extra = state.extra + new.sum() - fresh

        fair = self._fair(batch, extra)
        fits = (load <= 1 + batch.grain) & (card <= jnp.ceil(fair))
        beyond = jnp.where(touched, jnp.maximum(load - 1, 0) - jnp.maximum(state.load - 1, 0), 0).sum()
        crowd = jnp.where(new, jnp.clip(card - jnp.ceil(fair), 0, 1), 0).sum() / fair
        costs, pieces = self.costs, (batch.sizes > 0).sum()
        bonus = costs.bonus * (allowed & (fits | ~touched).all()) / pieces
        spent = costs.size * beyond + costs.keys * crowd + costs.split * (extra - state.extra)
        reward = bonus - spent / batch.blocks

        after = State(
            at=state.at + 1,
            load=load,
            card=card,
            here=here | touched,
            block=state.block,
            left=jnp.maximum(state.left - size, 0),
            keys_left=state.keys_left - fresh,
            extra=extra,
            matrix=self._record(state, share),
        )
        return self._in_order(after), reward

    def cost(self, batch: Batch, state: State) -> Array:
        """The cost of a finished assignment by Prompt's model."""
        bsi, bci, extra = self.imbalance(batch, state)
        return self.costs.size * bsi + self.costs.keys * bci + self.costs.split * extra / batch.blocks

    def imbalance(self, batch: Batch, state: State) -> tuple[Array, Array, Array]:
        """BSI in blocks, BCI in a block's share of the keys, and the fragments beyond one a key."""
        there = state.block < batch.blocks
        bsi = jnp.where(there, state.load, 0).max() - 1
        mean = jnp.where(there, state.card, 0).sum() / batch.blocks
        bci = (jnp.where(there, state.card, 0).max() - mean) / jnp.maximum(self._distinct(batch) / batch.blocks, 1)
        return bsi, bci, state.extra

    def final_reward(self, batch: Batch, state: State, average: Array | float) -> Array:
        """The reward for the last action: minus the cost, as a running average with the episodes before."""
        weight = self.costs.average
        return -((1 - weight) * self.cost(batch, state) + weight * average)

    def observe(self, batch: Batch, state: State) -> Observation:
        """What the agent sees."""
        if self.observation == "paper":
            return {"counts": batch.sizes, "matrix": state.matrix}
        size = batch.sizes[state.at]
        blocks = batch.blocks.astype(jnp.float32)
        there = state.block < batch.blocks
        room = 1 - state.load
        fair_room = jnp.maximum(state.left / blocks, 1e-6)  # the rooms add up to what is left

        ahead = jnp.stack([jnp.roll(room, -k) for k in range(MOST_PARTS)], axis=1)
        ahead = jnp.where(jnp.arange(self.blocks)[:, None] + jnp.arange(MOST_PARTS) < batch.blocks, ahead, -_FULL)
        after = jnp.where(_shares > 0, ahead[:, None, :] - _shares * size, jnp.inf).min(axis=2) / fair_room
        fair = self._fair(batch, state.extra)
        seats = (fair - state.card) / jnp.maximum(state.keys_left / blocks, 1)
        known = jnp.where(state.here & ~batch.fresh[state.at], 1.0, 0.0)
        rank = jnp.arange(self.blocks) / blocks
        features = jnp.concatenate(
            [jnp.clip(after, -3, 3), jnp.stack([room / fair_room, seats, known, rank], axis=1).clip(-3, 3)], axis=1
        )
        most_room, least_room = jnp.where(there, room, -jnp.inf).max(), jnp.where(there, room, jnp.inf).min()
        following = batch.sizes[jnp.minimum(state.at + 1, self.keys - 1)]
        key = jnp.stack(
            [
                size.clip(0, 5),
                (size / fair_room).clip(0, 10) / 3,
                jnp.log10(fair_room) / 3,
                state.keys_left / jnp.maximum(batch.fresh.sum(), 1),
                jnp.log10(1 + state.keys_left / blocks),
                (following / jnp.maximum(size, 1e-9)).clip(0, 5),
                (most_room / fair_room).clip(0, 6) / 3,
                (least_room / fair_room).clip(-6, 1) / 3,
                (state.extra / blocks).clip(0, 4),
                1 / jnp.sqrt(blocks),
            ]
        )
        return {"blocks": jnp.where(there[:, None], features, 0), "key": key}

    def _distinct(self, batch: Batch) -> Array:
        return batch.fresh.sum() + batch.tail_keys.sum()

    def _fair(self, batch: Batch, extra: Array) -> Array:
        """A block's share of the keys, with the fragments that are known."""
        return (self._distinct(batch) + extra) / batch.blocks

    def _in_order(self, state: State) -> State:
        if self.observation == "paper":
            return state
        order = jnp.argsort(state.load)
        return state._replace(
            load=state.load[order], card=state.card[order], here=state.here[order], block=state.block[order]
        )

    def _record(self, state: State, share: Array) -> Array:
        if self.observation != "paper":
            return state.matrix
        return state.matrix.at[state.at].set(share)


def run_time_reward(
    map_times: FloatArray | Array,
    reduce_times: FloatArray | Array,
    variances: tuple[float, float],
    costs: tuple[float, float],
) -> float:
    """The reward of a batch that was run: minus the variance of its task times, in the range of the cost model.

    Of map and reduce tasks the larger variance counts. Section 4.6 scales it to the range of the costs and names the
    result a reward, though it rises with the variance; the sign here is that of a reward.

    Parameters
    ----------
    map_times, reduce_times
        The time that each task took.
    variances
        The least and the largest variance seen.
    costs
        The least and the largest cost of the cost model seen.

    Examples
    --------
    >>> run_time_reward(np.array([2.0, 4.0]), np.array([1.0, 1.0]), variances=(0.0, 4.0), costs=(1.0, 5.0))
    -2.0
    """
    low, high = variances
    variance = float(max(np.var(map_times), np.var(reduce_times)))
    scaled = 0.0 if high <= low else (variance - low) / (high - low)
    return -(costs[0] + min(1.0, max(0.0, scaled)) * (costs[1] - costs[0]))
