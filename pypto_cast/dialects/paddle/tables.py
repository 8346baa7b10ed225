"""Promotes two dtypes by one rule, and makes the document's two tables of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pypto_cast.dialects.paddle.dtypes import (
    DTYPES,
    SCALAR_DTYPES,
    Category,
    row_of,
)

RULES: Final = ("3.3", "doc")

_WIDENED: Final[Mapping[frozenset[str], str]] = MappingProxyType(
    {
        frozenset({"float16", "bfloat16"}): "float32",
        frozenset({"uint8", "int8"}): "int16",
        frozenset({"complex64", "float64"}): "complex128",
    }
)
"""Pairs that neither of the two can hold."""

_PRINTED: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {("complex64", "float64"): "complex64", ("complex64", "int64"): "complex128"}
)
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
    """Tells whether Paddle promotes Tensors of two different dtypes at all."""
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


def _measured(x: str, y: str) -> str | None:
    return promote_types(x, y) if x == y or is_promotable(x, y) else None


def _printed(x: str, y: str) -> str | None:
    return _PRINTED.get((x, y), promote_types(x, y) if is_promotable(x, y) else None)


_PAIRS: Final = tuple((x, y) for x in DTYPES for y in DTYPES)
_TENSOR_TENSOR: Final[Mapping[str, Mapping[tuple[str, str], str | None]]] = MappingProxyType(
    {
        "3.3": MappingProxyType({pair: _measured(*pair) for pair in _PAIRS}),
        "doc": MappingProxyType({pair: _printed(*pair) for pair in _PAIRS}),
    }
)
_TENSOR_SCALAR: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        (dtype, kind): promote_scalar(dtype, default)
        for dtype in DTYPES
        for kind, default in SCALAR_DTYPES.items()
    }
)
