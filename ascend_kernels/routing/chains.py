"""The chains of native casts from one format to another, their functions and tile programs.

A step is a row of the matrix in one of its modes, or a row of vector instructions.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ascend_kernels.matrix import (
    MATRIX,
    CastControls,
    CastRule,
    CastStep,
    Operand,
    Resolution,
    cast_formats,
    resolve,
    rules_of,
    with_mode,
)
from ascend_kernels.program import TileProgram, lower, step_work
from ascend_kernels.routing.vector_rows import (
    VECTOR_ROWS,
    VectorRow,
    WorkStep,
    storage_format,
)
from ascend_kernels.vector_work import element_bits, vector_work
from simulator.corrections import ElementStep, Readings, corrections_of, loop
from simulator.numbers import formats as f
from simulator.numbers.convert import INF_NAN, SATURATE, Conversion
from simulator.numbers.formats import Codes, Format, IntFormat
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, Chip, inferred
from tiling.cost import COST_SETS, DEFAULT_COST_SET
from tiling.estimate import CastEstimate, estimates
from tiling.grid import Shape, as_tiles
from tiling.loads import Job
from tiling.plan import plan


@functools.cache
def route_formats(family: str) -> tuple[Format, ...]:
    """The formats of a family's matrix, and those that its vector instructions reach."""
    cast = cast_formats(family)
    reached = (row for row in VECTOR_ROWS if row.family == family)
    ends = {fmt for row in reached for fmt in (row.src, row.dst) if fmt not in cast}
    return (
        *(fmt for fmt in f.FORMATS.values() if fmt in cast),
        *(fmt for fmt in f.FORMATS.values() if fmt in ends),
    )


ROUTE_FORMATS: Final = route_formats(A2_A3)
"""The ends of the routes that the committed table has."""
MOST_STEPS: Final = 4
"""Rows of a chain. The number of chains grows some fifteenfold with each."""
MOST_WORK: Final = 12
"""Instructions of a chain."""
RouteRow = CastRule | VectorRow
Rules = Mapping[tuple[Format, Format], CastRule]


@functools.cache
def _rows(family: str, readings: Readings) -> dict[tuple[Format, Format], tuple[RouteRow, ...]]:
    matrix = rules_of(family, readings)
    beside = [row for row in VECTOR_ROWS if row.family == family]
    return {
        pair: (
            *((matrix[pair],) if pair in matrix else ()),
            *(row for row in beside if (row.src, row.dst) == pair),
        )
        for pair in dict.fromkeys([*matrix, *((row.src, row.dst) for row in beside)])
    }


_ORIGIN: Final = inferred("a chain of rows of the matrix")


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeCast:
    """A row in one of its modes; None where it has none."""

    rule: RouteRow
    mode: RoundMode | None

    @property
    def work(self) -> tuple[WorkStep, ...]:
        """The instructions; their operands are yet to be placed."""
        if isinstance(self.rule, CastRule):
            mode = self.mode or self.rule.default
            steps = (with_mode(step, mode) for step in self.rule.on)
            return tuple(step for step in steps if isinstance(step, CastStep))
        return tuple(
            dataclasses.replace(step, mode=self.mode)
            if isinstance(step, CastStep) and step.takes_mode
            else step
            for step in self.rule.work
        )

    def is_among(self, rules: Rules) -> bool:
        """The rows have the pair, and the mode for it."""
        rule = rules.get((self.rule.src, self.rule.dst))
        return rule is not None and self.mode in (rule.modes or (None,))

    @property
    def end(self) -> str:
        """Its destination and its mode in words."""
        return " ".join(word for word in (str(self.rule.dst), self.words) if word)

    def __str__(self) -> str:
        return f"{self.rule.src} -> {self.end}"

    @property
    def is_scaled(self) -> bool:
        """Numbers are multiplied before the cast, and back after it."""
        return isinstance(self.rule, VectorRow) and bool(self.rule.suffix)

    @property
    def words(self) -> str:
        """Its mode in words, such as "CAST_ODD scaled"; empty where it has none."""
        suffix = self.rule.suffix if isinstance(self.rule, VectorRow) else ""
        return " ".join(word for word in (f"CAST_{self.mode}" if self.mode else "", suffix) if word)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Native casts of which each begins with the format that the one before ends with."""

    casts: tuple[NativeCast, ...]

    @property
    def family(self) -> str:
        """The family whose instructions are the steps."""
        return self.casts[0].rule.family

    @property
    def src(self) -> Format:
        return self.casts[0].rule.src

    @property
    def dst(self) -> Format:
        return self.casts[-1].rule.dst

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats on the way, both ends included."""
        return (self.src, *(cast.rule.dst for cast in self.casts))

    @property
    def modes(self) -> tuple[RoundMode | None, ...]:
        """The mode of each cast; None where the row has none."""
        return tuple(cast.mode for cast in self.casts)

    @property
    def work(self) -> tuple[WorkStep, ...]:
        """All instructions; their operands are yet to be placed."""
        return tuple(step for cast in self.casts for step in cast.work)

    @property
    def is_native(self) -> bool:
        """Is made of rows of the matrix alone."""
        return all(isinstance(cast.rule, CastRule) for cast in self.casts)

    @property
    def is_scaled(self) -> bool:
        """Takes a scaled step."""
        return any(cast.is_scaled for cast in self.casts)

    @property
    def is_roundabout(self) -> bool:
        """Comes back to a format that it has left, or rounds integral values to integers."""
        stays = [fmt for fmt, _ in itertools.groupby(self.formats)]
        integral = [
            cast.rule.src is cast.rule.dst or isinstance(cast.rule.src, IntFormat)
            for cast in self.casts
        ]
        in_vain = any(
            cast.rule.src is cast.rule.dst and any(integral[:place])
            for place, cast in enumerate(self.casts)
        )
        return in_vain or len(set(stays)) < len(stays)

    @property
    def conversions(self) -> tuple[ElementStep, ...]:
        """The chain as work on each element."""
        return _conversions(self)

    def __str__(self) -> str:
        return " -> ".join([str(self.src), *(cast.end for cast in self.casts)])


