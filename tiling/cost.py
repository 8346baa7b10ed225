"""The figures that costs are computed from, in named sets, and the cycles of an instruction.

None of these figures was measured by this project, and nothing computed from them is the time of a
device. A set says where each of its figures comes from; whoever shows a result names the set.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from tiling.chips import Copied, Source, Standing, chosen, documented, inferred

NOT_MEASURED: Final = "no figure was measured on a device by this project"
"""Has to stand beside every result."""
STARTUP_RULE: Final = "is_startup_per_stream"
"""The one field of a set that is no number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostParameters(Copied):
    """A named set of figures.

    Attributes:
        name: of the set.
        clock_hz: core clock, cycles per second.
        read_startup_cycles: paid by every copy from GM to UB, before its first byte.
        read_bytes_per_cycle: what one core alone can read of GM.
        write_startup_cycles: as for reading, from UB to GM.
        write_bytes_per_cycle: what one core alone can write to GM.
        gm_bytes_per_second: GM traffic of the whole chip, in and out together; the busy cores get
            equal shares of it, whatever each of them could do alone.
        gm_line_loss: how much is lost, 0 to 1, of what blocks lose at worst that do not begin and
            end at whole 512 B lines of GM: three tenths of the bandwidth, at most a line a block.
        vector_startup_cycles: paid by vector instructions before their first repeat.
        is_startup_per_stream: paid by the first one after a flag or a barrier only, instead of by
            each of them.
        cast_cycles_per_repeat: Cast, for 256 B of the wider type.
        bitwise_cycles_per_repeat: And, Duplicate, Maxs, Mins, Muls and shifts, for 256 B.
        flag_cycles: SetFlag, and WaitFlag once the flag is set.
        barrier_cycles: PipeBarrier, once what it waits for is done.
        scalar_cycles: a register set by the scalar pipe.
        issue_cycles: what the scalar pipe needs to hand one instruction to another pipe.
        sources: the origin of each figure, by field name.
    """

    name: str
    clock_hz: float
    read_startup_cycles: float
    read_bytes_per_cycle: float
    write_startup_cycles: float
    write_bytes_per_cycle: float
    gm_bytes_per_second: float
    gm_line_loss: float
    vector_startup_cycles: float
    is_startup_per_stream: bool
    cast_cycles_per_repeat: float
    bitwise_cycles_per_repeat: float
    flag_cycles: float
    barrier_cycles: float
    scalar_cycles: float
    issue_cycles: float
    sources: Mapping[str, Source]

    def __post_init__(self) -> None:
        for field in figure_names():
            value = getattr(self, field)
            is_divisor = not field.endswith(("_cycles", "_per_repeat", "_loss"))
            most = 1.0 if field.endswith("_loss") else math.inf
            if not (math.isfinite(value) and 0 <= value <= most) or (is_divisor and value == 0):
                wanted = "positive" if is_divisor else "0 or more"
                wanted = wanted if most > 1 else "0 to 1"
                raise ValueError(f"cost set {self.name}: {field} must be {wanted}, is {value}")
        if not isinstance(self.is_startup_per_stream, bool):
            found = self.is_startup_per_stream
            raise ValueError(f"cost set {self.name}: {STARTUP_RULE} must be a bool, is {found!r}")
        missing = {*figure_names(), STARTUP_RULE} - set(self.sources)
        if missing:
            raise ValueError(f"cost set {self.name}: no source for {', '.join(sorted(missing))}")

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    @property
    def standing(self) -> str:
        """The words that stand beside every result: how many figures were measured, and where."""
        measured = [x.text for x in self.sources.values() if x.standing is Standing.MEASURED]
        if not measured:
            return NOT_MEASURED
        sources = "; ".join(dict.fromkeys(measured))
        return f"{len(measured)} of {len(figure_names()) + 1} figures measured: {sources}"

    def replaced(self, name: str, **figures: float) -> CostParameters:
        """This set under another name, with figures of the user's own.

        Raises:
            ValueError: a set comes with this name, a figure has no meaning, or there is none of
                that name; the text lists the known ones.
        """
        if name in COST_SETS:
            raise ValueError(f"{name!r} is a set of its own; give the changed one another name")
        unknown = set(figures) - {*figure_names(), STARTUP_RULE}
        if unknown:
            known = ", ".join((*figure_names(), STARTUP_RULE))
            raise ValueError(f"no figure {', '.join(sorted(unknown))}; known: {known}")
        mine = Source(text="set by the user", standing=Standing.CHOSEN)
        return _variant(self, name, mine, **figures)


