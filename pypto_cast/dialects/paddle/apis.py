"""The binary APIs that promote: the document's list, and Paddle 3.3's differences from it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final


class PromotionRule(enum.Enum):
    """The document's three rules."""

    COMMON = "Common"
    DIVIDE = "Divide"
    LOGIC = "Logic"


class ZeroDim(enum.Enum):
    """The role of a 0-d Tensor in promotion."""

    SCALAR = "a scalar of its dtype"
    PROMOTED = "a Tensor that promotes with every other dtype"
    TENSOR = "a Tensor"


class Scalars(enum.Enum):
    """The treatment of a Python scalar as an operand."""

    WEAK = "leaves the Tensor its dtype within its broad type, else promotes it"
    ZERO_DIM = "becomes a 0-d Tensor of its default dtype"
    TENSOR = "becomes a Tensor of its default dtype"
    CONVERTED = "is converted to the Tensor's dtype; a complex one is refused"
    INTEGRAL = "is converted to the Tensor's dtype if it is a bool or an int, else refused"
    REFUSED = "is refused"


_OPERATOR: Final = (Scalars.WEAK, Scalars.WEAK)
_FUNCTION: Final = (Scalars.REFUSED, Scalars.REFUSED)


def _nothing() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One row of the document's list, with the additions of Paddle 3.3.1.

    Attributes:
        numbers: its rows in the list; huber_loss has two.
        name: its name there.
        aliases: other names of the same function.
        tensor_tensor: the document's rule for two Tensors, None for its "-".
        tensor_scalar: the document's rule for a Tensor and a scalar, None for its "-".
        symbols: its operator, as symbol and as method.
        operator: what a scalar does to the left and to the right of the operator.
        function: what a scalar does as first and as second argument of the function.
        zero_dim: what a 0-d Tensor counts as.
        zero_dim_complex: dtype of a 0-d Tensor with a complex scalar, where the operator narrows.
        callee: the function that Paddle's messages name.
        parameters: its parameters, as Paddle's messages name them.
        complex_text: what the function says to a complex scalar; None for the usual message.
        first: where the API computes f(x) - y * x: dtypes of f(x), by dtype of x, if another.
        results: dtypes of results that are not the common dtype, by common dtype.
    """

    numbers: tuple[int, ...]
    name: str
    aliases: tuple[str, ...] = ()
    tensor_tensor: PromotionRule | None
    tensor_scalar: PromotionRule | None
    symbols: tuple[str, ...] = ()
    operator: tuple[Scalars, Scalars] = _OPERATOR
    function: tuple[Scalars, Scalars] = _FUNCTION
    zero_dim: ZeroDim = ZeroDim.SCALAR
    zero_dim_complex: str | None = None
    callee: str
    parameters: tuple[str, str] = ("x", "y")
    complex_text: str | None = None
    first: Mapping[str, str] = field(default_factory=_nothing)
    results: Mapping[str, str] = field(default_factory=_nothing)


def _row(
    numbers: int | tuple[int, ...],
    name: str,
    tensor_tensor: PromotionRule | None,
    tensor_scalar: PromotionRule | None,
    **more: Any,
) -> Api:
    return Api(
        numbers=(numbers,) if isinstance(numbers, int) else numbers,
        name=name,
        tensor_tensor=tensor_tensor,
        tensor_scalar=tensor_scalar,
        callee=more.pop("callee", name),
        **more,
    )


_TENSOR: Final = ZeroDim.TENSOR
_BITWISE: Final = (Scalars.INTEGRAL, Scalars.REFUSED)
_CONVERTED: Final = (Scalars.REFUSED, Scalars.CONVERTED)
_INT_TO_FLOAT32: Final = MappingProxyType({"int32": "float32", "int64": "float32"})
_INT_TO_FLOAT64: Final = MappingProxyType({"int32": "float64", "int64": "float64"})
_COMPLEX_TO_REAL: Final = MappingProxyType({"complex64": "float32", "complex128": "float64"})
_COMPLEX_EXPONENT: Final = (
    "y must be scalar, Tensor(in dygraph mode), Value(in pir mode) but received: <class 'complex'>"
)
_C, _D, _L = PromotionRule.COMMON, PromotionRule.DIVIDE, PromotionRule.LOGIC

# fmt: off
APIS: Final[tuple[Api, ...]] = (
    _row(1, "add", _C, _C, symbols=("+", "__add__")),
    _row(2, "subtract", _C, _C, symbols=("-", "__sub__")),
    _row(3, "multiply", _C, _C, symbols=("*", "__mul__")),
    _row(4, "divide", _C, _D, symbols=("/", "__truediv__"), zero_dim_complex="complex64"),
    _row(5, "floor_divide", _C, _C, symbols=("//", "__floordiv__"), zero_dim=ZeroDim.PROMOTED,
         function=(Scalars.REFUSED, Scalars.ZERO_DIM)),
    _row(6, "pow", _C, _C, symbols=("**", "__pow__"), zero_dim_complex="complex64",
         function=_CONVERTED, callee="elementwise_pow", complex_text=_COMPLEX_EXPONENT),
    _row(7, "equal", _L, _L, symbols=("==", "__eq__"), function=(Scalars.REFUSED, Scalars.WEAK)),
    _row(8, "not_equal", _L, _L, symbols=("!=", "__ne__")),
    _row(9, "less_than", _L, _L, symbols=("<", "__lt__")),
    _row(10, "less_equal", _L, _L, symbols=("<=", "__le__")),
    _row(11, "greater_than", _L, _L, symbols=(">", "__gt__")),
    _row(12, "greater_equal", _L, _L, symbols=(">=", "__ge__")),
    _row(13, "logical_and", _L, _L, zero_dim=_TENSOR),
    _row(14, "logical_or", _L, _L, zero_dim=_TENSOR),
    _row(15, "logical_xor", _L, _L, zero_dim=_TENSOR),
    _row(16, "bitwise_and", None, _C, symbols=("&", "__and__"), operator=_BITWISE),
    _row(17, "bitwise_or", None, _C, symbols=("|", "__or__"), operator=_BITWISE),
    _row(18, "bitwise_xor", None, _C, symbols=("^", "__xor__"), operator=_BITWISE),
    _row(19, "where", _C, _C, zero_dim=_TENSOR, function=(Scalars.TENSOR, Scalars.TENSOR)),
    _row(20, "fmax", _C, None, zero_dim=_TENSOR),
    _row(21, "fmin", _C, None, zero_dim=_TENSOR),
    _row(22, "logaddexp", _C, None, zero_dim=_TENSOR, callee="maximum", results=_INT_TO_FLOAT32),
    _row(23, "maximum", _C, None, zero_dim=_TENSOR),
    _row(24, "minimum", _C, None, zero_dim=_TENSOR),
    _row(25, "remainder", _C, _C, aliases=("mod",), symbols=("%", "__mod__"),
         zero_dim_complex="complex64", function=_CONVERTED),
    _row((26, 31), "huber_loss", _C, None, aliases=("smooth_l1_loss",), zero_dim=_TENSOR,
         parameters=("input", "label")),
    _row(27, "nextafter", _C, None, zero_dim=_TENSOR),
    _row(28, "atan2", _C, None, zero_dim=_TENSOR, results=_INT_TO_FLOAT64),
    _row(29, "poisson_nll_loss", _C, None, parameters=("input", "label"), first=_INT_TO_FLOAT32),
    _row(30, "l1_loss", _C, None, callee="subtract", results=_COMPLEX_TO_REAL),
    _row(32, "mse_loss", _C, None, callee="subtract"),
)
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A way to call an API: by its operator, or as a function.

    Attributes:
        api: the row.
        is_operator: called by its operator.
        scalars: what a scalar does as left and as right operand.
    """

    api: Api
    is_operator: bool
    scalars: tuple[Scalars, Scalars]


