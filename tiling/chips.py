"""The chips: one row per chip, a source per figure.

None of these figures was measured by this project. The standing says how far each can be trusted:
documented by the vendor, inferred from something documented, or chosen here. What a device check
measured comes from a facts file.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

A2_A3: Final = "A2/A3"
"""The family whose chips are the Ascend 910B and 910_93."""
ASCEND_950: Final = "950"
"""The family of NPU architecture 3510."""


SIMT_BYTES: Final[Mapping[str, tuple[int, int]]] = {ASCEND_950: (32 * 1024, 128 * 1024)}
"""By family, the least and the most of UB that SIMT takes as its data cache; documented: CANN
asc-devkit, NPU architecture 3510."""


class Standing(enum.Enum):
    """The standing of a hardware figure: documented, inferred, chosen or measured."""

    DOCUMENTED = "documented"
    INFERRED = "inferred"
    CHOSEN = "chosen"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The origin of a figure and its standing."""

    text: str
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A record that is pickled and copied by its fields: its read-only tables could not be."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[type[Copied], dict[str, Any]]]:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        tables = {name: dict(x) for name, x in fields.items() if isinstance(x, MappingProxyType)}
        return _copied, (type(self), fields | tables)


def _copied(kind: type[Copied], fields: dict[str, Any]) -> Copied:
    tables = {name: MappingProxyType(x) for name, x in fields.items() if isinstance(x, dict)}
    return kind(**(fields | tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip(Copied):
    """The figures of a chip that a tile program depends on.

    Attributes:
        name: the vendor's SoC name.
        family: "A2", "A3" or "950".
        ub_bytes: physical on-chip vector memory (UB) of one vector core.
        ub_safe_bytes: the part of it that the vendor leaves to user code.
        block_bytes: unit of UB addresses and of copy strides.
        repeat_bytes: what one repeat of a vector instruction covers, of the wider type.
        max_repeat: repeats of one vector instruction.
        vector_cores: AIV cores (per die on A3).
        l1_bytes: L1 of one cube core, which holds tiles of both matrices.
        l0a_bytes: L0A, which holds tiles of the left matrix.
        l0b_bytes: L0B, of the right matrix.
        l0c_bytes: L0C, where sums add up.
        bias_table_bytes: the BiasTable buffer.
        fixpipe_bytes: the Fixpipe buffer, which holds scales.
        clock_hz: core clock.
        sources: the origin of each figure, by field name.
        isa: the family whose instructions it has, which keys the tables of casts; A2 and A3 share
            one.
    """

    name: str
    family: str
    ub_bytes: int
    ub_safe_bytes: int
    block_bytes: int
    repeat_bytes: int
    max_repeat: int
    vector_cores: int
    l1_bytes: int
    l0a_bytes: int
    l0b_bytes: int
    l0c_bytes: int
    bias_table_bytes: int
    fixpipe_bytes: int
    clock_hz: int
    sources: Mapping[str, Source]
    isa: str = A2_A3

    def with_simt(self, simt_bytes: int) -> Chip:
        """The chip with so much of UB given to the data cache of SIMT; 0: itself.

        Raises:
            ValueError: it has no SIMT, or another size than whole blocks within its limits.
        """
        if not simt_bytes:
            return self
        least, most = SIMT_BYTES.get(self.isa, (0, 0))
        if not least <= simt_bytes <= most or simt_bytes % self.block_bytes:
            limits = f"takes {least} to {most} B of UB, in blocks of {self.block_bytes} B"
            has = limits if most else "is not simulated"
            raise ValueError(f"SIMT of {self} {has}; simt_bytes is {simt_bytes}")
        return dataclasses.replace(
            self,
            ub_bytes=self.ub_bytes - simt_bytes,
            ub_safe_bytes=self.ub_safe_bytes - simt_bytes,
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


def documented(text: str) -> Source:
    return Source(text=text, standing=Standing.DOCUMENTED)


def inferred(text: str) -> Source:
    return Source(text=text, standing=Standing.INFERRED)


def chosen(text: str) -> Source:
    return Source(text=text, standing=Standing.CHOSEN)


_ARCHITECTURE: Final = documented(
    "CANN asc-devkit, NPU architecture 2201 (192 KB UB; 184 KB less reserve for user code)"
)
_INSTRUCTIONS: Final = documented(
    "CANN asc-devkit, SIMD programming guide: 8 blocks of 32 B a repeat, repeatTime <= 255"
)
_MEMORY: Final = documented("CANN asc-devkit, NPU architecture 2201, table of storage units")
_CORES: Final = documented("AscendNPU-IR, HACC NPUTargetSpec.td")
_CORES_9363: Final = inferred(
    "as Ascend910_9362; torch_npu 2.13 (NpuVariables.h) names the chip, no source its cores"
)
_CLOCK_48: Final = documented("CANN asc-devkit, add_high_performance sample (1.85 GHz, 48 cores)")
_CLOCK_40: Final = inferred(
    "as the 48-core parts; pto-isa's cost model uses 1.85 GHz for all of them"
)
_FIGURES: Final = {
    "ub_bytes": (196608, _ARCHITECTURE),
    "ub_safe_bytes": (188160, _ARCHITECTURE),
    "block_bytes": (32, _INSTRUCTIONS),
    "repeat_bytes": (256, _INSTRUCTIONS),
    "max_repeat": (255, _INSTRUCTIONS),
    "l1_bytes": (512 * 1024, _MEMORY),
    "l0a_bytes": (64 * 1024, _MEMORY),
    "l0b_bytes": (64 * 1024, _MEMORY),
    "l0c_bytes": (128 * 1024, _MEMORY),
    "bias_table_bytes": (1024, _MEMORY),
    "fixpipe_bytes": (2048, _MEMORY),
}
"""The figures that all chips of A2 and A3 share."""

_ARCHITECTURE_950: Final = documented(
    "CANN asc-devkit, NPU architecture 3510 (256 KB UB, of which 6 KB of stack and 2 KB for the "
    "API are set aside unless a compile option gives them back)"
)
_MEMORY_950: Final = documented("CANN asc-devkit, NPU architecture 3510, table of storage units")
_PLATFORM_950: Final = documented(
    "upstream pypto 883e7dfb0, platform_config (950PR_958x, 950DT_957x)"
)
_FIGURES_950: Final = {
    "ub_bytes": (253952, _ARCHITECTURE_950),
    "ub_safe_bytes": (253952, _ARCHITECTURE_950),
    "block_bytes": (32, _INSTRUCTIONS),
    "repeat_bytes": (256, _INSTRUCTIONS),
    "max_repeat": (255, _INSTRUCTIONS),
    "l1_bytes": (512 * 1024, _MEMORY_950),
    "l0a_bytes": (64 * 1024, _MEMORY_950),
    "l0b_bytes": (64 * 1024, _MEMORY_950),
    "l0c_bytes": (256 * 1024, _MEMORY_950),
    "bias_table_bytes": (4 * 1024, _MEMORY_950),
    "fixpipe_bytes": (4 * 1024, _MEMORY_950),
}
"""The figures that the chips of the 950 share."""


def _chip(name: str, family: str, vector_cores: int, cores_source: Source = _CORES) -> Chip:
    clock_source = _CLOCK_48 if vector_cores == 48 else _CLOCK_40
    own = {"vector_cores": (vector_cores, cores_source), "clock_hz": (1_850_000_000, clock_source)}
    return _made(name, family, A2_A3, _FIGURES | own)


def _chip_950(name: str, vector_cores: int) -> Chip:
    own = {
        "vector_cores": (vector_cores, _PLATFORM_950),
        "clock_hz": (1_650_000_000, _PLATFORM_950),
    }
    return _made(name, ASCEND_950, ASCEND_950, _FIGURES_950 | own)


def _made(name: str, family: str, isa: str, figures: Mapping[str, tuple[int, Source]]) -> Chip:
    return Chip(
        name=name,
        family=family,
        isa=isa,
        sources=MappingProxyType({field: source for field, (_, source) in figures.items()}),
        **{field: figure for field, (figure, _) in figures.items()},
    )


CHIPS: Final[Mapping[str, Chip]] = MappingProxyType(
    {
        name: _chip(name, family, *cores)
        for name, family, *cores in (
            ("Ascend910B1", "A2", 48),
            ("Ascend910B2", "A2", 48),
            ("Ascend910B2C", "A2", 48),
            ("Ascend910B3", "A2", 40),
            ("Ascend910B4", "A2", 40),
            ("Ascend910B4-1", "A2", 40),
            ("Ascend910_9391", "A3", 48),
            ("Ascend910_9392", "A3", 48),
            ("Ascend910_9381", "A3", 48),
            ("Ascend910_9382", "A3", 48),
            ("Ascend910_9362", "A3", 40),
            ("Ascend910_9363", "A3", 40, _CORES_9363),
            ("Ascend910_9372", "A3", 40),
        )
    }
    | {
        name: _chip_950(name, vector_cores)
        for name, vector_cores in (("Ascend950PR", 64), ("Ascend950DT", 56))
    }
)

DEFAULT_CHIP: Final = CHIPS["Ascend910B3"]
"""Used unless the user names another (chosen: 40 cores, the smaller of the two layouts)."""


def chip_named(name: str) -> Chip:
    """Look a chip up by its vendor name.

    Raises:
        ValueError: no such chip; the text lists the known ones.
    """
    try:
        return CHIPS[name]
    except KeyError:
        raise ValueError(f"unknown chip {name!r}; known: {', '.join(CHIPS)}") from None