def figure_names() -> tuple[str, ...]:
    """The fields of a set that are numbers."""
    others = ("name", "sources", STARTUP_RULE)
    return tuple(f.name for f in dataclasses.fields(CostParameters) if f.name not in others)


def _variant(base: CostParameters, name: str, source: Source, **figures: float) -> CostParameters:
    """A set with some figures, all from one source, in place of another set's."""
    names = (*figure_names(), STARTUP_RULE)
    fields: dict[str, Any] = {field: getattr(base, field) for field in names}
    return CostParameters(
        name=name,
        sources=MappingProxyType({**base.sources, **dict.fromkeys(figures, source)}),
        **(fields | figures),
    )


def _cost_set(name: str, **figures: tuple[float, Source]) -> CostParameters:
    """A set of figures, each with its source."""
    fields: dict[str, Any] = {field: figure for field, (figure, _) in figures.items()}
    sources = MappingProxyType({field: source for field, (_, source) in figures.items()})
    return CostParameters(name=name, sources=sources, **fields)


_CLOCK: Final = documented("CANN asc-devkit, add_high_performance sample: 1.85 GHz")
_GM: Final = documented(
    "CANN asc-devkit, guide on performance data: 1.6 to 1.8 TB/s on a processor it does not name "
    "(0.8 on low-end parts); the lower end. L2 hits are faster and not modelled"
)
_LINES: Final = inferred(
    "CANN asc-devkit, guide on memory access: between addresses aligned to 32 B one core of an A2 "
    "reaches, at worst, 70 % of its bandwidth between those aligned to 512 B. Taken for all blocks "
    "off 512 B, all cores and A3; a long block is taken to lose no more than one line of 512 B"
)
_SHORT: Final = inferred(
    "CANN asc-devkit, guide on memory access: copies of 16 KB and more usually get the best of the "
    "bandwidth; taken as nine tenths of 128 bytes a cycle at 16 KB"
)
_SILENT: Final = chosen("the documents state none: 0")
_ISSUE: Final = chosen("no figure is known: issuing is free")
_FLAGS: Final = inferred("pto-isa, cce_costmodel_sync.hpp: 1 cycle each, as written into the model")
_VCONV: Final = inferred(
    "pto-isa f35e7f60, cce_costmodel_core.hpp, quotes 0.90 x repeat + 27 as measured on 910B3 "
    "(FP32 to FP16, 1 to 128 repeats, R2 0.99); taken for every pair"
)
_TLOAD: Final = inferred(
    "recovered from the 10 TLOAD figures stored in pto-isa's tests: 264 + bytes / 128 is exact on "
    "8 of them; which device gave them is not stated"
)
_HILL: Final = inferred(
    "pto-isa, arch_config.hpp, Hill fit said to be of a 910B3: 107.3 + bytes / 16.36. Its flat "
    "model has 109.4 bytes a cycle, 6.7 times as much: unsettled"
)

