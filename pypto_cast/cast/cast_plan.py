"""Plans a cast from dtypes, shape and context before any value is touched."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from ascend_kernels import npu
from ascend_kernels.matrix import (
    READ_OTHERWISE,
    CastControls,
    CastRule,
    Resolution,
    UnsupportedCastError,
    resolve,
    rules_of,
    unsupported,
)
from ascend_kernels.npu import RunMode
from ascend_kernels.program import TileProgram, lower
from ascend_kernels.routing.verdict_table import advised
from ascend_kernels.vector_work import element_bits, vector_work
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode
from pypto_cast.options.context import check_controls, current
from pypto_cast.recording import recording
from pypto_cast.recording.causes import Cause
from pypto_cast.report.notebook import fragment, plan_table
from pypto_cast.report.report import Fact, Words
from pypto_cast.report.text_format import plural
from simulator.corrections import (
    READINGS,
    Reading,
    concerns_instruction,
    merged,
    value_of_reading,
)
from simulator.numbers.formats import Format, assert_never
from tiling.chips import Chip, chip_named
from tiling.grid import Shape
from tiling.plan import TileMemoryError, TilePlan, TileShapeWarning, plan
from tiling.ub import aligned_elems

OFF: Final = "SaturationMode.OFF"


@dataclass(frozen=True, slots=True, kw_only=True)
class CastPlan:
    """A cast of a tensor of some shape, decided.

    Attributes:
        dst: the dtype of the result.
        mode: the mode asked for.
        satmode: the satmode asked for.
        program: how the cores do it.
        diagnostics: what a user should be warned of.
    """

    dst: DataType
    mode: CastMode
    satmode: SaturationMode
    program: TileProgram
    diagnostics: tuple[tuple[type[UserWarning], str], ...] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        of_tiles = ((TileShapeWarning, text) for text in self.tiles.diagnostics)
        object.__setattr__(self, "diagnostics", (*self.resolution.diagnostics, *of_tiles))

    @property
    def resolution(self) -> Resolution:
        """The cast as A2/A3 carries it out."""
        return self.program.resolution

    @property
    def tiles(self) -> TilePlan:
        """Tiles, cores, UB."""
        return self.program.plan

    @property
    def modes(self) -> list[str]:
        """The modes that apply, as far as there is a choice."""
        mode = self.resolution.mode
        words = [f"CAST_{mode}"] if mode is not None else []
        resolution, controls = self.resolution, self.program.controls
        acts = not resolution.saturate and resolution.rule.has_satmode(controls)
        return [*words, OFF] if acts else words

    @property
    def document(self) -> dict[str, Any]:
        """The plan for JSON."""
        tiles, mode = self.tiles, self.resolution.mode
        return {
            "mode": None if mode is None else f"CAST_{mode}",
            "shape": list(tiles.shape),
            "tile_shape": list(tiles.tile_shape),
            "grid": list(tiles.grid.counts),
            "tiles": len(tiles.grid),
            "tails": list(tiles.tails),
            "chip": tiles.chip.name,
            "busy_cores": tiles.busy_cores,
            "vector_cores": tiles.chip.vector_cores,
            "tile_bytes": tiles.tile_bytes,
            "ub_bytes": tiles.chip.ub_bytes,
            "double_buffered": tiles.ub.is_double_buffered,
        }

    def fact(self, *, is_tile_chosen: bool = False, key: str = "plan") -> Fact:
        """The plan for a report.

        Args:
            is_tile_chosen: the planner chose the tile shape; the option that sets it is shown.
            key: its name in JSON; empty: none.
        """
        tiles = self.tiles
        grid = " x ".join(map(str, tiles.grid.counts))
        count = plural(len(tiles.grid), "tile")
        tails = f"tails {list(tiles.tails)}" if any(tiles.tails) else "no tails"
        shape = f"{list(tiles.shape)} in {count} of {list(tiles.tile_shape)}"
        lines = [f"{shape}, grid {grid}, {tails}"]
        if is_tile_chosen:
            unit = aligned_elems(tiles.bits, tiles.chip)
            *outer, last = tiles.tile_shape
            words = ",".join(map(str, (*outer, -(-last // unit) * unit)))
            lines.append(f"the planner chose the tile shape; --tile {words} sets it")
        lines += [
            f"{tiles.busy_cores} of {tiles.chip.vector_cores} cores of {tiles.chip}",
            f"{tiles.tile_bytes} of {tiles.chip.ub_bytes} B of UB a tile, {tiles.buffering}",
        ]
        return Fact(key=key, value=Words(value=self.document, text="\n".join(lines)), label="plan")

    def _repr_html_(self) -> str:
        return fragment(plan_table(self.tiles))


class _Asked(NamedTuple):
    """All that decides a plan: whatever it is to depend on must be here."""

    shape: Shape
    src: DataType
    dst: DataType
    mode: CastMode
    satmode: SaturationMode
    tile_shape: Shape
    chip: Chip
    strict: bool
    controls: CastControls
    is_scheduled: bool = False


def _family_rules() -> Mapping[tuple[Format, Format], CastRule]:
    """The rows of the matrix for the chip and the readings of this context."""
    return rules_of(current().chip.isa, current().readings)


def is_unchanged(src: DataType, dst: DataType, mode: CastMode) -> bool:
    """Return True if `cast` returns its input; FP32 to FP32 with a mode rounds to integers."""
    if src is not dst or mode is CastMode.CAST_NONE:
        return src is dst
    return (src.format, dst.format) not in _family_rules()


def default_satmode(src: DataType, dst: DataType) -> SaturationMode:
    """The satmode of a cast that names none: upstream's default acts on few pairs."""
    off = SaturationMode.OFF
    if current().default_satmode is off and src.format is not None and dst.format is not None:
        rule = _family_rules().get((src.format, dst.format))
        if rule is not None and rule.has_satmode(current().controls):
            return off
    return SaturationMode.ON


