"""ConvertPromoteTypes-14: the common type of two inputs, and both inputs converted to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy.typing as npt

from pypto_cast.dialects.openvino.convert import convert
from pypto_cast.dialects.openvino.element_types import (
    ELEMENT_TYPES,
    HELD_FORMATS,
    ElementType,
    OpenVINOError,
    TypeKind,
    array_of,
    known_name,
    name_of_dtype,
)

_UNSUPPORTED_TYPE: Final = (
    "Check 'is_type_supported(input_0_type) && is_type_supported(input_1_type)' failed"
)
_INTEGER_TO_REAL: Final = "Integer input cannot be safely promoted to floating-point."
_SCALAR: Final = "Scalar input cannot be PyTorch-like promoted using safe promotion rules."
_UNSIGNED: Final = (
    "Unsigned integer input cannot be safely promoted into any supported signed integer."
)
_NO_RULE: Final = "Unsupported input element types for ConvertPromoteTypes with given attributes."

_DYNAMIC: Final = ELEMENT_TYPES["dynamic"]
_SIGNED_OF_BITS: Final = {
    row.bits: row for row in ELEMENT_TYPES.values() if row.kind is TypeKind.SIGNED
}
_WIDEST_PAIRED_BITS: Final = 32
"""Of unsigned integers: a wider one has no signed integer of twice its width."""
_EQUAL_WIDTHS: Final = {8: ELEMENT_TYPES["f16"], 16: ELEMENT_TYPES["f32"]}
"""The type that holds both of two different floats of one width."""


class PromotionError(OpenVINOError):
    """No common type: OpenVINO's sentence, the request, and the attributes that would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """Two inputs and the attributes; a rank of None is a dynamic one."""

    types: tuple[ElementType, ElementType]
    ranks: tuple[int | None, int | None]
    promote_unsafe: bool
    pytorch_scalar_promotion: bool
    target: str

    def refusal(self, sentence: str, *, unsafe: str) -> PromotionError:
        """The error; `unsafe` is the type that promote_unsafe=True would give."""
        types = ", ".join(
            f"{row} of {'dynamic rank' if rank is None else f'rank {rank}'}"
            for row, rank in zip(self.types, self.ranks, strict=True)
        )
        return PromotionError(
            f"{sentence} Asked for ({types}), promote_unsafe={self.promote_unsafe}, "
            f"pytorch_scalar_promotion={self.pytorch_scalar_promotion}; promote_unsafe=True gives "
            f"{unsafe}"
        )