_DOCUMENTED: Final = _cost_set(
    "documented",
    clock_hz=(1.85e9, _CLOCK),
    read_startup_cycles=(14.2, _SHORT),
    read_bytes_per_cycle=(
        128.0,
        documented("pto-isa, docs/isa/vector/vector-load-store.md: 128 bytes a cycle"),
    ),
    write_startup_cycles=(14.2, _SHORT),
    write_bytes_per_cycle=(128.0, chosen("the documents state none: as for reading")),
    gm_bytes_per_second=(1.6e12, _GM),
    gm_line_loss=(1.0, _LINES),
    vector_startup_cycles=(0.0, _SILENT),
    is_startup_per_stream=(True, chosen("no matter: the start-up is 0")),
    cast_cycles_per_repeat=(
        1.0,
        documented(
            "CANN asc-devkit, table of theoretical vector performance: 64 elements a cycle "
            "where the wider type has 4 B, 128 up to 2 B, 32 with 8 B"
        ),
    ),
    bitwise_cycles_per_repeat=(1.0, chosen("as for Cast")),
    flag_cycles=(0.0, _SILENT),
    barrier_cycles=(0.0, _SILENT),
    scalar_cycles=(0.0, _SILENT),
    issue_cycles=(0.0, _ISSUE),
)

_PTO_ISA: Final = _cost_set(
    "pto-isa-910b3",
    clock_hz=(1.85e9, _CLOCK),
    read_startup_cycles=(264.0, _TLOAD),
    read_bytes_per_cycle=(128.0, _TLOAD),
    write_startup_cycles=(107.3, _HILL),
    write_bytes_per_cycle=(16.36, _HILL),
    gm_bytes_per_second=(1.6e12, _GM),
    gm_line_loss=(1.0, _LINES),
    vector_startup_cycles=(27.0, _VCONV),
    is_startup_per_stream=(
        True,
        inferred(
            "pto-isa f35e7f60, cce_costmodel_core.hpp: head and tail once per stream, until a "
            "synchronization"
        ),
    ),
    cast_cycles_per_repeat=(0.90, _VCONV),
    bitwise_cycles_per_repeat=(
        2.03,
        inferred(
            "pto-isa f35e7f60, cce_costmodel_vector_compute.hpp, quotes 2.03 x repeat + 20 for "
            "TAND of INT16 on 910B3; its start-up is taken as Cast's, Duplicate as And"
        ),
    ),
    flag_cycles=(1.0, _FLAGS),
    barrier_cycles=(1.0, _FLAGS),
    scalar_cycles=(1.0, _FLAGS),
    issue_cycles=(0.0, _ISSUE),
)

_DOCUMENTED_UPPER: Final = _variant(
    _DOCUMENTED,
    "documented-upper",
    documented(
        "CANN asc-devkit, guide on performance data: 1.6 to 1.8 TB/s on a processor it does not "
        "name; the upper end"
    ),
    gm_bytes_per_second=1.8e12,
)
_FLAT_WRITE: Final = _variant(
    _PTO_ISA,
    "pto-isa-flat-write",
    inferred(
        "pto-isa, arch_config.hpp, flat model: 188.46 GiB/s, that is 109.382 bytes a cycle, and no "
        "start-up. Its Hill fit has 16.36: unsettled"
    ),
    write_startup_cycles=0.0,
    write_bytes_per_cycle=109.382,
)
_HILL_READ: Final = _variant(
    _PTO_ISA,
    "pto-isa-hill-read",
    inferred(
        "pto-isa, arch_config.hpp, Hill fit said to be of a 910B3: 213.6 + bytes / 143.45; 13.6 % "
        "off the figures it was fitted to"
    ),
    read_startup_cycles=213.6,
    read_bytes_per_cycle=143.45,
)
_ANY_ADDRESS: Final = _variant(
    _PTO_ISA,
    "pto-isa-any-address",
    inferred("pto-isa's models of copies know no alignment of addresses in GM"),
    gm_line_loss=0.0,
)
_BANK_CONFLICTS: Final = _variant(
    _PTO_ISA,
    "bank-conflicts",
    inferred(
        "CANN asc-devkit, sample bank_conflict_ub (A2, A3): Add takes 3751 cycles instead of 2389 "
        "where it reads and writes in one bank of UB at a time, 4167 where it reads twice in one "
        "group of banks. Taken for every repeat of Cast and of And: how often they meet depends on "
        "addresses, which this set does not look at"
    ),
    cast_cycles_per_repeat=1.41,
    bitwise_cycles_per_repeat=3.54,
)