def resolve_cast(
    src: DataType,
    dst: DataType,
    mode: CastMode,
    satmode: SaturationMode,
    *,
    strict: bool | None = None,
    family: str | None = None,
    controls: CastControls | None = None,
) -> Resolution:
    """The row of the matrix, the mode and the steps of a cast.

    Args:
        src, dst, mode, satmode: of the cast.
        strict: refuse a mode that the pair lacks; by default as this context does.
        family: the instructions of the chip; by default those of this context's.
        controls: the control bits; by default those of this context.

    Raises:
        UnsupportedCastError: the chip does not convert this pair.
        CastModeError: the pair lacks the mode, under `strict`.
    """
    formats = known_formats(src, dst)
    strict = current().strict if strict is None else strict
    family = family or current().chip.isa
    controls = controls or current().controls
    match satmode:
        case SaturationMode.ON:
            saturate = True
        case SaturationMode.OFF:
            saturate = False
        case _:
            assert_never(satmode)
    try:
        return resolve(
            family,
            *formats,
            mode.round_mode,
            saturate=saturate,
            strict=strict,
            controls=controls,
        )
    except UnsupportedCastError as error:
        raise advised(error, family, *formats, mode.round_mode) from None


def readings_behind(src: DataType, dst: DataType, mode: CastMode) -> tuple[str, ...]:
    """The readings of whose other value a cast would give something else, or be refused."""
    if current().chip.isa not in READ_OTHERWISE:
        return ()
    return _readings_behind(src, dst, mode, current().chip.isa, current().controls)


@functools.lru_cache(maxsize=256)
def _readings_behind(
    src: DataType, dst: DataType, mode: CastMode, family: str, controls: CastControls
) -> tuple[str, ...]:
    formats = known_formats(src, dst)

    def decided(controls: CastControls) -> object:
        """The mode that applies, in a tuple; the refusal."""
        try:
            return (resolve(family, *formats, mode.round_mode, controls=controls).mode,)
        except UnsupportedCastError:
            return UnsupportedCastError

    def otherwise(reading: Reading) -> CastControls:
        other = reading.other(value_of_reading(reading, controls.readings))
        return replace(controls, readings=merged(controls.readings, {reading.name: other}))

    return tuple(
        name
        for name, reading in READINGS.items()
        if concerns_instruction(reading, *formats)
        or decided(controls) != decided(otherwise(reading))
    )


