"""Compares two checkpoints tensor by tensor, by their bits, and finds a cast that explains them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ascend_kernels.matrix import MATRIX
from ascend_kernels.program import conversions as conversions_of
from pypto_cast.cast.cast_plan import known_formats, resolve_cast
from pypto_cast.checkpoints.reading import Bytes, Reader, native_codes
from pypto_cast.checkpoints.stored import DTYPES, PACKED_DTYPES, Checkpoint, StoredTensor
from pypto_cast.dtypes.data_types import CastMode, DataType, SaturationMode, numpy_dtype
from pypto_cast.options.context import current
from pypto_cast.report.report import Column, Report, Table, plain, said
from pypto_cast.report.text_format import plural, printable
from simulator.arithmetic.total_order import codes_between, is_nan
from simulator.numbers import elementwise, float_environment
from simulator.numbers.convert import in_numpy
from simulator.numbers.formats import Format
from tiling.grid import Shape

_BLOCK_ELEMS: Final = 1 << 18
_MOST_ROWS: Final = 100
Codes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementPair:
    """An element of both sides.

    Attributes:
        index: position along each axis.
        values: in A, or in A as it is cast, and in B.
        codes: the codes of these values.
    """

    index: tuple[int, ...]
    values: tuple[float, float]
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
    element: ElementPair | None


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
        is_of_bytes: `differing` counts bytes, which elements share otherwise than PACKED_DTYPES do.
    """

    name: str
    shapes: tuple[Shape | None, Shape | None]
    dtypes: tuple[str, str]
    differing: int | None = None
    nans: int = 0
    ulp_max: int | None = None
    element: ElementPair | None = None
    cast: CastFound | None = None
    is_of_bytes: bool = False

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
    with closing(Reader(first)) as one, closing(Reader(second)) as other:
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
    found = TensorDifference(
        name=one.name,
        shapes=(one.shape, other.shape),
        dtypes=(one.dtype_in_words, other.dtype_in_words),
    )
    is_readable = not one.is_fortran ^ other.is_fortran
    if one.shape != other.shape or not is_readable or one.is_skipped != other.is_skipped:
        return found
    if one.dtype != other.dtype:
        return replace(found, cast=_cast_between(one, other, first, second))
    count = _Count(one, _dtype_of(one))
    for start, held in _blocks(one, other, first, second):
        count.add(start, *held)
    return replace(
        found,
        differing=count.differing,
        nans=count.nans,
        ulp_max=count.ulp_max,
        element=count.element,
        is_of_bytes=not _is_apart(one),
    )


def _blocks(
    one: StoredTensor, other: StoredTensor, first: Reader, second: Reader
) -> Iterator[tuple[int, tuple[Codes, Codes]]]:
    """Codes of both sides; of dtypes without a format each element's bytes, or all bytes."""
    pair = one, other
    is_apart = _is_apart(one) and _is_apart(other)
    total = one.elems if is_apart else max(t.size_bytes for t in pair)
    for start in range(0, total, _BLOCK_ELEMS):
        count = min(_BLOCK_ELEMS, total - start)
        sides = zip(pair, (first, second), strict=True)
        held = [_held(tensor, source, start, count, is_apart) for tensor, source in sides]
        yield start, (held[0], held[1])