def promoted_type(
    type0: str,
    type1: str,
    *,
    rank0: int | None = None,
    rank1: int | None = None,
    promote_unsafe: bool = False,
    pytorch_scalar_promotion: bool = False,
    u64_integer_promotion_target: str = "f32",
) -> str:
    """The type that ConvertPromoteTypes-14 converts two inputs to; their order plays no part.

    1. Any "dynamic": dynamic. Equal: that type. "boolean" and another: the other.
    2. Float and integer: the float, if promote_unsafe or it has at least twice the bits.
    3. Both floats or both integers, under pytorch_scalar_promotion: "dynamic" if a rank is dynamic;
       if exactly one rank is 0, the type T of the other input, provided that promote_unsafe, or
       both have the same sign and T at least the bits of the scalar's type S, or T is signed, S
       unsigned and twice the bits of T at least those of S.
    4. Signed and unsigned: up to u32, the signed integer of the larger of its own and twice the
       unsigned width, if promote_unsafe or that is its own; beyond, u64_integer_promotion_target
       if promote_unsafe.
    5. Else the wider type; of equal widths, if promote_unsafe, f16 for both f8 and f32 for f16 with
       bf16.

    The operation's text and the runtime disagree in places; this is the runtime. The text says that
    all bit widening needs promote_unsafe (only widening to a third type does), that a scalar i64
    and a dimensioned u8 give u8 (that needs promote_unsafe), that rules of safety hold in the
    PyTorch-like mode (a scalar u64 becomes i32, a scalar f16 bf16, with nothing said), and that
    u64_integer_promotion_target decides for u64 and a signed integer (only if promote_unsafe).

    Args:
        type0: OpenVINO's name of a type, such as "f32", in any case.
        type1: likewise.
        rank0: dimensions of input_0; 0 is a scalar, None a dynamic rank. [1] is no scalar.
        rank1: likewise of input_1.
        promote_unsafe: allow promotions that may widen, lose precision or be undefined.
        pytorch_scalar_promotion: give a scalar the type of a dimensioned input of its own kind.
        u64_integer_promotion_target: any type of OpenVINO, for rule 4.

    Returns:
        OpenVINO's name of the type.

    Raises:
        PromotionError: no rule gives a type, or an input has a type outside the 18.
        OpenVINOError: a name that OpenVINO has no type for.
        TypeError: a name that is no str, a rank that is no int, an attribute that is no bool.
        ValueError: a negative rank.

    Source: ConvertPromoteTypes-14; measured with openvino 2026.4.1.
    """
    names = known_name(type0), known_name(type1)
    target = known_name(u64_integer_promotion_target)
    for rank in (rank0, rank1):
        _check_rank(rank)
    _check_flag("promote_unsafe", promote_unsafe)
    _check_flag("pytorch_scalar_promotion", pytorch_scalar_promotion)
    for name in names:
        if name not in ELEMENT_TYPES:
            raise PromotionError(
                f"{_UNSUPPORTED_TYPE}: {name} is not promoted; these are: "
                f"{', '.join(ELEMENT_TYPES)}"
            )
    return _common_type(
        _Node(
            types=(ELEMENT_TYPES[names[0]], ELEMENT_TYPES[names[1]]),
            ranks=(rank0, rank1),
            promote_unsafe=promote_unsafe,
            pytorch_scalar_promotion=pytorch_scalar_promotion,
            target=target,
        )
    )


