"""Readj, choice by choice, against the equations of the paper in plain Python, computed anew for every candidate."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import isclose, log1p

import numpy as np
import pytest

from skewless.place import Readj, Resources, Tolerance
from skewless.place.penalty import UTILITIES
from skewless.place.tracking import Problem

POWERS = {"C": 0, "L": 1, "Q": 2}
ALPHA = 1.2
Choice = tuple[int, int | None, int]  # an item, the one that it is swapped with or None, and its new channel


@dataclass
class Oracle:
    """What the paper says of a map: its loads, penalties and utility; nothing is remembered from step to step."""

    letters: str
    utility: str
    channels: int
    frequencies: list[float]
    before: list[int]  # -1 for an item that was nowhere
    dropped: list[tuple[float, int, int]]  # frequency, channel before and now of each item that is no longer tracked
    rest: list[tuple[float, int]]  # the frequency of a key that is not tracked, and its channel

    def loads(self, letter: str, where: list[int]) -> list[float]:
        load = [0.0] * self.channels
        for frequency, channel in [*zip(self.frequencies, where, strict=True), *self.rest]:
            load[channel] += frequency ** POWERS[letter]
        return load

    def rho(self, where: list[int]) -> float:
        """Equations 19 and 20, over the resources that are not constant."""
        theta = (ALPHA - 1) / (1 + ALPHA / (self.channels - 1))
        parts = []
        for letter in self.letters.replace("C", ""):
            load = self.loads(letter, where)
            parts.append((max(load) - min(load)) / (theta * sum(load) / self.channels))
        product = 1.0
        for part in parts:
            product *= part
        return product ** (1 / len(parts))

    def gamma(self, where: list[int]) -> float:
        """Equation 18: all state that is not where it was, items that are no longer tracked included."""
        degree = POWERS[self.letters[0]]
        moved = sum(frequency**degree for frequency, was, now in self.dropped if was != now)
        for frequency, was, now in zip(self.frequencies, self.before, where, strict=True):
            moved += frequency**degree if was not in (-1, now) else 0
        state = [*self.frequencies, *(frequency for frequency, _, _ in self.dropped)]
        return moved * self.channels / sum(frequency**degree for frequency in state)

    def value(self, where: list[int]) -> float:
        """The utility of section 4.3."""
        rho, gamma = self.rho(where), self.gamma(where)
        return {
            "A": rho,
            "APM": rho + gamma,
            "APLM": rho + log1p(gamma),
            "ATM": rho * (1 + gamma),
            "ATLM": rho * (1 + log1p(gamma)),
        }[self.utility]

    def choices(self, where: list[int], times: list[int], most_moves: int) -> dict[Choice, list[int]]:
        """Every move and every swap between any two channels, and the map after it."""
        free = [item for item in range(len(where)) if times[item] < most_moves]
        found: dict[Choice, list[int]] = {}
        for item in free:
            for channel in set(range(self.channels)) - {where[item]}:
                found[item, None, channel] = [*where[:item], channel, *where[item + 1 :]]
        for item, other in combinations(free, 2):
            if where[item] != where[other] and self.frequencies[item] != self.frequencies[other]:
                after = list(where)
                after[item], after[other] = where[other], where[item]
                found[item, other, where[other]] = after
        return found

    def volume(self, choice: Choice) -> float:
        item, other, _ = choice
        return abs(self.frequencies[item] - (0.0 if other is None else self.frequencies[other]))

    def squares(self, where: list[int]) -> float:
        """What decides where no choice lowers the penalty, each load as a share of all."""
        total = 0.0
        for letter in sorted(set(self.letters) - {"C"}):
            load = self.loads(letter, where)
            total += sum((each / sum(load)) ** 2 for each in load)
        return total

    def check(self, where: list[int], times: list[int], most_moves: int, after: list[int]) -> None:
        """Assert that this step is one that the algorithm may take, or that it has to end if nothing changes."""
        rho, value, choices = self.rho(where), self.value(where), self.choices(where, times, most_moves)
        better = {choice: found for choice, found in choices.items() if self.rho(found) < rho * (1 - 1e-9)}
        if better:
            gains = {choice: (value - self.value(found)) / self.volume(choice) for choice, found in better.items()}
            best = max(gains.values())
            taken = [gain for choice, gain in gains.items() if better[choice] == after]
            assert taken, (where, after)
            assert isclose(max(taken), best, rel_tol=1e-7, abs_tol=1e-7)
            return
        level = {
            choice: self.squares(where) - self.squares(found)
            for choice, found in choices.items()
            if choice[1] is None and self.rho(found) <= rho * (1 + 1e-9)
        }
        most = max(level.values(), default=0.0)
        if most <= 1e-9:
            assert after == where
        else:
            assert isclose(max(level[c] for c in level if choices[c] == after), most, rel_tol=1e-7)


def drawn(chance: np.random.Generator, letters: str, utility: str, equal: bool) -> tuple[Oracle, Problem]:
    """The same random problem for both."""
    channels, items = int(chance.integers(2, 5)), int(chance.integers(2, 9))
    weights = chance.integers(1, 4, items).astype(np.float64) if equal else chance.random(items) + 0.02
    lost, others = chance.random(int(chance.integers(0, 4))), chance.random(int(chance.integers(0, 4))) / 4
    total = weights.sum() + lost.sum() + others.sum()
    frequencies, lost, others = weights / total, lost / total, others / total
    crowded = chance.random() < 0.5  # most items on few channels, of which some may be gone
    before = chance.integers(0, 2 if crowded else channels + 2, items).astype(np.int32)
    before[chance.random(items) < 0.1] = -1
    fallback = chance.integers(0, channels, items).astype(np.int32)
    was, now = chance.integers(0, channels, (2, len(lost))).astype(np.int32)
    on = chance.integers(0, channels, len(others)).astype(np.int32)
    oracle = Oracle(
        letters,
        utility,
        channels,
        frequencies.tolist(),
        before.tolist(),
        list(zip(lost.tolist(), was.tolist(), now.tolist(), strict=True)),
        list(zip(others.tolist(), on.tolist(), strict=True)),
    )
    rest = (others, np.ones(len(others)), on)
    problem = Problem.of(
        Resources(letters), Tolerance.of(ALPHA), channels, frequencies, before, fallback, (lost, was, now), rest
    )
    return oracle, problem


@pytest.mark.parametrize("equal", [False, True], ids=["other frequencies", "equal frequencies"])
@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("letters", ["LCL", "CCL", "QCL", "LQL"])
def test_each_choice_is_the_best_there_is(letters: str, utility: str, equal: bool) -> None:
    chance, steps = np.random.default_rng(11), 0
    for _ in range(25):
        oracle, problem = drawn(chance, letters, utility, equal)
        most_moves = int(chance.integers(1, 6))
        placer = Readj(resources=letters, utility=utility, most_moves=most_moves)
        where, times = placer.readjust(problem, steps=0)
        if (problem.before >= 0).any():
            there = (problem.before >= 0) & (problem.before < problem.channels)
            assert where.tolist() == np.where(there, problem.before, problem.fallback).tolist()
        step, last = 0, None
        while last is None or last.tolist() != where.tolist():
            last, had = where, times
            where, times = placer.readjust(problem, steps=step + 1)
            oracle.check(last.tolist(), had.tolist(), most_moves, where.tolist())
            assert (times - had).tolist() == (where != last).astype(int).tolist()
            step += 1
        steps += step - 1
        assert placer.readjust(problem)[0].tolist() == where.tolist()
    assert steps > 25  # or nothing was tested


def test_a_step_is_the_same_whatever_number_of_steps_is_asked_for() -> None:
    oracle, problem = drawn(np.random.default_rng(3), "LCL", "APM", False)
    placer = Readj()
    whole, times = placer.readjust(problem)
    assert int(times.sum()) > 0
    assert placer.readjust(problem, steps=100)[0].tolist() == whole.tolist()
    assert oracle.rho(whole.tolist()) < oracle.rho(placer.readjust(problem, steps=0)[0].tolist())
