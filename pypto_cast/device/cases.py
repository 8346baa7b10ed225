"""The casts that a device check makes: programs with codes, piece by piece."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from ascend_kernels.instances import TARGETS
from ascend_kernels.matrix import MATRIX, CastControls, CastRule, resolve
from ascend_kernels.program import TileProgram, lower
from ascend_kernels.routing.chain_ranking import chain_of_text
from ascend_kernels.routing.chains import route_program
from ascend_kernels.routing.verdict_table import recorded_rows
from ascend_kernels.vector_work import element_bits
from pypto_cast.device.behaviour import CheckedCast, casts_of
from simulator.numbers.convert import codes_of
from simulator.numbers.formats import FORMATS, FP32, INT4, INT32, INT64, Codes, Format, IntFormat
from simulator.numbers.rounding import boundary_codes
from tiling.chips import A2_A3, ASCEND_950, Chip
from tiling.grid import Shape
from tiling.plan import plan
from tiling.ub import padded_row_bytes

RANDOM_CODES: Final = 1_000_000
"""Random codes of a source of more than 16 bits, for each cast."""
_SETTLING: Final[Mapping[Format, tuple[float, ...]]] = {
    FP32: (65519.99, 65520.0, 65521.0, 70000.0, 1e30, 0.3),
    INT64: (2**24 + 1, 2**53 + 1, 2**63 - 1),
    INT32: (2049, 2051, 65519, 65520),
}
"""Numbers that settle a fact each; cast with both signs, also if the boundaries lack them."""
_TILE: Final = 4096
_PIECE: Final = 1 << 24
_SEED: Final = 20261122
NIBBLES: Final = "nibbles of INT4"
FP4_NIBBLES: Final = "nibbles of FP4"
NIBBLE_FACTS: Final[Mapping[str, str]] = {A2_A3: NIBBLES, ASCEND_950: FP4_NIBBLES}
"""The fact about elements of four bits, by family."""
SATMODE: Final = "SatMode of a Cast with CTRL[60] = 0"
SATMODE_ASSUMED: Final = "saturates as CTRL[48] = 0 has all casts saturate, though CTRL[48] is 1"
"""CANN asc-devkit, SetCtrlSpr, table 3."""
SATMODE_FACTS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {A2_A3: MappingProxyType({}), ASCEND_950: MappingProxyType({SATMODE: SATMODE_ASSUMED})}
)
"""By family."""
PADDING: Final = "padding of rows"
UB_LIMIT: Final = "UB at its limits"
ROWS: Final = "many rows"
STRIDES: Final = "strided copies of several blocks"
MISALIGNED: Final = "GM addresses within a block"
AXES: Final = "three and four axes"
TAILS: Final = "tails of tiles"
REPEATS: Final = "Cast by repeats"
SHAPE_FACTS: Final[Mapping[str, str]] = {
    PADDING: "rows that end within a block of 32 B change nothing beyond their end",
    UB_LIMIT: "tiles up to the whole of UB, and those cut into passes, give the same codes",
    ROWS: "tiles of 32 and of 255 rows give the same codes",
    STRIDES: "tiles narrower than the tensor give the same codes",
    MISALIGNED: "rows that begin in GM at no multiple of 32 B give the same codes",
    AXES: "tiles of three and four axes give the same codes",
    TAILS: "tails of tiles, such as 3 x 7, give the same codes",
    REPEATS: "rows that lie differently far apart on both sides give the same codes",
}
"""The facts that shapes are about, and the assumption of each."""
ROUTES: Final = "routes"
ROUTES_ASSUMED: Final = "a chain of casts gives the codes of its casts one after another"
_ROUTE_CODES: Final = 4096
"""Of each route, at most; one of two rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCase:
    """One launch.

    Attributes:
        program: the cast.
        codes: its input, 1-D.
        about: the fact that its differences tell of; None: by element, as behaviour.py has it.
        is_once: it runs once where all its results are as assumed.
        parts: of a route, its casts alone.
        is_relative: its results are expected to be those of `parts` on the same device.
        name: in tables.
    """

    program: TileProgram
    codes: Codes
    about: str | None = None
    is_once: bool = False
    parts: tuple[CheckedCast, ...] = ()
    is_relative: bool = False
    name: str = ""

    @property
    def cast(self) -> CheckedCast:
        """The cast, whatever its tiles."""
        program = self.program
        return CheckedCast(resolution=program.resolution, controls=program.controls)

    def alone(self, run: Callable[[CheckCase], Codes]) -> Codes:
        """The results by the casts alone, along one axis: differences there are not `about`."""
        codes = self.codes
        for cast in self.parts or (self.cast,):
            codes = run(_plain(cast, codes, self.program.chip))
        return codes

    def __str__(self) -> str:
        return self.name or str(self.cast)


