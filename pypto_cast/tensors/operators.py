"""Python's operators and upstream's methods of a tensor.

`s - x` is neg(x - s), so that equal operands give -0; `s / x` is reciprocal(x) * s, rounded twice;
`x // y` is floor(x / y): as upstream's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pypto_cast.dtypes.data_types import DataType
from pypto_cast.tensors.symbolic import SymbolicScalar
from pypto_cast.unsupported import unknown_name

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
Number = int | float
_Tensor = TypeVar("_Tensor", bound="Operators")


def register_methods(operations: Mapping[str, Callable[..., Any]]) -> None:
    """Have operators and methods call these functions, by name."""
    _FUNCTIONS.update(operations)


def _call(name: str, first: _Tensor, *operands: object, **named: object) -> _Tensor:
    result: _Tensor = _FUNCTIONS[name](first, *operands, **named)
    return result


class Operators:
    """`x + y` and `x.add(y)` on tensors; the functions `pypto.add` and so on document them."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> list[SymbolicScalar]:
        """Dimensions."""

    @property
    @abstractmethod
    def dtype(self) -> DataType:
        """Element type."""

    @abstractmethod
    def move(self, other: Any) -> None:
        """Take over the values of a tensor."""

    if not TYPE_CHECKING:  # so that type checkers report them

        def __getattr__(self, name: str) -> object:
            raise AttributeError(unknown_name(name, f"a {type(self).__name__}"))

    def __add__(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        return _call("add", self, other)

    def __sub__(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        return _call("sub", self, other)

    def __mul__(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        return _call("mul", self, other)

    def __truediv__(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        return _call("div", self, other)

    def __radd__(self: _Tensor, other: Number) -> _Tensor:
        return self + other

    def __rmul__(self: _Tensor, other: Number) -> _Tensor:
        return self * other

    def __rsub__(self: _Tensor, other: Number) -> _Tensor:
        return -(self - other)

    def __rtruediv__(self: _Tensor, other: Number) -> _Tensor:
        return self.reciprocal() * other

    def __floordiv__(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        return (self / other).floor()

    def __matmul__(self: _Tensor, other: _Tensor) -> _Tensor:
        dtype = getattr(other, "dtype", self.dtype)
        return self.matmul(other, DataType.DT_INT32 if dtype is DataType.DT_INT8 else dtype)

    def __neg__(self: _Tensor) -> _Tensor:
        return _call("neg", self)

    def __pos__(self) -> Any:
        return self

    def __eq__(self, other: object) -> Any:
        if other is None or isinstance(other, str):
            return False
        return _call("eq", self, other)

    def __ne__(self, other: object) -> Any:
        if other is None or isinstance(other, str):
            return True
        return _call("ne", self, other)

    __hash__ = object.__hash__

    def __lt__(self: _Tensor, other: _Tensor | float) -> _Tensor:
        return _call("lt", self, other)

    def __le__(self: _Tensor, other: _Tensor | float) -> _Tensor:
        return _call("le", self, other)

    def __gt__(self: _Tensor, other: _Tensor | float) -> _Tensor:
        return _call("gt", self, other)

    def __ge__(self: _Tensor, other: _Tensor | float) -> _Tensor:
        return _call("ge", self, other)

    def add(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        """See `pypto.add`."""
        return _call("add", self, other)

    def sub(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        """See `pypto.sub`."""
        return _call("sub", self, other)

    def mul(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        """See `pypto.mul`."""
        return _call("mul", self, other)

    def div(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        """See `pypto.div`."""
        return _call("div", self, other)

    def matmul(
        self: _Tensor,
        mat2: _Tensor,
        out_dtype: DataType,
        *,
        a_trans: bool = False,
        b_trans: bool = False,
        c_matrix_nz: bool = False,
        extend_params: dict[str, Any] | None = None,
    ) -> _Tensor:
        """See `pypto.matmul`."""
        return _call(
            "matmul",
            self,
            mat2,
            out_dtype,
            a_trans=a_trans,
            b_trans=b_trans,
            c_matrix_nz=c_matrix_nz,
            extend_params=extend_params,
        )

    def maximum(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        """See `pypto.maximum`."""
        return _call("maximum", self, other)

    def exp(self: _Tensor) -> _Tensor:
        """See `pypto.exp`."""
        return _call("exp", self)

    def exp2(self: _Tensor) -> _Tensor:
        """See `pypto.exp2`."""
        return _call("exp2", self)

    def log(self: _Tensor) -> _Tensor:
        """See `pypto.log`."""
        return _call("log", self)

    def logical_not(self: _Tensor) -> _Tensor:
        """See `pypto.logical_not`."""
        return _call("logical_not", self)

    def sqrt(self: _Tensor) -> _Tensor:
        """See `pypto.sqrt`."""
        return _call("sqrt", self)

    def rsqrt(self: _Tensor) -> _Tensor:
        """See `pypto.rsqrt`."""
        return _call("rsqrt", self)

    def reciprocal(self: _Tensor) -> _Tensor:
        """See `pypto.reciprocal`."""
        return _call("reciprocal", self)

    def ceil(self: _Tensor) -> _Tensor:
        """See `pypto.ceil`."""
        return _call("ceil", self)

    def floor(self: _Tensor) -> _Tensor:
        """See `pypto.floor`."""
        return _call("floor", self)

    def trunc(self: _Tensor) -> _Tensor:
        """See `pypto.trunc`."""
        return _call("trunc", self)

    def relu(self: _Tensor) -> _Tensor:
        """See `pypto.relu`."""
        return _call("relu", self)

    def sigmoid(self: _Tensor) -> _Tensor:
        """See `pypto.sigmoid`."""
        return _call("sigmoid", self)

    def clone(self: _Tensor) -> _Tensor:
        """See `pypto.clone`."""
        return _call("clone", self)

    def amax(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.amax`."""
        return _call("amax", self, dim, keepdim)

    def amin(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.amin`."""
        return _call("amin", self, dim, keepdim)

    def sum(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.sum`."""
        return _call("sum", self, dim, keepdim)

    def round(self: _Tensor, decimals: int = 0) -> _Tensor:
        """See `pypto.round`."""
        return _call("round", self, decimals)

    def softmax(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.softmax`."""
        return _call("softmax", self, dim)

    def unsqueeze(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.unsqueeze`."""
        return _call("unsqueeze", self, dim)

    def transpose(self: _Tensor, dim0: int, dim1: int) -> _Tensor:
        """See `pypto.transpose`."""
        return _call("transpose", self, dim0, dim1)

    def reshape(
        self: _Tensor,
        shape: Sequence[int],
        *,
        valid_shape: Sequence[int] | None = None,
        inplace: bool = False,
    ) -> _Tensor:
        """See `pypto.reshape`; in place, a valid shape is ignored, as upstream's method does."""
        valid_shape = None if inplace else valid_shape
        return _call("reshape", self, shape, valid_shape=valid_shape, inplace=inplace)

    def expand_clone(
        self: _Tensor, shape: Sequence[int], *, valid_shape: Sequence[int] | None = None
    ) -> _Tensor:
        """See `pypto.expand_clone`."""
        return _call("expand_clone", self, shape, valid_shape=valid_shape)

    def topk(
        self: _Tensor, k: int, dim: int | None = None, largest: bool = True
    ) -> tuple[_Tensor, _Tensor]:
        """See `pypto.topk`."""
        result: tuple[_Tensor, _Tensor] = _FUNCTIONS["topk"](self, k, dim, largest)
        return result

    def argmax(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.argmax`."""
        return _call("argmax", self, dim, keepdim)

    def argmin(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.argmin`."""
        return _call("argmin", self, dim, keepdim)

    def cumsum(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.cumsum`."""
        return _call("cumsum", self, dim)

    def gather(self: _Tensor, dim: int, index: _Tensor) -> _Tensor:
        """See `pypto.gather`."""
        return _call("gather", self, dim, index)

    def scatter(
        self: _Tensor,
        dim: int,
        index: _Tensor,
        src: _Tensor | Number,
        *,
        reduce: str | None = None,
    ) -> _Tensor:
        """See `pypto.scatter`."""
        return _call("scatter", self, dim, index, src, reduce=reduce)

    def scatter_(
        self: _Tensor,
        dim: int,
        index: _Tensor,
        src: _Tensor | Number,
        *,
        reduce: str | None = None,
    ) -> _Tensor:
        """See `pypto.scatter_`."""
        return _call("scatter_", self, dim, index, src, reduce=reduce)

    def scatter_update(self: _Tensor, dim: int, index: _Tensor, src: _Tensor) -> _Tensor:
        """See `pypto.scatter_update`."""
        return _call("scatter_update", self, dim, index, src)

    def pad(
        self: _Tensor, pad: Sequence[int], mode: str = "constant", value: Number = 0
    ) -> _Tensor:
        """See `pypto.pad`."""
        return _call("pad", self, pad, mode, value)

    def fillpad(self: _Tensor, mode: str = "constant", value: Number = 0) -> _Tensor:
        """See `pypto.fillpad`."""
        return _call("fillpad", self, mode, value)

    def var(
        self: _Tensor,
        dim: int | Sequence[int] | None = None,
        correction: float = 1,
        keepdim: bool = False,
    ) -> _Tensor:
        """See `pypto.var`."""
        return _call("var", self, dim, correction, keepdim)

    def fill_(self, value: Number) -> None:
        """Take over one number everywhere; see `pypto.full`."""
        self.move(_FUNCTIONS["full"](self.shape, value, self.dtype))