@functools.lru_cache(maxsize=1 << 14)
def _conversions(chain: Chain) -> tuple[ElementStep, ...]:
    return tuple(one for step in chain.work for one in step_work(step, chain.family))


@functools.lru_cache(maxsize=1 << 10)
def function_of(
    conversions: tuple[ElementStep, ...], readings: Readings = ()
) -> Callable[[Codes], Codes]:
    """A chain of conversions as a function from codes to codes, by the fastest engine."""
    path = loop(conversions, corrections_of(readings))
    dtype = conversions[-1].dst.code_dtype

    def convert(codes: Codes) -> Codes:
        results = np.empty(codes.shape, dtype)
        path(np.ascontiguousarray(codes), results)
        return results

    return convert


def single_rounding(
    src: Format, dst: Format, mode: RoundMode, family: str = A2_A3, readings: Readings = ()
) -> Conversion:
    """The one rounding that a chain is held against: saturating, by the definition's NaN rule.

    Values out of range become what a cast of the pair makes of them, where the family has one.
    From FP32 to FP32 it rounds to integral values.
    """
    rule = rules_of(family, readings).get((src, dst))
    policy = INF_NAN
    if rule is not None:
        policy = rule.overflow
    elif isinstance(dst, IntFormat) or dst.nan_code is None:
        policy = SATURATE
    return Conversion(src=src, dst=dst, mode=mode, policy=policy)


def all_chains(
    src: Format,
    dst: Format,
    steps: int,
    *,
    scaled: bool = False,
    family: str = A2_A3,
    readings: Readings = (),
) -> Iterator[Chain]:
    """Yields every chain of at most `steps` rows, shorter ones first.

    Args:
        src: source format.
        dst: destination format.
        steps: 1 to `MOST_STEPS`.
        scaled: yield the chains with one scaled step instead of those without.
        family: the instructions.
        readings: those that are not the default ones.
    """
    # That codes are read as those of another format takes no instruction, and counts for none.
    rows = (row for row in VECTOR_ROWS if row.family == family)
    views = sum(row.src is src and not row.work for row in rows)
    for count in range(1, steps + views + 1):
        for path in _paths((src,), dst, count, family, readings):
            choices = (_choices(family, readings, pair) for pair in itertools.pairwise(path))
            for casts in itertools.product(*choices):
                chain = Chain(casts=casts)
                is_asked = sum(cast.is_scaled for cast in casts) == scaled
                if is_asked and chain.work and _places(_lying(chain)) is not None:
                    yield chain


@functools.cache
def _choices(
    family: str, readings: Readings, pair: tuple[Format, Format]
) -> tuple[NativeCast, ...]:
    return tuple(
        NativeCast(rule=row, mode=mode)
        for row in _rows(family, readings)[pair]
        for mode in row.modes or (None,)
    )


def _paths(
    begun: tuple[Format, ...], dst: Format, left: int, family: str, readings: Readings
) -> Iterator[tuple[Format, ...]]:
    if left == 0:
        if begun[-1] is dst:
            yield begun
        return
    for src, over in _rows(family, readings):
        is_cast = storage_format(over, family) is over
        if src is begun[-1] and (is_cast or left == 1):
            yield from _paths((*begun, over), dst, left - 1, family, readings)


def chain_named(formats: tuple[Format, ...], modes: tuple[str, ...], family: str = A2_A3) -> Chain:
    """The chain through these formats.

    Args:
        formats: both ends included.
        modes: the words of each step, as `NativeCast.words`.
        family: the instructions.

    Raises:
        KeyError: there is no such row, or it lacks the mode.
    """
    casts = []
    for pair, words in zip(itertools.pairwise(formats), modes, strict=True):
        named = [cast for cast in _choices(family, (), pair) if cast.words == words]
        if not named:
            raise KeyError(f"{pair[0]} -> {pair[1]} {words}")
        casts.append(named[0])
    return Chain(casts=tuple(casts))


