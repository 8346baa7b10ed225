"""Compares arrays bit for bit and names the elements that differ, with tile and core."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from pypto_cast.cast.npu import HostCopies
from pypto_cast.dtypes.data_types import dtype_of_numpy
from pypto_cast.recording.steps import CastRecord, OperationRecord, Patches, origin_of
from pypto_cast.report.text_format import hex_code
from pypto_cast.tensors.arrays import array_of
from pypto_cast.tensors.tensor import Tensor
from simulator.arithmetic.total_order import is_nan
from simulator.numbers import float_environment
from simulator.numbers.convert import codes_of, in_numpy
from simulator.numbers.formats import Codes, FloatFormat, Format
from simulator.numbers.literals import bits_text
from tiling.grid import Shape, Tile


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenElement:
    """An element of an array, and where it came from.

    Attributes:
        index: where.
        tile: the tile of the cast or operation that wrote it; None if none of this package did.
        core: the core that had the tile.
        record: the cast or operation.
    """

    index: Shape
    tile: Tile | None
    core: int | None
    record: CastRecord | OperationRecord | None

    @property
    def place(self) -> str:
        """Tile, core and call in words; empty if nothing of this package wrote the element."""
        if self.tile is None:
            return ""
        where = f"tile {self.tile.index} at {list(self.tile.offset)}, {list(self.tile.shape)}"
        return f"{where} elements, core {self.core}, {self.record}"


def writer_of(index: Shape, patches: Patches) -> dict[str, Any]:
    """Tile, core and record of the last of the calls that wrote an element."""
    found = [(patch, at) for patch in patches if (at := patch.tile_at(index)) is not None]
    if not found:
        return {"tile": None, "core": None, "record": None}
    patch, (tile, core) = found[-1]
    return {"tile": tile, "core": core, "record": patch.record}


def array_under_test(value: Any, label: str) -> npt.NDArray[Any]:
    """The elements of a pypto tensor, a numpy array or a torch tensor, on the CPU or an NPU.

    Raises:
        TypeError: something else.
        ValueError: not contiguous, under `options(strict=True)`.
    """
    value = HostCopies().of(value)
    return value.numpy() if isinstance(value, Tensor) else array_of(value, label)


def shape_under_test(value: Any) -> list[int]:
    """The shape that was given: `array_under_test` of a scalar has shape [1]."""
    return list(map(int, np.shape(value)))


def dtype_under_test(array: npt.NDArray[Any], label: str) -> str:
    """The name of the dtype of an array.

    Raises:
        TypeError: numpy has it alone; the text begins with the label.
    """
    try:
        return dtype_of_numpy(array.dtype).name
    except TypeError as error:
        raise TypeError(f"{label}: {error}") from error


def patches_of(value: Any, array: npt.NDArray[Any]) -> Patches:
    """The casts that wrote an array under test; none where they are not known."""
    return value.patches() if isinstance(value, Tensor) else origin_of(array)


def native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers, contiguous and in this machine's byte order."""
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=False)


def flat_codes(array: npt.NDArray[Any], fmt: Format) -> Codes:
    """The codes of an array, 1-D in row-major order."""
    return codes_of(native(array).reshape(-1), fmt)


PIECE_ELEMS: Final = 1 << 18
"""Elements of arrays that are compared at once, so that dumps need no copy."""


