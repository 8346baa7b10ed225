"""The cast of a checkpoint: targets and patterns choose by name, headers decide by tensor."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import re
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ascend_kernels.matrix import MATRIX, UnsupportedCastError
from ascend_kernels.program import conversions as conversions_of
from pypto_cast.cast.cast_plan import CastPlan, plan_cast, resolve_cast, without_format
from pypto_cast.cast.cast_report import CastReport
from pypto_cast.checkpoints.code_formats import CODE_FORMATS, CodeFormat
from pypto_cast.checkpoints.reading import Histogram
from pypto_cast.checkpoints.scales import CODED_DTYPES, Quantizing
from pypto_cast.checkpoints.stored import (
    DTYPES,
    STORED_NAMES,
    Checkpoint,
    StoredTensor,
    twice,
)
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode, bytes_of
from pypto_cast.dtypes.names import dtype_named
from pypto_cast.options.context import current, options
from pypto_cast.report.text_format import plural
from simulator.numbers.convert import Conversion
from simulator.numbers.formats import FP32, FloatFormat, Format
from tiling.chips import CHIPS, Chip
from tiling.grid import Shape
from tiling.plan import MAX_DIMS, MAX_ELEMS, TileShapeError

Pattern = re.Pattern[str]
_SCALED: Final = (DataType.DT_INT8, DataType.DT_UINT8)


class UnusedPatternWarning(UserWarning):
    """A pattern that matches no tensor of the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A dtype, for the tensors whose names have the pattern in them; None: for all others."""

    dtype: DataType
    pattern: Pattern | None = None

    def __str__(self) -> str:
        name = self.dtype.name
        return name if self.pattern is None else f"{self.pattern.pattern}={name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The dtype that each tensor is to have, or that it stays.

    Attributes:
        targets: those with patterns go before the one without; of several that match, the first.
        include: if there are any, a tensor needs one of them to be changed.
        exclude: a tensor with one of them stays as it is.
        keep_fp32: the same, and the report says that it was meant to stay in its dtype.
    """

    targets: tuple[Target, ...] = ()
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    keep_fp32: tuple[Pattern, ...] = ()

    @staticmethod
    def of(dtype: DataType) -> Choice:
        """One target for all tensors."""
        return Choice(targets=(Target(dtype=dtype),))

    def kept(self, name: str) -> str:
        """The reason why a tensor stays as it is by the patterns; empty if it does not."""
        for words, patterns in (("kept by", self.keep_fp32), ("excluded by", self.exclude)):
            for pattern in patterns:
                if pattern.search(name):
                    return f"{words} {pattern.pattern!r}"
        if self.include and not any(pattern.search(name) for pattern in self.include):
            return "not included"
        return ""

    def target(self, name: str) -> DataType | None:
        """The dtype that a tensor is to have; None if no target is for it."""
        for target in self.targets:
            if target.pattern is not None and target.pattern.search(name):
                return target.dtype
        return next((t.dtype for t in self.targets if t.pattern is None), None)

    def warn_unused(self, names: Sequence[str]) -> None:
        """Name patterns that are in no name, which are likely misspelt.

        Warns:
            UnusedPatternWarning: one for each.
        """
        targeted = (t.pattern for t in self.targets if t.pattern is not None)
        for pattern in (*self.include, *self.exclude, *self.keep_fp32, *targeted):
            if not any(pattern.search(name) for name in names):
                text = f"the pattern {pattern.pattern!r} is in the name of no tensor"
                warnings.warn(text, UnusedPatternWarning, stacklevel=3)


def choice_of(
    to: Iterable[str],
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    keep_fp32: Iterable[str] = (),
) -> Choice:
    """Read targets, `DT_BF16` or `pattern=DT_FP16`, and patterns, which are regular expressions.

    Raises:
        ValueError: an unknown dtype, no regular expression, or two targets for all tensors.
    """
    targets = tuple(map(_target, to))
    plain = [target.dtype for target in targets if target.pattern is None]
    if len(plain) > 1:
        raise ValueError(
            f"{plain[0]} and {plain[1]} are both for all tensors; one of them needs a pattern, as "
            f"in lm_head={plain[1]}"
        )
    return Choice(
        targets=targets,
        include=tuple(map(_pattern, include)),
        exclude=tuple(map(_pattern, exclude)),
        keep_fp32=tuple(map(_pattern, keep_fp32)),
    )