def chain_of(
    formats: Sequence[Format],
    modes: Sequence[RoundMode | None],
    family: str = A2_A3,
    readings: Readings = (),
) -> Chain:
    """The chain of casts through these formats, each a row of the matrix.

    Args:
        formats: both ends included.
        modes: of each cast; None: the row's default. A row without modes takes any.
        family: the instructions.
        readings: those that are not the default ones.

    Raises:
        UnsupportedCastError: the family has no such pair.
        CastModeError: the pair lacks the mode.
    """
    controls = CastControls(readings=readings)
    found = (
        resolve(family, src, dst, mode, strict=True, controls=controls)
        for (src, dst), mode in zip(itertools.pairwise(formats), modes, strict=True)
    )
    return Chain(
        casts=tuple(
            NativeCast(rule=one.rule, mode=one.mode if one.rule.modes else None) for one in found
        )
    )


def resolution_of(chain: Chain) -> Resolution:
    """The chain as one resolved cast, all of whose steps are taken in UB.

    Results between two casts lie where there is room: in the scratch, in the input's buffer or in
    the output's. Of all ways to place them one with the narrowest scratch is taken. A cast writes
    over its own source only where its results are no wider.
    """
    work = chain.work
    moving = [number for number, step in enumerate(work) if isinstance(step, CastStep)]
    # Without a cast the last instruction takes the elements to the output.
    moving = moving or [len(work) - 1]
    places = _places(_lying(chain))
    if places is None:
        raise ValueError(f"{chain} has no room for its results in one scratch")
    family = chain.family
    src, dst = storage_format(chain.src, family), storage_format(chain.dst, family)
    rule = MATRIX[family].get((src, dst)) or CastRule(
        family=family,
        src=src,
        dst=dst,
        modes=(),
        default=None,
        overflow=SATURATE,
        saturation=SATURATE,
        saturation_with_nan=SATURATE,
        on=(),
        off=(),
        origin=_ORIGIN,
    )
    steps = []
    left = iter(itertools.pairwise(places))
    place = Operand.IN
    for number, step in enumerate(work):
        source, place = next(left) if number in moving else (place, place)
        steps.append(dataclasses.replace(step, source=source, target=place))
    return Resolution(rule=rule, mode=chain.modes[-1], steps=tuple(steps), diagnostics=())


def _lying(chain: Chain) -> tuple[Format, ...]:
    """The formats as which elements lie in UB: at first, and after each cast."""
    formats = [step.dst for step in chain.work if isinstance(step, CastStep)]
    last = storage_format(chain.dst, chain.family)
    return storage_format(chain.src, chain.family), *(formats or [last])


@functools.lru_cache(maxsize=1 << 12)
def _places(formats: tuple[Format, ...]) -> tuple[Operand, ...] | None:
    """The places of elements in turn, with the narrowest scratch; None where there is no room."""
    anywhere = (Operand.TMP, Operand.IN, Operand.OUT)
    placements = (
        (Operand.IN, *between, Operand.OUT)
        for between in itertools.product(anywhere, repeat=len(formats) - 2)
    )
    fitting = (places for places in placements if _fits(formats, places))
    return min(fitting, key=functools.partial(_tmp_bits, formats), default=None)


def _fits(formats: tuple[Format, ...], places: tuple[Operand, ...]) -> bool:
    room = {Operand.IN: formats[0].bits, Operand.OUT: formats[-1].bits, Operand.TMP: 64}
    lying = list(zip(formats, places, strict=True))
    return all(fmt.bits <= room[place] for fmt, place in lying) and all(
        place is not next_place or next_fmt.bits <= fmt.bits
        for (fmt, place), (next_fmt, next_place) in itertools.pairwise(lying)
    )


def _tmp_bits(formats: tuple[Format, ...], places: tuple[Operand, ...]) -> int:
    lying = zip(formats, places, strict=True)
    return max((fmt.bits for fmt, place in lying if place is Operand.TMP), default=0)


def route_program(
    chain: Chain, shape: Shape, tile_shape: Shape | None, chip: Chip, *, strict: bool = False
) -> TileProgram:
    """Plan and lower a chain as one program.

    Args:
        chain: the casts.
        shape: of the tensor.
        tile_shape: None: the planner chooses.
        chip: to plan for.
        strict: as for `tiling.plan.plan`.

    Raises:
        ShapeError, TileShapeError: as `tiling.plan.plan`.
    """
    resolution = resolution_of(chain)
    bits, work = element_bits(resolution), vector_work(resolution)
    tiles = plan(shape, tile_shape, bits, chip, strict=strict, work=work)
    return lower(tiles, resolution)


def route_estimate(program: TileProgram) -> CastEstimate:
    """The estimated cost of a program under the default cost set, with the range over all."""
    tiles = program.plan
    work = vector_work(program.resolution, program.controls)
    job = Job(shape=tiles.shape, bits=tiles.bits, work=work, chip=tiles.chip)
    sets = COST_SETS.values()
    (estimate,) = estimates(job, as_tiles([tiles.tile_shape]), DEFAULT_COST_SET, sets)
    return estimate