def pieces(*arrays: npt.NDArray[Any]) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Yields parts of arrays of one shape, flat, in row-major order and this machine's byte order.

    Arrays in any order, strided or of another byte order are copied a part at a time. A part is
    valid until the next one is asked for, and has at most `PIECE_ELEMS` elements.
    """
    native_dtypes = [array.dtype.newbyteorder("=") for array in arrays]
    views = [
        array.view(np.dtype(f"u{array.itemsize}").newbyteorder(array.dtype.byteorder))
        for array in arrays
    ]
    walk = np.nditer(
        views,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=[["readonly"]] * len(views),
        op_dtypes=[np.dtype(f"u{array.itemsize}") for array in arrays],
        order="C",
        casting="equiv",
        buffersize=PIECE_ELEMS,
    )
    for part in walk:
        parts = part if isinstance(part, tuple) else (part,)
        yield tuple(x.view(dtype) for x, dtype in zip(parts, native_dtypes, strict=True))


def code_in_words(code: int, fmt: Format) -> str:
    """A code in hex, and that of a float as sign, exponent and fraction, of HF8 with its dot."""
    if not isinstance(fmt, FloatFormat):
        return hex_code(code, fmt)
    fields = bits_text(code, fmt).replace("|", " ")
    return f"{hex_code(code, fmt)} ({fields})"


_SHOWN: Final = 5
Nans = Literal["bits", "class"]


class BitsDifferError(AssertionError):
    """Two arrays that should have the same bits do not.

    Attributes:
        differences: the first of them.
    """

    def __init__(self, text: str, found: tuple[Difference, ...]) -> None:
        super().__init__(text)
        self.differences = found


class DifferenceKind(enum.Enum):
    """The kinds of difference between two codes."""

    ONE_ULP = "one ulp"
    ZERO_SIGN = "sign of zero"
    NAN = "NaN"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(WrittenElement):
    """One element that differs.

    Attributes:
        actual: its value.
        actual_code: its bits.
        expected: the value it should have.
        expected_code: the bits it should have.
        format: of both.
        kind: how they differ.
    """

    actual: str
    actual_code: int
    expected: str
    expected_code: int
    format: Format
    kind: DifferenceKind

    def __str__(self) -> str:
        actual = f"{self.actual} = {code_in_words(self.actual_code, self.format)}"
        expected = f"{self.expected} = {code_in_words(self.expected_code, self.format)}"
        lines = [f"{list(self.index)}: {self.kind.value}"]
        lines += [f"    actual   {actual}", f"    expected {expected}"]
        if self.place:
            lines.append(f"    {self.place}")
        return "\n".join(lines)


def assert_bits_equal(actual: Any, expected: Any, *, nans: Nans = "bits") -> None:
    """Fail unless two arrays have the same dtype, shape and bits.

    The message shows the first elements that differ: value, code in hex, sign, exponent and
    fraction, index, the tile and core that wrote it, and how many differ by one ulp, in the sign of
    zero, by a NaN, or otherwise.

    Args:
        actual: a pypto tensor, a numpy array or a torch tensor; tile and core are known if a
            kernel or `pypto.cast` wrote it.
        expected: the same kinds.
        nans: "class" takes any two NaN for equal, as is fair against another implementation.

    Raises:
        BitsDifferError: an AssertionError; they differ.
        TypeError: no arrays.
        ValueError: an unknown `nans`.
    """
    __tracebackhide__ = True  # pytest shows the line of the test instead
    first, total, kinds = _compared(actual, expected, nans)
    if not total:
        return
    counts = ", ".join(f"{kind.value}: {kinds[kind]}" for kind in DifferenceKind if kinds[kind])
    size = array_under_test(actual, "actual").size
    head = f"{total} of {size} elements differ ({counts}); the first {len(first)}:"
    raise BitsDifferError("\n".join([head, *(f"  {entry}" for entry in first)]), first)


def differences(actual: Any, expected: Any, *, nans: Nans = "bits") -> tuple[Difference, ...]:
    """The first elements that differ, as `assert_bits_equal` shows them.

    Raises:
        BitsDifferError: different dtypes or shapes.
        TypeError, ValueError: as for `assert_bits_equal`.
    """
    return _compared(actual, expected, nans)[0]


@float_environment.quiet()
def _compared(
    actual: Any, expected: Any, nans: Nans
) -> tuple[tuple[Difference, ...], int, Counter[DifferenceKind]]:
    if nans not in get_args(Nans):
        raise ValueError(f"nans must be one of {get_args(Nans)}, not {nans!r}")
    ours, theirs = array_under_test(actual, "actual"), array_under_test(expected, "expected")
    for what, have, want in (
        ("dtype", dtype_under_test(ours, "actual"), dtype_under_test(theirs, "expected")),
        ("shape", str(list(ours.shape)), str(list(theirs.shape))),
    ):
        if have != want:
            raise BitsDifferError(f"actual has {what} {have}, expected has {want}", ())
    fmt = dtype_of_numpy(ours.dtype).number_format
    a, b = flat_codes(ours, fmt), flat_codes(theirs, fmt)
    differ = a != b
    nan = tuple(is_nan(native(each).reshape(-1), fmt) for each in (ours, theirs))
    if nans == "class":
        differ &= ~(nan[0] & nan[1])
    where = np.flatnonzero(differ)
    kinds = _kinds(a[where], b[where], (nan[0] | nan[1])[where], fmt)
    patches = patches_of(actual, ours)
    first = tuple(_described(where[:_SHOWN], kinds, (ours, theirs), (a, b), fmt, patches))
    return first, where.size, Counter(kinds)


def _described(
    positions: npt.NDArray[np.intp],
    kinds: list[DifferenceKind],
    values: tuple[npt.NDArray[Any], npt.NDArray[Any]],
    codes: tuple[Codes, Codes],
    fmt: Format,
    patches: Patches,
) -> Iterator[Difference]:
    for position, kind in zip(positions.tolist(), kinds, strict=False):
        index = tuple(int(axis) for axis in np.unravel_index(position, values[0].shape))
        yield Difference(
            index=index,
            **writer_of(index, patches),
            actual=str(in_numpy(values[0], fmt)[index]),
            actual_code=int(codes[0][position]),
            expected=str(in_numpy(values[1], fmt)[index]),
            expected_code=int(codes[1][position]),
            format=fmt,
            kind=kind,
        )


def _kinds(a: Codes, b: Codes, nan: npt.NDArray[np.bool_], fmt: Format) -> list[DifferenceKind]:
    """The kind of difference of each pair: NaN apart, by the number of codes between them."""
    by_steps = {0: DifferenceKind.ZERO_SIGN, 1: DifferenceKind.ONE_ULP}
    pairs = zip(a.tolist(), b.tolist(), nan.tolist(), strict=True)
    return [
        DifferenceKind.NAN
        if is_nan
        else by_steps.get(abs(_place(x, fmt) - _place(y, fmt)), DifferenceKind.OTHER)
        for x, y, is_nan in pairs
    ]


def _place(code: int, fmt: Format) -> int:
    """The rank of a code among all of its format in the order of values, the two zeros alike."""
    if isinstance(fmt, FloatFormat):
        rank = fmt.rank_of_code(code)
        return -rank if code & fmt.sign_code else rank
    sign = 1 << (fmt.bits - 1)
    return code - 2 * sign if fmt.signed and code & sign else code
