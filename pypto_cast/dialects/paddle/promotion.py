"""The dtype that an API's operands are converted to, the dtype of its result, and the tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.dialects.paddle.apis import Api, Call, PromotionRule, Scalars, ZeroDim, find_call
from pypto_cast.dialects.paddle.cast import (
    DTYPES,
    SCALAR_DTYPES,
    Category,
    cast,
    dtype_name,
    row_of,
)
from pypto_cast.dtypes.names import dtype_of_tensor

RULES: Final = ("3.3", "doc")

_WIDENED: Final[Mapping[frozenset[str], str]] = {
    frozenset({"float16", "bfloat16"}): "float32",
    frozenset({"uint8", "int8"}): "int16",
    frozenset({"complex64", "float64"}): "complex128",
}
"""Pairs that neither of the two can hold."""

_PRINTED: Final[Mapping[tuple[str, str], str]] = {
    ("complex64", "float64"): "complex64",
    ("complex64", "int64"): "complex128",
}
"""Two cells that the document has the wrong way round: its transposed cells differ."""


def promote_types(x: str, y: str) -> str:
    """The smallest dtype that holds both, in Paddle's sense: floats hold every integer.

    Source: phi::promoteTypes of Paddle 3.3.
    """
    if x == y:
        return x
    if (widened := _WIDENED.get(frozenset({x, y}))) is not None:
        return widened
    return max(x, y, key=lambda name: (row_of(name).category.value, row_of(name).part.bits))


def is_promotable(x: str, y: str) -> bool:
    """True if Paddle promotes Tensors of two different dtypes at all."""
    categories = {row_of(x).category, row_of(y).category}
    return Category.COMPLEX in categories or categories == {Category.FLOAT}


def promote_scalar(dtype: str, scalar: str) -> str:
    """The dtype of a Tensor and a scalar: the Tensor's, unless the scalar's broad type differs.

    Args:
        dtype: of the Tensor.
        scalar: default dtype of the scalar, or dtype of the 0-d Tensor that counts as one.
    """
    if row_of(dtype).category is row_of(scalar).category:
        return dtype
    return promote_types(dtype, scalar)


def check_rules(rules: object) -> None:
    """Refuse unknown rules.

    Raises:
        ValueError: naming the known ones.
    """
    if rules not in RULES:
        raise ValueError(f"rules must be one of {RULES}, not {rules!r}")


def tensor_tensor_table(rules: str = "3.3") -> Mapping[tuple[str, str], str | None]:
    """The table "Tensor-to-Tensor" of `+`, `-` and `*`.

    Args:
        rules: "3.3", or "doc" for the cells as printed.

    Returns:
        (dtype of x, dtype of y) -> dtype of both after promotion, None where it is refused (the
        document's "-"); rows and columns in the order of `DTYPES`.

    Raises:
        ValueError: unknown `rules`.
    """
    check_rules(rules)
    return _TENSOR_TENSOR[rules]


def tensor_scalar_table() -> Mapping[tuple[str, str], str]:
    """The table "Tensor-to-Scalar" of `+`, `-` and `*`; all rules have the same.

    Returns:
        (dtype of the Tensor, "bool", "int", "float" or "complex") -> dtype of both.
    """
    return _TENSOR_SCALAR


_PROMOTED: Final[Mapping[tuple[str, str], str | None]] = {
    (x, y): promote_types(x, y) if is_promotable(x, y) else None
    for x, y in itertools.product(DTYPES, repeat=2)
}
_TENSOR_TENSOR: Final[Mapping[str, Mapping[tuple[str, str], str | None]]] = MappingProxyType(
    {
        "3.3": MappingProxyType({**_PROMOTED, **{(x, x): x for x in DTYPES}}),
        "doc": MappingProxyType({**_PROMOTED, **_PRINTED}),
    }
)
_TENSOR_SCALAR: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        (dtype, kind): promote_scalar(dtype, default)
        for dtype in DTYPES
        for kind, default in SCALAR_DTYPES.items()
    }
)


_REFUSED: Final = (
    "(InvalidType) Type promotion only support calculations between floating-point numbers and "
    "between complex and real numbers. But got different data type x: {x}, y: {y}."
)
_MUST_BE_TENSOR: Final = (
    "(InvalidArgument) {callee}(): argument '{parameter}' (position {position}) must be Tensor, "
    "but got {kind}"
)
_NO_PROMOTION: Final = (
    "(InvalidArgument) The type of data we are trying to retrieve ({y}) does not match the type of "
    "data ({x}) currently contained in the container."
)
_NO_OPERATOR: Final = "unsupported operand type(s) for |: '{kind}' and 'Tensor'"
"""Paddle's text, whichever of the three bitwise operators was used."""

_SCALAR_TYPES: Final = (bool, int, float, complex)
"""bool before int, whose subclass it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Argument:
    """A Tensor, or a scalar with its default dtype; `kind` is the scalar's Python type."""

    dtype: str
    zero_dim: bool = False
    kind: str | None = None

    @property
    def category(self) -> Category:
        return row_of(self.dtype).category


def promote_dtype(op: str, x: object, y: object, *, rules: str = "3.3") -> str:
    """The dtype that an API converts both of its operands to.

    Values play no part: an int that no dtype holds is an int. A result may have another dtype (see
    `result_dtype`). Dtypes are named even where Paddle's CPU build has no kernel for them.

    Args:
        op: an API: "add", "+" or "__add__" by its operator, "paddle.add" as a function. Where an
            API has no operator, its name is the function.
        x: the left operand: a Tensor or an array, anything with a `dtype` and a `shape`; the name
            of a Tensor's dtype (any that `cast` takes), which then has dimensions; (dtype, shape),
            where shape () is a 0-d Tensor; or a bool, int, float or complex. No numpy scalar,
            which Paddle takes for neither.
        y: the right operand, likewise.
        rules: "3.3" for what Paddle 3.3 does, "doc" for the document's cells as printed, where a
            "-" is refused and shapes play no part.

    Returns:
        Paddle's name of the dtype.

    Raises:
        TypeError: Paddle refuses this pair (with its text); or an operand is none.
        ValueError: the function takes no scalar there, or the API does not promote and the dtypes
            differ (with Paddle's text); unknown `op`, `rules` or dtype; an impossible shape.

    Source: "Introduction to Data Type Promotion"; phi/common/type_promotion.h of Paddle 3.3; the
    rest measured with paddlepaddle 3.3.1 in eager mode. The document's "as of 2.6" and "same with
    static graph" do not hold: the module tells the differences. Where a function of 3.3.1 fails on
    a scalar with an AttributeError (atan2, poisson_nll_loss), the ValueError of the others stands
    for it.
    """
    check_rules(rules)
    call = find_call(op)
    left = _operand("x", x)
    right = _operand("y", y)
    return (_documented if rules == "doc" else _measured)(call, left, right)


def result_dtype(op: str, x: object, y: object, *, rules: str = "3.3") -> str:
    """The dtype of an API's result.

    bool for comparisons and logic; of integers float32 for divide and logaddexp, float64 for atan2;
    the real part's dtype for the l1_loss of complex operands; else what `promote_dtype` gives.

    Args:
        op: as for `promote_dtype`.
        x: as for `promote_dtype`.
        y: as for `promote_dtype`.
        rules: as for `promote_dtype`.

    Returns:
        Paddle's name of the dtype.

    Raises:
        TypeError: as for `promote_dtype`.
        ValueError: as for `promote_dtype`.
    """
    common = promote_dtype(op, x, y, rules=rules)
    api = find_call(op).api
    return "bool" if api.tensor_tensor is PromotionRule.LOGIC else api.results.get(common, common)


def promote_operands(
    op: str, x: object, y: object, *, rules: str = "3.3"
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Convert both operands of an API to their common dtype.

    Args:
        op: as for `promote_dtype`.
        x: the left operand: a Tensor or an array that `cast` takes, or a bool, int, float or
            complex. Not modified.
        y: the right operand, likewise.
        rules: as for `promote_dtype`.

    Returns:
        Both in the dtype of `promote_dtype`, as `cast` converts them, each of its own shape, in new
        arrays; a scalar becomes an array of rank 0.

    Raises:
        TypeError: as for `promote_dtype`; or an operand is no Tensor, array or scalar.
        ValueError: as for `promote_dtype`.

    Source: as for `promote_dtype` and `cast`. Which type an API computes with after that, and how
    it rounds a scalar on the way, is its own affair.
    """
    for name, given in (("x", x), ("y", y)):
        if not isinstance(given, _SCALAR_TYPES) and not _has_dtype(given):
            raise TypeError(f"{name} must be a Tensor, an array or a Python scalar, not {given!r}")
    common = promote_dtype(op, x, y, rules=rules)
    left: Any = x
    right: Any = y
    return cast(left, common), cast(right, common)


def _has_dtype(given: object) -> bool:
    """True for a Tensor or an array of whichever library."""
    if isinstance(given, (type, np.generic)):
        return False
    return hasattr(given, "dtype") and hasattr(given, "shape")


def _operand(name: str, given: object) -> _Argument:
    if isinstance(given, _SCALAR_TYPES):
        kind = next(kind for kind in _SCALAR_TYPES if isinstance(given, kind)).__name__
        return _Argument(dtype=SCALAR_DTYPES[kind], kind=kind)
    is_python_type = any(given is kind for kind in _SCALAR_TYPES)
    if isinstance(given, np.generic) or is_python_type:
        raise TypeError(
            f"{name} must be a Tensor, an array, the name of a dtype, (dtype, shape) or a Python "
            f"scalar, not {given!r}"
        )
    if _has_dtype(given):
        tensor: Any = given
        return _Argument(
            dtype=dtype_name(dtype_of_tensor(tensor)), zero_dim=not tuple(tensor.shape)
        )
    if not isinstance(given, tuple):
        return _Argument(dtype=dtype_name(given))
    if len(given) != 2:
        raise TypeError(f"{name} must be (dtype, shape), not a tuple of {len(given)}: {given!r}")
    dtype, shape = given
    return _Argument(dtype=dtype_name(dtype), zero_dim=not _checked(name, shape))


def _checked(name: str, shape: object) -> Sequence[int]:
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"the shape of {name} must be a tuple of ints, not {shape!r}")
    for length in shape:
        if isinstance(length, bool) or not hasattr(length, "__index__"):
            raise TypeError(f"the shape of {name} must be a tuple of ints, not {shape!r}")
        if length < 0:
            raise ValueError(f"the shape of {name} has a negative length: {shape!r}")
    return shape


# --- What Paddle 3.3 does -----------------------------------------------------------------------


def _measured(call: Call, x: _Argument, y: _Argument) -> str:
    x, y = _without_scalars(call, x, y)
    if call.api.first:
        zero_dim = x.zero_dim and y.zero_dim
        y = _Argument(dtype=_common(call, y, x), zero_dim=zero_dim)
        x = replace(x, dtype=call.api.first.get(x.dtype, x.dtype))
    common = _common(call, x, y)
    if call.api.tensor_scalar is PromotionRule.DIVIDE and row_of(common).category is Category.INT:
        return "float32"
    return common


def _without_scalars(call: Call, x: _Argument, y: _Argument) -> tuple[_Argument, _Argument]:
    """Turn scalars into the Tensors that an API makes of them, or refuse them."""
    if call.is_operator and x.kind is not None and y.kind is not None:
        raise TypeError(
            f"one operand of {call.api.symbols[0]!r} must be a Tensor, but both are Python scalars"
        )
    return _tensor_for(call, 0, x, y), _tensor_for(call, 1, y, x)


def _tensor_for(call: Call, position: int, operand: _Argument, other: _Argument) -> _Argument:
    if operand.kind is None:
        return operand
    treatment = call.scalars[position]
    if treatment is Scalars.TENSOR:
        return _Argument(dtype=operand.dtype)
    if treatment is Scalars.ZERO_DIM:
        return _Argument(dtype=operand.dtype, zero_dim=True)
    if treatment is Scalars.WEAK:
        return operand
    if treatment is Scalars.INTEGRAL:
        if operand.category in (Category.BOOL, Category.INT):
            return other
        raise TypeError(_NO_OPERATOR.format(kind=operand.kind))
    if treatment is Scalars.CONVERTED and operand.category is not Category.COMPLEX:
        return other
    if treatment is Scalars.CONVERTED and call.api.complex_text is not None:
        raise TypeError(call.api.complex_text)
    raise _must_be_tensor(call.api, position, operand)


def _must_be_tensor(api: Api, position: int, operand: _Argument) -> ValueError:
    parameter = api.parameters[position]
    return ValueError(
        _MUST_BE_TENSOR.format(
            callee=api.callee, parameter=parameter, position=position, kind=operand.kind
        )
    )


def _common(call: Call, x: _Argument, y: _Argument) -> str:
    """The common dtype of two operands; a scalar among them is a weak one."""
    api = call.api
    if x.kind is not None:
        return _with_weak(api, y, x)
    if y.kind is not None:
        return _with_weak(api, x, y)
    if x.dtype == y.dtype:
        return x.dtype
    if api.tensor_tensor is None:
        raise ValueError(_NO_PROMOTION.format(x=x.dtype, y=y.dtype))
    if (x.zero_dim or y.zero_dim) and api.zero_dim is not ZeroDim.TENSOR:
        return _with_zero_dim(api, x, y)
    if not is_promotable(x.dtype, y.dtype):
        raise TypeError(_REFUSED.format(x=x.dtype, y=y.dtype))
    return promote_types(x.dtype, y.dtype)


def _with_weak(api: Api, tensor: _Argument, scalar: _Argument) -> str:
    if tensor.zero_dim and scalar.category is Category.COMPLEX and api.zero_dim_complex is not None:
        return api.zero_dim_complex
    return promote_scalar(tensor.dtype, scalar.dtype)


def _with_zero_dim(api: Api, x: _Argument, y: _Argument) -> str:
    if api.zero_dim is ZeroDim.PROMOTED or (x.zero_dim and y.zero_dim):
        return promote_types(x.dtype, y.dtype)
    tensor, scalar = (y, x) if x.zero_dim else (x, y)
    return promote_scalar(tensor.dtype, scalar.dtype)


# --- What the document prints -------------------------------------------------------------------


def _documented(call: Call, x: _Argument, y: _Argument) -> str:
    if x.kind is not None and y.kind is not None:
        raise TypeError("one operand must be a Tensor, but both are Python scalars")
    if x.kind is None and y.kind is None:
        return _documented_tensors(call.api, x, y)
    return _documented_scalar(call.api, x, y)


def _documented_tensors(api: Api, x: _Argument, y: _Argument) -> str:
    if api.tensor_tensor is None:
        if x.dtype != y.dtype:
            raise ValueError(_NO_PROMOTION.format(x=x.dtype, y=y.dtype))
        return x.dtype
    _check_scope(api.tensor_tensor, x, y)
    common = tensor_tensor_table("doc")[x.dtype, y.dtype]
    if common is None:
        raise TypeError(_REFUSED.format(x=x.dtype, y=y.dtype))
    return common


def _documented_scalar(api: Api, x: _Argument, y: _Argument) -> str:
    tensor, scalar, position = (x, y, 1) if x.kind is None else (y, x, 0)
    if api.tensor_scalar is None:
        raise _must_be_tensor(api, position, scalar)
    _check_scope(api.tensor_scalar, x, y)
    common = promote_scalar(tensor.dtype, scalar.dtype)
    whole = row_of(common).category in (Category.BOOL, Category.INT)
    return "float32" if whole and api.tensor_scalar is PromotionRule.DIVIDE else common


def _check_scope(rule: PromotionRule, x: _Argument, y: _Argument) -> None:
    if rule is PromotionRule.LOGIC and Category.COMPLEX in (x.category, y.category):
        raise TypeError(
            "complex types cannot be used for logical operations in the document, but got data "
            f"type x: {x.dtype}, y: {y.dtype}; Paddle 3.3 compares them: rules='3.3'"
        )