def cast_cases(
    chip: Chip, *, exhaustive: bool = False, random_codes: int = RANDOM_CODES
) -> Iterator[CheckCase]:
    """Every pair, mode, saturation mode and state of the control bits, then shapes, then routes.

    Args:
        chip: the device's.
        exhaustive: all codes of 32-bit sources once, beside boundaries and random codes.
        random_codes: how many of them.
    """
    for cast in casts_of(chip.isa).values():
        yield from code_cases(cast, chip, exhaustive=exhaustive, random_codes=random_codes)
    for rule in MATRIX[chip.isa].values():
        yield from satmode_cases(rule, chip)
        yield from shape_cases(rule, chip)
    for src in route_sources(chip.isa):
        yield from route_cases(src, chip)


def code_cases(
    cast: CheckedCast, chip: Chip, *, exhaustive: bool, random_codes: int = RANDOM_CODES
) -> Iterator[CheckCase]:
    """The codes of a cast, in launches of one axis; arguments as of `cast_cases`."""
    yield _plain(cast, _sample(cast.src, random_codes), chip)
    if exhaustive and cast.src.bits == 32:
        for codes in all_codes_of_32_bits():
            yield dataclasses.replace(_plain(cast, codes, chip), is_once=True)


def _plain(cast: CheckedCast, codes: Codes, chip: Chip) -> CheckCase:
    tile = (min(_TILE, codes.size),)
    program = _program((codes.size,), tile, cast, chip)
    return CheckCase(program=program, codes=codes)


def all_codes_of_32_bits() -> Iterator[Codes]:
    """Every code of a format of 32 bits, ascending, in pieces that a launch takes."""
    for first in range(0, 1 << 32, _PIECE):
        yield np.arange(first, first + _PIECE, dtype=np.uint32)


