"""Repeated runs of a case: the results that stand, and the causes of the others.

Each case runs five times: twice as it is, once on other cores, once at other positions of the tile,
once in the reverse order. A run that gives other codes is made once more, in the same order. One of
all codes of a format runs once, if its results are as assumed; a sample of them runs as any other.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from simulator.numbers.formats import Codes
from tiling.grid import first_tile
from tiling.plan import TilePlan

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]
_MOST_NAMED: Final = 8
"""Cores or positions that words name one by one."""


class Stability(enum.Enum):
    """The ways in which a device repeats a result, from the best to the worst."""

    STABLE = "stable"
    POSITION_DEPENDENT = "position-dependent"
    CORE_DEPENDENT = "core-dependent"
    UNSTABLE = "unstable"

    @staticmethod
    def of(words: str) -> Stability:
        """The one that words such as "core-dependent: core 5" begin with.

        Raises:
            ValueError: none.
        """
        return Stability(words.partition(":")[0])

    @staticmethod
    def worst(words: list[str]) -> str:
        """The words of those that are the farthest from stable; of none, "stable"."""
        order = list(Stability)
        return max(words, key=lambda w: order.index(Stability.of(w)), default="stable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The places of a case's elements, in their order.

    Attributes:
        cores: the core of each.
        positions: its place within the tile, or within what a core takes at once.
    """

    cores: Places
    positions: Places

    @staticmethod
    def of_plan(plan: TilePlan) -> Layout:
        """The layout of a tensor that is cut into tiles."""
        tiles, positions = np.zeros((2, *plan.shape), np.intp)
        for axis, (extent, step) in enumerate(zip(plan.shape, plan.tile_shape, strict=True)):
            steps = np.arange(extent).reshape(-1, *[1] * (len(plan.shape) - axis - 1))
            tiles = tiles * -(-extent // step) + steps // step
            positions = positions * step + steps % step
        cores = plan.busy_cores
        first = [first_tile(core, len(plan.grid), cores) for core in range(1, cores)]
        found = np.searchsorted(first, tiles.reshape(-1), side="right").astype(np.intp)
        return Layout(cores=found, positions=positions.reshape(-1))

    @staticmethod
    def of_passes(count: int, elems: int, cores: int) -> Layout:
        """The layout of elements of which cores take `elems` at once, in turns."""
        passes, positions = np.divmod(np.arange(count), elems)
        return Layout(cores=passes % cores, positions=positions)

    def orders(self) -> Iterator[Places]:
        """Yields the elements at each place: on other cores, at other positions, reversed."""
        identity = np.arange(self.cores.size)
        share = int(np.argmax(self.cores != self.cores[0]))
        if share:
            yield np.roll(identity, share)
        yield np.roll(identity, int(self.positions.max(initial=0)) // 2 | 1)  # pairs are parted
        yield identity[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The results of a case in all its runs.

    Attributes:
        runs: the codes of each run, in the order of the elements; the first is as the case is.
        unstable: elements of which one order gave two results.
        varying: elements of which orders gave other results, each order its own.
        words: on what those depend, and where.
    """

    runs: tuple[Codes, ...]
    unstable: Mask
    varying: Mask
    words: str = ""

    @property
    def codes(self) -> Codes:
        return self.runs[0]

    @property
    def distinct(self) -> list[Codes]:
        """The first run, and those that differ from it."""
        others = (codes for codes in self.runs[1:] if not np.array_equal(codes, self.codes))
        return [self.codes, *others]

    def stability(self, here: Mask) -> str:
        """The stability of the results of some elements, in words."""
        if (self.unstable & here).any():
            return Stability.UNSTABLE.value
        return self.words if (self.varying & here).any() else Stability.STABLE.value


def observe(
    run: Callable[[Places], Codes],
    layout_of: Callable[[], Layout],
    expected: Codes,
    is_enough: Callable[[Codes], bool] = lambda codes: False,
) -> Observation:
    """Run a case in every order.

    Args:
        run: runs the elements in an order, and gives their codes in that order.
        layout_of: gives where the places of an order lie.
        expected: the codes that are right; of an element that some runs have right the others are
            exceptions, else those of which there are fewer.
        is_enough: whether the codes of the first run are all that is wanted.
    """
    identity = np.arange(expected.size)

    def codes_of(order: Places) -> Codes:
        found = run(order)
        codes = np.empty_like(found)
        codes[order] = found
        return codes

    first = codes_of(identity)
    if is_enough(first):
        none = np.zeros(first.shape, np.bool_)
        return Observation(runs=(first,), unstable=none, varying=none)
    layout, again = layout_of(), codes_of(identity)
    unstable = first != again
    varying = np.zeros_like(unstable)
    runs, orders = [first, again], [identity, identity]
    for order in layout.orders():
        codes = codes_of(order)
        runs.append(codes)
        orders.append(order)
        if (codes != first).any():
            unstable |= codes_of(order) != codes
            varying |= codes != first
    varying &= ~unstable
    words = ""
    if varying.any():
        codes = np.array([each[varying] for each in runs[1:]])
        places = np.array([np.argsort(order)[varying] for order in orders[1:]])
        words = _dependence(layout, codes, places, expected[varying])
    return Observation(runs=tuple(runs), unstable=unstable, varying=varying, words=words)


def _dependence(layout: Layout, codes: Codes, places: npt.NDArray[np.intp], expected: Codes) -> str:
    """The cause of results that vary, by the code and the place of each in every order."""
    votes = (codes[:, None] == codes[None]).sum(axis=1)
    most = np.take_along_axis(codes, votes.argmax(axis=0)[None], axis=0)
    deviates = codes != np.where((codes == expected).any(axis=0), expected, most)
    best: tuple[float, str] = (np.inf, Stability.UNSTABLE.value)
    for stability, word, of_place in (
        (Stability.CORE_DEPENDENT, "core", layout.cores),
        (Stability.POSITION_DEPENDENT, "position", layout.positions),
    ):
        at = of_place[places]
        odd = np.unique(at[deviates])
        known = np.unique(of_place)
        if 2 * odd.size > known.size:  # it is no exception
            continue
        innocent = float(np.isin(at[~deviates], odd).mean()) if not deviates.all() else 0.0
        if innocent < best[0]:
            best = innocent, f"{stability.value}: {_named(word, odd)}"
    if best[0] == np.inf:
        return f"{Stability.POSITION_DEPENDENT.value}: with its neighbours"
    return best[1]


def _named(word: str, numbers: Places) -> str:
    few = ", ".join(str(each) for each in numbers[:_MOST_NAMED])
    more = f" and {numbers.size - _MOST_NAMED} more" if numbers.size > _MOST_NAMED else ""
    return f"{word}{'s' if numbers.size > 1 else ''} {few}{more}"


def observe_cores(read: Callable[[], npt.NDArray[Any]], times: int = 3) -> tuple[Any, str]:
    """Read a row of each core several times: the first rows, and in words their stability.

    Cores are expected to have the same.
    """
    first, *others = (read() for _ in range(times))
    if not all(np.array_equal(first, each) for each in others):
        return first, Stability.UNSTABLE.value
    rows, counts = np.unique(first.reshape(len(first), -1), axis=0, return_counts=True)
    usual = rows[counts.argmax()]
    odd = np.flatnonzero((first.reshape(len(first), -1) != usual).any(axis=1))
    return first, core_words(odd)


def core_words(odd: Places) -> str:
    """The words for cores that are not as the others; "stable" for none."""
    if not odd.size:
        return Stability.STABLE.value
    return f"{Stability.CORE_DEPENDENT.value}: {_named('core', odd)}"