def rest_on_readings(operation: str, names: tuple[str, ...]) -> None:
    """Keep in the running kernel that results of the operation asked for here rest on readings.

    Args:
        operation: its name.
        names: of the readings.
    """
    running = recording.current() if names else None
    if running is not None:
        doubts = current().trust == "documented"
        for name in names:
            if doubts or name not in running.reading_dependence:
                running.reading_dependence[name] = Cause.here(operation), doubts


def plan_cast(
    shape: Shape, src: DataType, dst: DataType, mode: CastMode, satmode: SaturationMode
) -> CastPlan:
    """The cast as this context carries it out: resolved, planned, lowered. Equal casts share one.

    In a kernel that runs on an NPU the plan is for the chip of the device. In one of which a
    schedule is planned that decides what fits in UB.

    Raises:
        UnsupportedCastError: the chip does not convert this pair.
        CastModeError: the pair lacks the mode, under `options(strict=True)`.
        ShapeError: no cast takes the shape.
        TileShapeError: the tile shape of this context does not go with it.
        ValueError: the chip of the device is unknown, or lacks a control bit that is set.
        NpuError: there is no NPU or no library for it, in a kernel of RunMode.NPU.
    """
    context = current()
    on_device = context.run_mode is RunMode.NPU
    chip = chip_named(device_chip()) if on_device else context.chip
    if on_device:
        check_controls(context, chip)
    asked = _Asked(
        # A SymbolicScalar equals its int, and must not come back to a cast of plain ints.
        tuple(map(int, shape)),
        src,
        dst,
        mode,
        satmode,
        context.vec_tile_shapes,
        chip,
        context.strict,
        context.controls,
    )
    try:
        return _planned(asked)
    except TileMemoryError:
        if recording.plan_refusal() is not None:
            raise
        return _planned(asked._replace(is_scheduled=True))


def device_chip() -> str:
    """The chip of the device, as the driver calls it.

    Raises:
        NpuError: there is no NPU or no library for it.
    """
    npu.load()
    return str(npu.find().soc_name)


@functools.lru_cache(maxsize=256)
def _planned(asked: _Asked) -> CastPlan:
    resolution = resolve_cast(
        *asked[1:5], strict=asked.strict, family=asked.chip.isa, controls=asked.controls
    )
    tiles = plan(
        asked.shape,
        asked.tile_shape or None,
        element_bits(resolution),
        asked.chip,
        strict=asked.strict,
        work=None if asked.tile_shape else vector_work(resolution, asked.controls),
        is_scheduled=asked.is_scheduled,
    )
    program = lower(tiles, resolution, asked.controls)
    return CastPlan(dst=asked.dst, mode=asked.mode, satmode=asked.satmode, program=program)


def known_formats(src: DataType, dst: DataType) -> tuple[Format, Format]:
    """The number formats of both sides.

    Raises:
        UnsupportedCastError: the simulator knows none for one of them.
    """
    if src.format is None or dst.format is None:
        names = [str(d.format or d.name.removeprefix("DT_")) for d in (src, dst)]
        error = unsupported(current().chip.isa, names[0], names[1], current().readings)
        bare = [each for each in (src, dst) if each.format is None]
        raise UnsupportedCastError(f"{error}. {without_format(bare[0])}")
    return src.format, dst.format


def without_format(dtype: DataType) -> str:
    """Says that a dtype is a name alone, and which dtypes it may mean."""
    meant = [d.name for d in DataType if d.format is not None and d.name.startswith(dtype.name)]
    hint = f"; formats are of {', '.join(meant)}" if meant else ""
    return f"{dtype.name} is a name without a format here{hint}"


def cast_format(dtype: DataType) -> Format:
    """The number format of a dtype that the chip casts from or to.

    Raises:
        UnsupportedCastError: it does neither.
    """
    found, _ = known_formats(dtype, dtype)
    if not any(found in pair for pair in _family_rules()):
        raise unsupported(current().chip.isa, found.name, found.name, current().readings)
    return found