@functools.lru_cache(maxsize=2)
def _sample(src: Format, random_codes: int) -> Codes:
    """Boundaries and random codes, an even number of them; all codes of at most 16 bits."""
    codes = boundary_codes(src)
    if src.bits > 16:
        words = np.random.default_rng(_SEED).bytes(random_codes * src.code_dtype.itemsize)
        settling = np.array(_SETTLING.get(src, ())).astype(src.dtype)
        some = codes_of(np.concatenate([settling, -settling]), src)
        codes = np.concatenate([codes, some, np.frombuffer(words, src.code_dtype)])
    even = codes[: codes.size // 2 * 2]
    even.flags.writeable = False
    return even


def shape_cases(rule: CastRule, chip: Chip) -> Iterator[CheckCase]:
    """The shapes of a pair, two tiles at least: they lie on two cores."""
    cast = CheckedCast(resolution=resolve(rule.family, rule.src, rule.dst, rule.default))
    codes = boundary_codes(rule.src)
    for about, shapes in _shapes(rule, chip).items():
        for shape, tile in shapes:
            count = math.prod(shape)
            some = np.resize(codes[:: max(1, codes.size // count)], count)
            program = _program(shape, tile, cast, chip)
            yield CheckCase(program=program, codes=some, about=about)


def satmode_cases(rule: CastRule, chip: Chip) -> Iterator[CheckCase]:
    """A cast of a pair that saturates by its own SatMode, though CTRL[48] keeps infinities.

    Its results are expected to be those of the same cast by the bits. No kernel asks for a SatMode
    that does not saturate: Cast of AscendC's memory API has none.
    """
    own = CastControls(global_saturation=False)
    if not SATMODE_FACTS[chip.isa] or not rule.has_satmode(own):
        return
    resolution = resolve(chip.isa, rule.src, rule.dst, rule.default, controls=own)
    case = _plain(CheckedCast(resolution=resolution, controls=own), _sample(rule.src, 0), chip)
    by_bits = CastControls(inf_nan_mode=isinstance(rule.dst, IntFormat))
    yield dataclasses.replace(
        case,
        about=SATMODE,
        parts=(CheckedCast(resolution=resolution, controls=by_bits),),
        is_relative=True,
    )


def _shapes(rule: CastRule, chip: Chip) -> dict[str, list[tuple[Shape, Shape]]]:
    """Tensors and their tiles, by the fact that they are about."""
    least = 2 if min(rule.src.bits, rule.dst.bits) < 8 else 1
    bits = (rule.src.bits, rule.dst.bits)
    limits = [
        ub_bytes * 8 // (2 * sum(bits)) // 64 * 64 - less
        for ub_bytes in (chip.ub_safe_bytes, chip.ub_bytes - 32 * sum(bits), chip.ub_bytes)
        for less in (0, 64)
    ]
    narrow, odd = 8 - least, 32 + least
    row_bytes = sum(padded_row_bytes(narrow, each, chip) for each in bits)
    tall = chip.ub_safe_bytes // (2 * row_bytes)
    return {
        PADDING: [((6, cols), (3, cols)) for cols in range(least, 65, least)],
        UB_LIMIT: [((4, cols), (2, cols)) for cols in limits],
        ROWS: [((64, 48), (32, 48)), ((510, 24), (255, 24))],
        STRIDES: [((24, 192), (12, 64))],
        MISALIGNED: [((24, 180), (12, 60)), ((9, 2 * odd), (3, odd))],
        AXES: [((4, 6, 32), (2, 3, 16)), ((4, 4, 6, 32), (2, 2, 3, 16))],
        TAILS: [((13, 16 + narrow), (5, 16)), ((7, 5, 32 + narrow), (2, 3, 32))],
        REPEATS: [((2 * tall, 2 * narrow), (tall, narrow))],
    }


def route_cases(src: Format, chip: Chip) -> Iterator[CheckCase]:
    """The best route from a format to each that it leads to by casts alone, with boundaries."""
    family = chip.isa
    edges = boundary_codes(src)
    codes = edges[:: -(-edges.size // _ROUTE_CODES)]
    codes = codes[: codes.size // 4 * 4]
    for name in _best_routes(family)[src]:
        chain = chain_of_text(name)
        shape = (2, codes.size // 2)
        yield CheckCase(
            program=route_program(chain, shape, (1, shape[1]), chip),
            codes=codes,
            about=ROUTES,
            parts=tuple(
                CheckedCast(resolution=resolve(family, cast.rule.src, cast.rule.dst, cast.mode))
                for cast in chain.casts
            ),
            name=name,
        )


@functools.cache
def _best_routes(family: str) -> Mapping[Format, tuple[str, ...]]:
    """The routes of two casts and more, of each pair the best of its first mode, by source.

    None passes through INT4, whose elements share bytes. The kernels of the 950 have no routes.
    """
    if not TARGETS[family].route_instances:
        return MappingProxyType({})
    found: dict[tuple[str, str], str] = {}
    for (src, dst, _), routes in recorded_rows(family).items():
        for each in routes:
            chain = chain_of_text(each.route)
            is_of_casts = all(isinstance(cast.rule, CastRule) for cast in chain.casts)
            formats = {cast.rule.src for cast in chain.casts} | {chain.dst}
            if is_of_casts and len(chain.casts) > 1 and INT4 not in formats:
                found.setdefault((src, dst), each.route)
    by_source: dict[Format, tuple[str, ...]] = {}
    for (src, _), name in found.items():
        by_source[FORMATS[src]] = (*by_source.get(FORMATS[src], ()), name)
    return MappingProxyType(by_source)


def route_sources(family: str) -> tuple[Format, ...]:
    """The formats that routes of a family begin with."""
    return tuple(_best_routes(family))


def _program(shape: Shape, tile: Shape, cast: CheckedCast, chip: Chip) -> TileProgram:
    tiles = plan(shape, tile, element_bits(cast.resolution), chip)
    return lower(tiles, cast.resolution, cast.controls)