def convert_promote_types(
    input_0: object,
    input_1: object,
    promote_unsafe: bool = False,
    pytorch_scalar_promotion: bool = False,
    u64_integer_promotion_target: str = "f32",
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Convert two inputs to their common type, as ConvertPromoteTypes-14 does.

    The type is `promoted_type`'s. Values become what OpenVINO's Convert makes of them, evaluated by
    its core. Integers keep their low bits (300 to u8 is 44, -1 is 255) and 1 for true. To floats:
    nearest, ties to even, through every type between (f64 or an integer to f8e4m3 by way of f32
    and f16); a bf16 result adds half a unit only to an odd last place; out of range is infinity,
    in f8e4m3 NaN, from i32 to f16 +-65504. -0 stays -0; a NaN keeps its sign and the payload bits
    that fit. The CPU plugin takes 64-bit integers for 32-bit ones; this does not. Long arrays are
    shared among the threads of `pypto_cast.options(threads=...)`.

    Args:
        input_0: a numpy array or scalar, an openvino.Tensor, a torch CPU tensor; or a Python number
            or a nested list of them, of which openvino makes constants: bool is boolean, int i64,
            float f64, a number alone of rank 0. Not modified.
        input_1: likewise.
        promote_unsafe: as for `promoted_type`.
        pytorch_scalar_promotion: as for `promoted_type`.
        u64_integer_promotion_target: as for `promoted_type`.

    Returns:
        Both inputs in the common type, each of its own shape, in new numpy arrays.

    Raises:
        PromotionError: as for `promoted_type`; or numpy has no dtype for the common type ("u1",
            "dynamic", or a target outside the 18).
        OpenVINOError: an unknown target.
        TypeError: an input that holds no numbers, or of a dtype that no element type has.
        OverflowError: a Python int that i64 does not hold.

    Source: ConvertPromoteTypes-14, Convert-1; measured with openvino 2026.4.1.
    """
    arrays = array_of(input_0, "input_0"), array_of(input_1, "input_1")
    names = [name_of_dtype(array.dtype) for array in arrays]
    common = promoted_type(
        names[0],
        names[1],
        rank0=arrays[0].ndim,
        rank1=arrays[1].ndim,
        promote_unsafe=promote_unsafe,
        pytorch_scalar_promotion=pytorch_scalar_promotion,
        u64_integer_promotion_target=u64_integer_promotion_target,
    )
    dst = HELD_FORMATS.get(common)
    if dst is None:
        raise PromotionError(
            f"{names[0]} and {names[1]} are promoted to {common}, which no numpy dtype holds here; "
            "name another u64_integer_promotion_target"
        )
    left_out, right_out = (
        convert(array, HELD_FORMATS[name], dst) for array, name in zip(arrays, names, strict=True)
    )
    return left_out, right_out


# --- The rules ----------------------------------------------------------------------------------


_Promotion = tuple[str, bool, str]
"""A common type, the safety of promotion to it, and OpenVINO's sentence where it is unsafe."""


def _common_type(node: _Node) -> str:
    """Rules 1 and 2, and which of the others decides."""
    first, second = node.types
    kinds = {first.kind, second.kind}
    if TypeKind.DYNAMIC in kinds:
        return _DYNAMIC.name
    if first is second:
        return first.name
    if TypeKind.BOOLEAN in kinds:
        return (second if first.kind is TypeKind.BOOLEAN else first).name
    is_mixed = kinds != {TypeKind.REAL} and TypeKind.REAL in kinds
    if not is_mixed and node.pytorch_scalar_promotion and None in node.ranks:
        return _DYNAMIC.name
    has_scalar = (node.ranks[0] == 0) != (node.ranks[1] == 0)
    if is_mixed:
        found = _real_and_integer(node)
    elif node.pytorch_scalar_promotion and has_scalar:
        found = _scalar_and_dimensioned(node)
    elif kinds == {TypeKind.SIGNED, TypeKind.UNSIGNED}:
        found = _signed_and_unsigned(node)
    else:
        found = _same_kind(node)
    common, is_safe, sentence = found
    if node.promote_unsafe or is_safe:
        return common
    raise node.refusal(sentence, unsafe=common)


def _real_and_integer(node: _Node) -> _Promotion:
    real, integer = sorted(node.types, key=lambda row: row.kind is not TypeKind.REAL)
    return real.name, real.bits >= 2 * integer.bits, _INTEGER_TO_REAL


def _scalar_and_dimensioned(node: _Node) -> _Promotion:
    first, second = node.types
    scalar, other = (first, second) if node.ranks[0] == 0 else (second, first)
    scalar_signed, other_signed = (row.kind is not TypeKind.UNSIGNED for row in (scalar, other))
    fits = scalar_signed == other_signed and other.bits >= scalar.bits
    # The factor stands on the side of the type that is kept: that is how the runtime has it.
    fits |= other_signed and not scalar_signed and 2 * other.bits >= scalar.bits
    return other.name, fits, _SCALAR


def _signed_and_unsigned(node: _Node) -> _Promotion:
    signed, unsigned = sorted(node.types, key=lambda row: row.kind is TypeKind.UNSIGNED)
    if unsigned.bits > _WIDEST_PAIRED_BITS:
        return node.target, False, _UNSIGNED
    common = _SIGNED_OF_BITS[max(2 * unsigned.bits, signed.bits)]
    return common.name, common is signed, _UNSIGNED


def _same_kind(node: _Node) -> _Promotion:
    first, second = node.types
    if first.bits != second.bits:
        return max(node.types, key=lambda row: row.bits).name, True, _NO_RULE
    return _EQUAL_WIDTHS[first.bits].name, False, _NO_RULE


# --- Arguments ----------------------------------------------------------------------------------


def _check_rank(rank: object) -> None:
    if rank is None:
        return
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise TypeError(f"a rank is an int, or None if it is dynamic, not {rank!r}")
    if rank < 0:
        raise ValueError(f"a rank is at least 0, not {rank}")


def _check_flag(name: str, flag: object) -> None:
    if not isinstance(flag, bool):
        raise TypeError(f"{name} is True or False, not {flag!r}")