def _held(tensor: StoredTensor, source: Reader, start: int, count: int, is_apart: bool) -> Codes:
    """So many codes of a side from one on, or bytes where elements are not apart."""
    if tensor.dtype in PACKED_DTYPES:
        packed: Bytes = np.empty(-(-count // 2), np.uint8)
        source.read(tensor, start // 2, packed)
        return np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)[:count]
    width = tensor.size_bytes // tensor.elems if is_apart else 1
    data: Bytes = np.empty(count * width, np.uint8)
    source.read(tensor, start * width, data)
    if width in (1, 2, 4, 8):
        return native_codes(data, width, is_swapped=tensor.is_swapped)
    return data.view(f"V{width}")


def _is_apart(tensor: StoredTensor) -> bool:
    """Its elements have bytes of their own, or are packed codes."""
    elems = tensor.elems
    return (
        tensor.dtype in PACKED_DTYPES
        or not elems
        or (elems <= tensor.size_bytes and not tensor.size_bytes % elems)
    )


def _dtype_of(tensor: StoredTensor) -> DataType | None:
    return DTYPES.get(tensor.dtype, PACKED_DTYPES.get(tensor.dtype))


class _Count:
    """Counts codes of one dtype that differ.

    Args:
        tensor: in whose shape elements have their index.
        dtype: of both sides; of one without a format nothing but the number is found.
    """

    def __init__(self, tensor: StoredTensor, dtype: DataType | None) -> None:
        shape = tuple(reversed(tensor.shape)) if tensor.is_fortran else tensor.shape
        self._shape, self._dtype = shape or (1,), dtype
        self.differing = self.nans = 0
        self.ulp_max: int | None = None
        self.element: ElementPair | None = None

    @float_environment.quiet()
    def add(self, start: int, one: Codes, other: Codes) -> None:
        """Compare a block."""
        differs = np.flatnonzero(one != other)
        self.differing += differs.size
        if not differs.size or self._dtype is None or self._dtype.format is None:
            return
        kind = numpy_dtype(self._dtype)
        before, after = one[differs].view(kind), other[differs].view(kind)
        nan = is_nan(before, self._dtype.format) & is_nan(after, self._dtype.format)
        self.nans += int(np.count_nonzero(nan))
        self._note(before, after, nan, start + differs)

    def _note(self, before: Codes, after: Codes, nan: Codes, places: Codes) -> None:
        """Remember the largest distance, and an element that has it."""
        assert self._dtype is not None
        assert self._dtype.format is not None
        fmt = self._dtype.format
        distances = codes_between(before, after, fmt)
        distances[nan] = 0
        worst = int(distances.argmax())
        if self.element is None or int(distances[worst]) > (self.ulp_max or 0):
            self.ulp_max = int(distances[worst])
            self.element = _element(before, after, worst, int(places[worst]), self._shape, fmt)


def _element(
    before: Codes, after: Codes, here: int, position: int, shape: Shape, fmt: Format
) -> ElementPair:
    index = tuple(int(i) for i in np.unravel_index(position, shape))
    pair = before[here : here + 1], after[here : here + 1]
    codes = tuple(int(x.view(f"u{x.itemsize}")[0]) for x in pair)
    values = tuple(float(in_numpy(x, fmt)[0]) for x in pair)
    return ElementPair(index=index, values=(values[0], values[1]), codes=(codes[0], codes[1]))


def _cast_between(
    one: StoredTensor, other: StoredTensor, first: Reader, second: Reader
) -> CastFound | None:
    """The cast of one side that explains the other best; None if no chip casts them.

    It is one of the context's chip, or else of another family.
    """
    best: CastFound | None = None
    for result, source, target in (("B", one, other), ("A", other, one)):
        src, dst = _dtype_of(source), _dtype_of(target)
        if src is None or dst is None:
            continue
        pair = src.format, dst.format
        having = (isa for isa in (current().chip.isa, *MATRIX) if pair in MATRIX[isa])
        if (family := next(having, None)) is None:
            continue
        modes = _modes(src, dst, family)
        found = [_Explained(source, src, dst, mode, family) for mode in modes]
        for start, (before, after) in _blocks(one, other, first, second):
            held = (before, after) if result == "B" else (after, before)
            for explained in found:
                explained.add(start, *held)
        least = min(found, key=lambda explained: explained.unexplained)
        if best is None or least.unexplained < best.differing:
            best = CastFound(
                result=result, mode=least.mode, differing=least.unexplained, element=least.element
            )
    return best


def _modes(src: DataType, dst: DataType, family: str) -> list[CastMode]:
    """The modes of a pair, its default first; NONE where nothing is rounded."""
    rule = MATRIX[family][known_formats(src, dst)]
    named = [mode for mode in CastMode if mode.round_mode in rule.modes]
    named.sort(key=lambda mode: mode.round_mode is not rule.default)
    return named or [CastMode.CAST_NONE]


class _Explained(_Count):
    """Counts elements of one side that a cast of the other one does not give."""

    def __init__(
        self, source: StoredTensor, src: DataType, dst: DataType, mode: CastMode, family: str
    ) -> None:
        super().__init__(source, dst)
        resolution = resolve_cast(src, dst, mode, SaturationMode.ON, family=family)
        steps = conversions_of(resolution, current().controls)
        self._kernel = elementwise.loop(steps)
        self.mode = mode

    @property
    def unexplained(self) -> int:
        """Those that differ, any two NaN counted as equal."""
        return self.differing - self.nans

    def add(self, start: int, one: Codes, other: Codes) -> None:
        """Cast a block and compare it."""
        result = np.empty(one.size, other.dtype)
        self._kernel(one, result)
        super().add(start, result, other)

    def _note(self, before: Codes, after: Codes, nan: Codes, places: Codes) -> None:
        """Remember the first element that is no NaN on both sides."""
        real = np.flatnonzero(~nan)
        if real.size and self.element is None:
            assert self._dtype is not None
            assert self._dtype.format is not None
            here, fmt = int(real[0]), self._dtype.format
            self.element = _element(before, after, here, int(places[here]), self._shape, fmt)


def differences_report(first: Path, second: Path, found: Sequence[TensorDifference]) -> Report:
    """The differences of two checkpoints: a row for each tensor with one, and how many are equal.

    Args:
        first: where A is.
        second: where B is.
        found: as `differences` yields them.
    """
    told = [one for one in found if one.cast is not None or not one.is_equal]
    # Tensors that differ go first.
    told.sort(key=lambda one: one.is_equal)
    equal = sum(one.differing == 0 for one in found)
    casts = sum(one.cast is not None and one.is_equal for one in found)
    alike = sum(one.is_equal for one in found)
    left = len(told) - _MOST_ROWS
    return Report(
        kind="diff",
        title=printable(f"A {first}, B {second}"),
        facts=plain(a=first, b=second, tensors=lambda: list(map(_document, found))),
        tables=(
            Table(
                columns=(
                    Column(heading="tensor", is_name=True),
                    Column(heading="A", is_minor=True),
                    Column(heading="B", is_minor=True),
                    Column(heading="found"),
                ),
                rows=[
                    (one.name, _side_in_words(one, 0), _side_in_words(one, 1), _in_words(one))
                    for one in told[:_MOST_ROWS]
                ],
                note=f"{plural(left, 'more tensor')} in --json" if left > 0 else "",
            ),
        ),
        totals=(
            said(
                "total",
                f"{plural(len(found), 'tensor')}: {equal:,} equal in all bits, {casts:,} wholly a "
                f"cast of the other, {len(found) - alike:,} different",
            ),
        ),
    )


def _in_words(one: TensorDifference) -> str:
    """The difference of a tensor in a sentence."""
    if None in one.shapes:
        return "only in A" if one.shapes[1] is None else "only in B"
    if one.shapes[0] != one.shapes[1]:
        return "the shapes differ"
    if one.cast is not None:
        return _cast_in_words(one.cast)
    if one.differing is None:
        for name, dtype in zip("AB", one.dtypes, strict=True):
            if dtype is not None and dtype.startswith("|V"):
                return f"{name} is of bytes that .npy has no name for; .safetensors says the dtype"
        return f"no cast of {' or '.join(MATRIX)} leads from one to the other"
    if not one.differing:
        return "equal"
    unit = "byte" if one.is_of_bytes else "code"
    words = f"{plural(one.differing, unit)} differ{'s' * (one.differing == 1)}"
    if one.nans:
        words += f", {one.nans:,} of them NaN on both sides"
    if one.ulp_max and one.element is not None:
        words += f"; at most {one.ulp_max:,} ulp, at {_at(one.element)}"
    return words


def _cast_in_words(cast: CastFound) -> str:
    source = "A" if cast.result == "B" else "B"
    mode = "" if cast.mode is CastMode.CAST_NONE else f" by {cast.mode.name}"
    words = f"{cast.result} is {source} cast{mode}"
    if cast.element is None:
        return words
    element = f"; the first: {_at(cast.element)}"
    return f"{words}, but for {plural(cast.differing, 'element')}{element}"


def _at(element: ElementPair) -> str:
    sides = zip(element.values, element.codes, strict=True)
    texts = (f"{value:.9g} = {code:#x}" for value, code in sides)
    return f"{list(element.index)}: {' and '.join(texts)}"


def _side_in_words(one: TensorDifference, side: int) -> str:
    shape = one.shapes[side]
    return "" if shape is None else f"{one.dtypes[side]} {list(shape)}"


def _document(one: TensorDifference) -> dict[str, Any]:
    """Values are text, for JSON has no NaN."""
    cast = one.cast
    return {
        "name": one.name,
        "shapes": [None if shape is None else list(shape) for shape in one.shapes],
        "dtypes": list(one.dtypes),
        "equal": one.is_equal,
        "differing": one.differing,
        "nans": one.nans,
        "ulp_max": one.ulp_max,
        "element": _element_document(one.element),
        "cast": None
        if cast is None
        else {
            "result": cast.result,
            "mode": cast.mode.name,
            "differing": cast.differing,
            "element": _element_document(cast.element),
        },
        "found": _in_words(one),
    }


def _element_document(element: ElementPair | None) -> dict[str, Any] | None:
    if element is None:
        return None
    return {
        "index": list(element.index),
        "values": list(map(str, element.values)),
        "codes": list(map(hex, element.codes)),
    }