def _target(text: str) -> Target:
    pattern, equals, name = text.rpartition("=")
    return Target(dtype=dtype_named(name), pattern=_pattern(pattern) if equals else None)


def _pattern(text: str) -> Pattern:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from None


class SkippedTensorWarning(UserWarning):
    """Tensors of the input that are not in the output."""


class UnreadLayoutWarning(UserWarning):
    """Scales in a shape that the loader of the layout does not take."""


class Part(enum.Enum):
    """A tensor of the output in its relation to that of the input; the value ends its name."""

    WHOLE = ""
    SCALE = "_scale"
    ZERO_POINT = "_zero_point"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The work on one tensor: a cast, codes with scales, or a copy.

    Attributes:
        stored: the tensor in the input.
        result: the tensor in the output; its offset there is not known here and stays the input's.
        shape: as it is cast, folded to 1 to 4 dimensions.
        dst: the dtype that it is cast to; None if it is copied unchanged.
        mode: how to round.
        satmode: what to do with integers out of range.
        conversions: what is done to each element; empty for a copy.
        tile_shape: set by the user for this number of dimensions; empty: the planner's.
        quantizing: how its scales come about; None if it has none.
        reason: why it is copied unchanged.
        uncoded: why it has no codes with scales, where these are asked for.
    """

    stored: StoredTensor
    result: StoredTensor
    shape: Shape
    dst: DataType | None = None
    mode: CastMode = CastMode.CAST_NONE
    satmode: SaturationMode = SaturationMode.ON
    conversions: tuple[Conversion, ...] = ()
    tile_shape: Shape = ()
    quantizing: Quantizing | None = None
    reason: str = ""
    uncoded: str = ""

    @property
    def is_cast(self) -> bool:
        """Changed at all, by a cast or by scales."""
        return self.dst is not None

    @property
    def dtype_in_words(self) -> str:
        """Of the result; of codes that share a byte their format, which the file calls UINT8."""
        if self.quantizing is not None and self.quantizing.codes.per_byte > 1:
            return self.quantizing.codes.dtype.number_format.name
        return self.result.dtype_in_words

    @property
    def is_folded(self) -> bool:
        """Cast under another shape than it is stored with."""
        return self.is_cast and self.shape != self.stored.shape

    def planned(self) -> CastPlan | None:
        """Tiles, cores and UB of the cast on the chip of the context; none for scales and copies.

        Raises:
            TileShapeError: the tile shape does not go with the tensor.
        """
        if self.dst is None or self.quantizing is not None:
            return None
        try:
            with options(vec_tile_shapes=self.tile_shape):
                return plan_cast(
                    self.shape, DTYPES[self.stored.dtype], self.dst, self.mode, self.satmode
                )
        except TileShapeError as error:
            raise TileShapeError(f"tensor {self.stored.name!r}: {error}") from error

    @property
    def results(self) -> tuple[Item, ...]:
        """The tensors of the output that come of it; scales before codes, which are narrower."""
        whole = Item(job=self, part=Part.WHOLE, tensor=self.result)
        if self.quantizing is None:
            return (whole,)
        shape = self.quantizing.scale_shape(self.stored.shape)
        codes = self.quantizing.codes
        parts = {Part.SCALE: codes.stored_scale}
        if not self.quantizing.symmetric:
            parts[Part.ZERO_POINT] = codes.dtype
        scales = [
            Item(
                job=self,
                part=part,
                tensor=_as(
                    dataclasses.replace(
                        self.result, name=self.stored.name + part.value, shape=shape
                    ),
                    dtype,
                ),
            )
            for part, dtype in parts.items()
        ]
        return (*scales, whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A tensor of the output, and the job that it comes from."""

    job: Job
    part: Part
    tensor: StoredTensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A job done, or a part of it; parts add up with `+`.

    Attributes:
        job: the job.
        report: what its cast did; None for a copy, or without reports.
        against_bf16: the same held against the source in BF16, of codes of at most 8 bits.
        uncertain: codes that the device's division may give otherwise; None without scales.
        histogram: magnitudes of the source; None if it was not asked for.
    """

    job: Job
    report: CastReport | None = None
    against_bf16: CastReport | None = None
    uncertain: int | None = None
    histogram: Histogram | None = None

    def __add__(self, other: Outcome) -> Outcome:
        sums = {
            name: found if more is None else found + more
            for name in ("report", "against_bf16", "uncertain", "histogram")
            for found, more in [(getattr(self, name), getattr(other, name))]
        }
        return Outcome(job=self.job, **sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCast:
    """A checkpoint with a job for each of its tensors.

    Attributes:
        checkpoint: the input.
        choice: the dtypes asked for.
        mode: how to round.
        satmode: what to do with integers out of range.
        jobs: in the order of the input.
        quantizing: how scales come about; None if there are none.
    """

    checkpoint: Checkpoint
    choice: Choice
    mode: CastMode
    satmode: SaturationMode
    jobs: tuple[Job, ...]
    quantizing: Quantizing | None = None

    @property
    def largest(self) -> Job | None:
        """The tensor with the most elements of those that are cast; None if none is."""
        cast = [job for job in self.jobs if job.is_cast and job.quantizing is None]
        return max(cast, key=lambda job: job.stored.elems, default=None)


def plan_checkpoint(
    checkpoint: Checkpoint,
    choice: Choice,
    mode: CastMode = CastMode.CAST_NONE,
    satmode: SaturationMode = SaturationMode.ON,
    tile_shapes: Sequence[Shape] = (),
    quantizing: Quantizing | None = None,
) -> CheckpointCast:
    """Decide about every tensor.

    What has the dtype already, or cannot be cast to it, stays as it is. A tensor of more than 4
    dimensions is cast folded to 4, a scalar as one dimension; the output has the stored shape.

    Args:
        checkpoint: the input.
        choice: the dtypes to cast to, and what is left as it is.
        mode: how to round.
        satmode: what to do with integers out of range.
        tile_shapes: at most one for each number of dimensions; the planner chooses the others.
        quantizing: tensors of its dimensions become codes with scales before any target.

    Raises:
        UnsupportedCastError: A2/A3 converts nothing that safetensors stores to a target.
        TileShapeError: a tile shape does not go with a tensor of its number of dimensions.
        CastModeError: a pair lacks the mode, under `options(strict=True)`.
        ValueError: two tile shapes for the same number of dimensions, 8-bit integers as a target,
            dimensions or an axis of scales that no tensor has, or two tensors of the output would
            have the same name.

    Warns:
        UserWarning: a tile shape that is for no tensor.
        UnusedPatternWarning: a pattern that is in no name.
        UnreadLayoutWarning: scales along another axis than rows have.
        SkippedTensorWarning: the input has tensors that no output can hold.
        CastModeWarning, SaturationModeWarning: as for `cast`.
    """
    _check_targets(choice)
    tiles = {len(tile): tile for tile in tile_shapes}
    if len(tiles) < len(tile_shapes):
        raise ValueError("there are two tile shapes for the same number of dimensions")
    if quantizing is not None:
        _check_dims(checkpoint, quantizing)
    diagnostics: dict[tuple[type[UserWarning], str], None] = {}

    @functools.cache
    def steps(src: DataType, dst: DataType) -> tuple[Conversion, ...]:
        resolution = resolve_cast(src, dst, mode, satmode)
        diagnostics.update(dict.fromkeys(resolution.diagnostics))
        return conversions_of(resolution, current().controls)

    def job_of(stored: StoredTensor) -> Job:
        shape = folded(stored.shape)
        reason = choice.kept(stored.name)
        uncoded = ""
        if quantizing is not None:
            uncoded = reason or quantizing.refusal(stored) or _out_of_bounds(stored)
            if not uncoded:
                return Job(
                    stored=stored,
                    result=_coded(stored, quantizing.codes),
                    shape=shape,
                    dst=quantizing.codes.dtype,
                    quantizing=quantizing,
                )
        dst = choice.target(stored.name)
        if dst is None:
            reason = reason or uncoded
        reason = reason or _reason(stored, dst)
        if reason or dst is None:
            return Job(stored=stored, result=stored, shape=shape, reason=reason, uncoded=uncoded)
        job = Job(
            stored=stored,
            result=_as(stored, dst),
            shape=shape,
            dst=dst,
            mode=mode,
            satmode=satmode,
            conversions=steps(DTYPES[stored.dtype], dst),
            tile_shape=tiles.get(len(shape), ()),
            uncoded=uncoded,
        )
        if job.tile_shape:
            job.planned()  # refuses one that does not fit; the planner's own fits
        return job

    jobs = tuple(job_of(tensor) for tensor in checkpoint.tensors if not tensor.is_skipped)
    skipped = len(checkpoint.tensors) - len(jobs)
    if skipped:
        example = next(tensor for tensor in checkpoint.tensors if tensor.is_skipped)
        text = (
            f"{skipped} of {len(checkpoint.tensors)} tensors are not in the output, for they are "
            f"quantised already: {example.name} is {example.dtype}"
        )
        warnings.warn(text, SkippedTensorWarning, stacklevel=2)
    names = [item.tensor.name for job in jobs for item in job.results]
    if (name := twice(names)) is not None:
        raise ValueError(f"two tensors of the output would be named {name!r}")
    is_scaled = any(job.quantizing is not None for job in jobs)
    if quantizing is not None and is_scaled and not quantizing.is_known:
        text = (
            "compressed-tensors knows one scale for each row of a matrix (--axis 0), for all of it "
            "or for a square; other scales are written beside the codes, without its "
            "quantization_config"
        )
        warnings.warn(text, UnreadLayoutWarning, stacklevel=2)
    choice.warn_unused([tensor.name for tensor in checkpoint.tensors])
    for category, text in diagnostics:
        warnings.warn(text, category, stacklevel=2)
    for rank, tile in tiles.items():
        if not any(job.tile_shape for job in jobs if len(job.shape) == rank):
            text = f"tile shape {list(tile)} is not used: no tensor of {rank} dimensions is cast"
            warnings.warn(text, UserWarning, stacklevel=2)
    return CheckpointCast(
        checkpoint=checkpoint,
        choice=choice,
        mode=mode,
        satmode=satmode,
        jobs=jobs,
        quantizing=quantizing,
    )


def folded(shape: Shape) -> Shape:
    """The shape to cast under: leading dimensions merged down to 4, a scalar as [1]."""
    merged = len(shape) - MAX_DIMS + 1
    if merged > 1:
        return (math.prod(shape[:merged]), *shape[merged:])
    return shape or (1,)


def _check_targets(choice: Choice) -> None:
    """Refuse dtypes that nothing can be cast to, and 8-bit integers, with the alternatives."""
    formats = {dtype.format for dtype in STORED_NAMES}
    family = current().chip.isa
    targets = {to: None for src, to in MATRIX[family] if src in formats and to in formats}
    for target in choice.targets:
        if target.dtype in _SCALED:
            raise ValueError(
                f"a checkpoint in {target.dtype} needs a scale for each channel, without which "
                "weights would round to 0; --quantize int8 --axis 0 computes one a row"
            )
    for target in choice.targets:
        if target.dtype.format not in targets:
            raise UnsupportedCastError(
                f"nothing in a checkpoint can be cast to {target.dtype}; casts of {family} that "
                f"safetensors can store lead to {', '.join(map(format, targets))}"
                f"{_elsewhere(target.dtype, formats)}"
            )


def _elsewhere(dst: DataType, stored: Collection[Format | None]) -> str:
    """The way to codes of a dtype to which nothing is cast; the formats are those of files."""
    if dst.format is None:
        return f"; {without_format(dst)}"
    chip = _chip_that_casts(stored, dst.format) if dst.format in stored else None
    if chip is not None:
        return f"; --chip {chip} casts to it"
    ways = [codes.name for codes in CODE_FORMATS.values() if codes.dtype is dst]
    return f"; --quantize {ways[0]} makes codes of it" if ways else ""


def _check_dims(checkpoint: Checkpoint, quantizing: Quantizing) -> None:
    """Refuse numbers of dimensions, and an axis, that no tensor with codes could have."""
    there = {len(tensor.shape) for tensor in checkpoint.tensors if tensor.dtype in CODED_DTYPES}
    ranks = sorted(there & {*quantizing.dims})
    if not ranks:
        known = " or ".join(map(format, sorted(there))) or "none"
        raise ValueError(
            f"no tensor of FP32, FP16 or BF16 has {quantizing.dims_text} dimensions, as --dims "
            f"asks; they have {known}"
        )
    if not any(map(quantizing.has_axis, ranks)):
        known = ", ".join(f"{-rank} to {rank - 1} in {plural(rank, 'dimension')}" for rank in ranks)
        raise ValueError(
            f"--axis {quantizing.axis} is an axis of no tensor that --dims takes; they have {known}"
        )


def _as(stored: StoredTensor, dtype: DataType) -> StoredTensor:
    """A tensor in another dtype, in the byte order of safetensors."""
    size_bytes = stored.elems * bytes_of(dtype)
    return dataclasses.replace(
        stored, dtype=STORED_NAMES[dtype], size_bytes=size_bytes, is_swapped=False
    )


def _coded(stored: StoredTensor, codes: CodeFormat) -> StoredTensor:
    """The codes of a tensor, those that share a byte as UINT8 of a last axis that is shorter."""
    if codes.per_byte == 1:
        return _as(stored, codes.dtype)
    shape = (*stored.shape[:-1], stored.shape[-1] // codes.per_byte)
    packed = dataclasses.replace(stored, name=stored.name + codes.suffix, shape=shape)
    return _as(packed, DataType.DT_UINT8)


def _out_of_bounds(stored: StoredTensor) -> str:
    if not stored.elems:
        return "empty"
    return f"more than {MAX_ELEMS} elements" if stored.elems > MAX_ELEMS else ""


def _reason(stored: StoredTensor, dst: DataType | None) -> str:
    """The reason why a tensor is not cast; empty if it is."""
    src = DTYPES.get(stored.dtype)
    if dst is None:
        return "no target"
    if src is dst:
        return f"already {dst.format}"
    if stored.size_bytes < stored.elems:
        return f"elements of {stored.dtype} that share a byte are not cast"
    family = current().chip.isa
    if src is None or (src.format, dst.format) not in MATRIX[family]:
        way = "" if src is None else _way(src.format, dst.format)
        return f"{stored.dtype_in_words} -> {dst.format} is no cast of {family}{way}"
    return _out_of_bounds(stored)


def _way(src: Format | None, dst: Format | None) -> str:
    """The way to a pair that the chip does not cast: another chip, or FP32 between; else empty."""
    chip = _chip_that_casts([src], dst)
    if chip is not None:
        return f"; --chip {chip} has it"
    casts = MATRIX[current().chip.isa]
    if isinstance(src, FloatFormat) and (src, FP32) in casts and (FP32, dst) in casts:
        return "; --to fp32 and then --to of its result makes it"
    return ""


def _chip_that_casts(sources: Collection[Format | None], dst: Format | None) -> Chip | None:
    """The first chip that casts one of the formats to another; None if no chip does."""
    casting = (c for c in CHIPS.values() if any((src, dst) in MATRIX[c.isa] for src in sources))
    return next(casting, None)