COST_SETS: Final[Mapping[str, CostParameters]] = MappingProxyType(
    {
        parameters.name: parameters
        for parameters in (
            _DOCUMENTED,
            _PTO_ISA,
            _DOCUMENTED_UPPER,
            _FLAT_WRITE,
            _HILL_READ,
            _ANY_ADDRESS,
            _BANK_CONFLICTS,
        )
    }
)
"""The sets that a range is over. Where sources disagree on a figure, each has a set of its own."""

DEFAULT_COST_SET: Final = _PTO_ISA
"""Used unless the user names another (chosen: without a start-up the smallest tile looks best)."""


def cost_set(name: str) -> CostParameters:
    """Look a set up by its name.

    Raises:
        ValueError: no such set; the text lists the known ones.
    """
    try:
        return COST_SETS[name]
    except KeyError:
        raise ValueError(f"unknown cost set {name!r}; known: {', '.join(COST_SETS)}") from None


class Direction(enum.Enum):
    """The direction of a copy."""

    READ = "GM to UB"
    WRITE = "UB to GM"


def dma_startup_cycles(parameters: CostParameters, direction: Direction) -> float:
    """Cycles from the start of a copy to its first byte."""
    if direction is Direction.READ:
        return parameters.read_startup_cycles
    return parameters.write_startup_cycles


def gm_share_cycles(parameters: CostParameters, size_bytes: float, busy_cores: int) -> float:
    """Cycles that `size_bytes` take of one core's share of the chip's GM bandwidth.

    Raises:
        ValueError: a negative size, or no busy core.
    """
    if size_bytes < 0:
        raise ValueError(f"a copy has 0 bytes or more, not {size_bytes}")
    if busy_cores < 1:
        raise ValueError(f"a copy runs on at least 1 busy core, not {busy_cores}")
    return size_bytes * busy_cores * parameters.clock_hz / parameters.gm_bytes_per_second


def dma_cycles(
    parameters: CostParameters, direction: Direction, size_bytes: float, busy_cores: int = 1
) -> float:
    """Cycles of one copy instruction that has its core's share of GM to itself.

    Args:
        parameters: the figures.
        direction: which way.
        size_bytes: bytes it moves, without padding, with what they lose off the lines of GM; a
            copy of none does nothing.
        busy_cores: cores that use GM at the same time.

    Raises:
        ValueError: a negative size, or no busy core.
    """
    shared = gm_share_cycles(parameters, size_bytes, busy_cores)
    if size_bytes == 0:
        return 0.0
    is_read = direction is Direction.READ
    rate = parameters.read_bytes_per_cycle if is_read else parameters.write_bytes_per_cycle
    return dma_startup_cycles(parameters, direction) + max(size_bytes / rate, shared)


def cast_cycles(parameters: CostParameters, repeats: int, *, starts_stream: bool) -> float:
    """Cycles of one Cast; one of no repeats does nothing.

    Args:
        parameters: the figures.
        repeats: stretches of 256 B of the wider type, the last one whole or not.
        starts_stream: no vector instruction came before it since the last flag or barrier.

    Raises:
        ValueError: negative repeats.
    """
    return _vector_cycles(parameters, parameters.cast_cycles_per_repeat, repeats, starts_stream)


def bitwise_cycles(parameters: CostParameters, repeats: int, *, starts_stream: bool) -> float:
    """Cycles of one And or Duplicate, as for `cast_cycles`."""
    return _vector_cycles(parameters, parameters.bitwise_cycles_per_repeat, repeats, starts_stream)


def _vector_cycles(
    parameters: CostParameters, per_repeat: float, repeats: int, starts_stream: bool
) -> float:
    if repeats < 0:
        raise ValueError(f"a vector instruction has 0 repeats or more, not {repeats}")
    if repeats == 0:
        return 0.0
    pays = starts_stream or not parameters.is_startup_per_stream
    return per_repeat * repeats + (parameters.vector_startup_cycles if pays else 0.0)
