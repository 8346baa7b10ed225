"""Compares two checkpoints tensor by tensor, by their bits, and finds a cast that explains them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import MATRIX
from ascend_kernels.program import conversions as conversions_of
from pypto_cast.cast.cast_plan import known_formats, resolve_cast
from pypto_cast.checkpoints.reading import Bytes, Reader, native_codes, reader
from pypto_cast.checkpoints.stored import DTYPES, Checkpoint, StoredTensor
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode, numpy_dtype
from pypto_cast.options.context import current
from simulator.arithmetic.total_order import is_nan, keys
from simulator.numbers import elementwise, float_environment
from simulator.numbers.formats import Format
from tiling.grid import Shape

_BLOCK_ELEMS: Final = 1 << 18
Codes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """An element of both sides.

    Attributes:
        index: position along each axis.
        first: its value in A, or in A as it is cast.
        second: its value in B.
        codes: the codes of these values.
    """

    index: tuple[int, ...]
    first: float
    second: float
    codes: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CastFound:
    """A cast of one side that gives the other one.

    Attributes:
        result: "A" or "B", the side that is the result.
        mode: of the cast; NONE where nothing is rounded.
        differing: elements that it does not explain; any two NaN count as equal.
        element: the first of them; its values are the cast one and that of the other side.
    """

    result: str
    mode: CastMode
    differing: int
    element: Element | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDifference:
    """Two tensors of one name.

    Attributes:
        name: in A, or in B where A has none.
        shapes: in A and B; None where there is none.
        dtypes: in A and B, in words.
        differing: elements with other codes; None where the dtypes or shapes differ.
        nans: those of them that are NaN on both sides.
        ulp_max: the largest distance in codes, over infinity too and across zero; None where no
            such distance is.
        element: the one with the largest distance, or the first that differs.
        cast: what explains different dtypes best.
    """

    name: str
    shapes: tuple[Shape | None, Shape | None]
    dtypes: tuple[str, str]
    differing: int | None = None
    nans: int = 0
    ulp_max: int | None = None
    element: Element | None = None
    cast: CastFound | None = None

    @property
    def is_equal(self) -> bool:
        """Has equal codes, or is wholly a cast of the other side."""
        if self.cast is not None:
            return self.cast.differing == 0
        return self.differing == 0


def differences(first: Checkpoint, second: Checkpoint) -> Iterator[TensorDifference]:
    """Compare two checkpoints, block by block.

    Checkpoints of one tensor each are compared whatever its names are.

    Yields:
        A difference for each tensor of A in its order, then for those that only B has.

    Raises:
        OSError, CheckpointError: one of them cannot be read.
    """
    theirs = {tensor.name: tensor for tensor in second.tensors}
    if len(first.tensors) == len(second.tensors) == 1:
        theirs = {first.tensors[0].name: second.tensors[0]}
    with reader(first) as one, reader(second) as other:
        for tensor in first.tensors:
            found = theirs.pop(tensor.name, None)
            if found is None:
                yield _alone(tensor, is_first=True)
            else:
                yield _compared(tensor, found, one, other)
    for tensor in theirs.values():
        yield _alone(tensor, is_first=False)


def _alone(tensor: StoredTensor, *, is_first: bool) -> TensorDifference:
    words = tensor.dtype_in_words
    return TensorDifference(
        name=tensor.name,
        shapes=(tensor.shape, None) if is_first else (None, tensor.shape),
        dtypes=(words, "") if is_first else ("", words),
    )


def _compared(
    one: StoredTensor, other: StoredTensor, first: Reader, second: Reader
) -> TensorDifference:
    shapes = one.shape, other.shape
    dtypes = one.dtype_in_words, other.dtype_in_words
    is_readable = not one.is_fortran ^ other.is_fortran
    if one.shape != other.shape or not is_readable or one.is_skipped != other.is_skipped:
        return TensorDifference(name=one.name, shapes=shapes, dtypes=dtypes)
    if one.dtype == other.dtype:
        count = _Count(one)
        for start, held in _blocks(one, other, first, second):
            count.add(start, *held)
        return TensorDifference(
            name=one.name,
            shapes=shapes,
            dtypes=dtypes,
            differing=count.differing,
            nans=count.nans,
            ulp_max=count.ulp_max,
            element=count.element,
        )
    return TensorDifference(
        name=one.name,
        shapes=shapes,
        dtypes=dtypes,
        cast=_cast_between(one, other, first, second),
    )


def _blocks(
    one: StoredTensor, other: StoredTensor, first: Reader, second: Reader
) -> Iterator[tuple[int, tuple[Codes, Codes]]]:
    """Codes of both sides; of dtypes without a format each element's bytes."""
    elems = one.elems
    widths = [t.size_bytes // elems if elems else 1 for t in (one, other)]
    for start in range(0, elems, _BLOCK_ELEMS):
        count = min(_BLOCK_ELEMS, elems - start)
        held = []
        for tensor, source, width in zip((one, other), (first, second), widths, strict=True):
            data: Bytes = np.empty(count * width, np.uint8)
            source.read(tensor, start * width, data)
            if width in (1, 2, 4, 8):
                held.append(native_codes(data, width, is_swapped=tensor.is_swapped))
            else:
                held.append(data.view(f"V{width}"))
        yield start, (held[0], held[1])


@dataclass(slots=True, kw_only=True)
class _Tally:
    """Findings in the blocks of a tensor so far."""

    differing: int = 0
    nans: int = 0
    ulp_max: int | None = None
    element: Element | None = field(default=None)


class _Count(_Tally):
    """Counts codes of one dtype that differ."""

    def __init__(self, tensor: StoredTensor) -> None:
        super().__init__()
        dtype = DTYPES.get(tensor.dtype)
        self._dtype, self._shape = dtype, _index_shape(tensor)
        self._format: Format | None = None if dtype is None else dtype.format

    @float_environment.quiet()
    def add(self, start: int, one: Codes, other: Codes) -> None:
        """Compare a block."""
        differs = np.flatnonzero(one != other)
        if not differs.size:
            return
        self.differing += differs.size
        if self._dtype is None or self._format is None:
            return
        kind = numpy_dtype(self._dtype)
        before, after = one[differs].view(kind), other[differs].view(kind)
        nan = is_nan(before, self._format) & is_nan(after, self._format)
        self.nans += int(np.count_nonzero(nan))
        distances = _distances(before, after, self._format)
        distances[nan] = 0
        worst = int(distances.argmax())
        if self.element is None or int(distances[worst]) > (self.ulp_max or 0):
            self.ulp_max = int(distances[worst])
            self.element = _element(before, after, worst, start + int(differs[worst]), self._shape)


def _distances(before: Codes, after: Codes, fmt: Format) -> Codes:
    """Steps in the total order between two codes; those of INT64 wrap and come out right."""
    ends = keys(before, fmt).astype(np.int64), keys(after, fmt).astype(np.int64)
    high, low = np.maximum(*ends), np.minimum(*ends)
    return high.view(np.uint64) - low.view(np.uint64)


def _element(before: Codes, after: Codes, here: int, position: int, shape: Shape) -> Element:
    index = tuple(int(i) for i in np.unravel_index(position, shape))
    codes = tuple(int(x[here : here + 1].view(f"u{x.itemsize}")[0]) for x in (before, after))
    return Element(
        index=index,
        first=float(before[here]),
        second=float(after[here]),
        codes=(codes[0], codes[1]),
    )


def _index_shape(tensor: StoredTensor) -> Shape:
    shape = tuple(reversed(tensor.shape)) if tensor.is_fortran else tensor.shape
    return shape or (1,)


def _cast_between(
    one: StoredTensor, other: StoredTensor, first: Reader, second: Reader
) -> CastFound | None:
    """The cast of one side that explains the other best; None if no cast leads there."""
    best: CastFound | None = None
    for result, source, target in (("B", one, other), ("A", other, one)):
        src, dst = DTYPES.get(source.dtype), DTYPES.get(target.dtype)
        if src is None or dst is None or (src.format, dst.format) not in MATRIX[current().chip.isa]:
            continue
        found = [_Explained(source, src, dst, mode) for mode in _modes(src, dst)]
        for start, (before, after) in _blocks(one, other, first, second):
            held = (before, after) if result == "B" else (after, before)
            for explained in found:
                explained.add(start, *held)
        least = min(found, key=lambda explained: explained.differing)
        if best is None or least.differing < best.differing:
            best = CastFound(
                result=result, mode=least.mode, differing=least.differing, element=least.element
            )
    return best


def _modes(src: DataType, dst: DataType) -> list[CastMode]:
    """The modes of a pair, its default first; NONE where nothing is rounded."""
    rule = MATRIX[current().chip.isa][known_formats(src, dst)]
    named = [mode for mode in CastMode if mode.round_mode in rule.modes]
    named.sort(key=lambda mode: mode.round_mode is not rule.default)
    return named or [CastMode.CAST_NONE]


class _Explained(_Tally):
    """Counts elements of one side that a cast of the other one does not give."""

    def __init__(self, source: StoredTensor, src: DataType, dst: DataType, mode: CastMode) -> None:
        super().__init__()
        resolution = resolve_cast(src, dst, mode, SaturationMode.ON)
        steps = conversions_of(resolution, inf_nan_mode=current().inf_nan_mode)
        self._kernel = elementwise.loop(steps)
        self._dtype, self._format = numpy_dtype(dst), steps[-1].dst
        self._shape = _index_shape(source)
        self.mode = mode

    def add(self, start: int, before: Codes, after: Codes) -> None:
        """Cast a block and compare it."""
        result = np.empty(before.size, after.dtype)
        self._kernel(before, result)
        differs = np.flatnonzero(result != after)
        if differs.size:
            mine, other = result[differs].view(self._dtype), after[differs].view(self._dtype)
            real = ~(is_nan(mine, self._format) & is_nan(other, self._format))
            differs, mine, other = differs[real], mine[real], other[real]
        self.differing += differs.size
        if differs.size and self.element is None:
            self.element = _element(mine, other, 0, start + int(differs[0]), self._shape)