def _calls() -> dict[str, Call]:
    calls: dict[str, Call] = {}
    for api in APIS:
        function = Call(api=api, is_operator=False, scalars=api.function)
        operator = Call(api=api, is_operator=True, scalars=api.operator)
        for name in (api.name, *api.aliases):
            calls[name] = operator if api.symbols else function
            calls[f"paddle.{name}"] = function
        calls |= dict.fromkeys(api.symbols, operator)
    return calls


_CALLS: Final[Mapping[str, Call]] = _calls()
_MODULES: Final = ("paddle.nn.functional.", "paddle.Tensor.")


def find_call(op: object) -> Call:
    """The call that `op` names.

    Args:
        op: "add" (the operator, if the API has one), "+", "__add__", or "paddle.add", the function.

    Raises:
        TypeError: no str.
        ValueError: no binary API that promotes; the text names them.
    """
    if not isinstance(op, str):
        raise TypeError(f"op must be the name of a Paddle API such as 'add', not {op!r}")
    name = op
    for module in _MODULES:
        if op.startswith(module):
            name = f"paddle.{op.removeprefix(module)}"
    if (call := _CALLS.get(name)) is None:
        known = ", ".join(" ".join((api.name, *api.aliases, *api.symbols[:1])) for api in APIS)
        raise ValueError(f"no binary API that promotes is named {op!r}; known are {known}")
    return call
