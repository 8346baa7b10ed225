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

_BOUND: Final[dict[str, Callable[..., Any]]] = {}
Number = int | float
_Tensor = TypeVar("_Tensor", bound="Operators")


def bind(operations: Mapping[str, Callable[..., Any]]) -> None:
    """Have operators and methods call these functions, by name."""
    _BOUND.update(operations)


def _call(name: str, *operands: object) -> Any:
    return _BOUND[name](*operands)


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
        result: _Tensor = _call("add", self, other)
        return result

    def __sub__(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        result: _Tensor = _call("sub", self, other)
        return result

    def __mul__(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        result: _Tensor = _call("mul", self, other)
        return result

    def __truediv__(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        result: _Tensor = _call("div", self, other)
        return result

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
        result: _Tensor = _call("neg", self)
        return result

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
        result: _Tensor = _call("lt", self, other)
        return result

    def __le__(self: _Tensor, other: _Tensor | float) -> _Tensor:
        result: _Tensor = _call("le", self, other)
        return result

    def __gt__(self: _Tensor, other: _Tensor | float) -> _Tensor:
        result: _Tensor = _call("gt", self, other)
        return result

    def __ge__(self: _Tensor, other: _Tensor | float) -> _Tensor:
        result: _Tensor = _call("ge", self, other)
        return result

    def add(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        """See `pypto.add`."""
        result: _Tensor = _call("add", self, other)
        return result

    def sub(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        """See `pypto.sub`."""
        result: _Tensor = _call("sub", self, other)
        return result

    def mul(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        """See `pypto.mul`."""
        result: _Tensor = _call("mul", self, other)
        return result

    def div(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        """See `pypto.div`."""
        result: _Tensor = _call("div", self, other)
        return result

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
        result: _Tensor = _BOUND["matmul"](
            self,
            mat2,
            out_dtype,
            a_trans=a_trans,
            b_trans=b_trans,
            c_matrix_nz=c_matrix_nz,
            extend_params=extend_params,
        )
        return result

    def maximum(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        """See `pypto.maximum`."""
        result: _Tensor = _call("maximum", self, other)
        return result

    def exp(self: _Tensor) -> _Tensor:
        """See `pypto.exp`."""
        result: _Tensor = _call("exp", self)
        return result

    def exp2(self: _Tensor) -> _Tensor:
        """See `pypto.exp2`."""
        result: _Tensor = _call("exp2", self)
        return result

    def log(self: _Tensor) -> _Tensor:
        """See `pypto.log`."""
        result: _Tensor = _call("log", self)
        return result

    def logical_not(self: _Tensor) -> _Tensor:
        """See `pypto.logical_not`."""
        result: _Tensor = _call("logical_not", self)
        return result

    def sqrt(self: _Tensor) -> _Tensor:
        """See `pypto.sqrt`."""
        result: _Tensor = _call("sqrt", self)
        return result

    def rsqrt(self: _Tensor) -> _Tensor:
        """See `pypto.rsqrt`."""
        result: _Tensor = _call("rsqrt", self)
        return result

    def reciprocal(self: _Tensor) -> _Tensor:
        """See `pypto.reciprocal`."""
        result: _Tensor = _call("reciprocal", self)
        return result

    def ceil(self: _Tensor) -> _Tensor:
        """See `pypto.ceil`."""
        result: _Tensor = _call("ceil", self)
        return result

    def floor(self: _Tensor) -> _Tensor:
        """See `pypto.floor`."""
        result: _Tensor = _call("floor", self)
        return result

    def trunc(self: _Tensor) -> _Tensor:
        """See `pypto.trunc`."""
        result: _Tensor = _call("trunc", self)
        return result

    def relu(self: _Tensor) -> _Tensor:
        """See `pypto.relu`."""
        result: _Tensor = _call("relu", self)
        return result

    def sigmoid(self: _Tensor) -> _Tensor:
        """See `pypto.sigmoid`."""
        result: _Tensor = _call("sigmoid", self)
        return result

    def clone(self: _Tensor) -> _Tensor:
        """See `pypto.clone`."""
        result: _Tensor = _call("clone", self)
        return result

    def amax(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.amax`."""
        result: _Tensor = _call("amax", self, dim, keepdim)
        return result

    def amin(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.amin`."""
        result: _Tensor = _call("amin", self, dim, keepdim)
        return result

    def sum(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.sum`."""
        result: _Tensor = _call("sum", self, dim, keepdim)
        return result

    def round(self: _Tensor, decimals: int = 0) -> _Tensor:
        """See `pypto.round`."""
        result: _Tensor = _call("round", self, decimals)
        return result

    def softmax(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.softmax`."""
        result: _Tensor = _call("softmax", self, dim)
        return result

    def unsqueeze(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.unsqueeze`."""
        result: _Tensor = _call("unsqueeze", self, dim)
        return result

    def transpose(self: _Tensor, dim0: int, dim1: int) -> _Tensor:
        """See `pypto.transpose`."""
        result: _Tensor = _call("transpose", self, dim0, dim1)
        return result

    def reshape(
        self: _Tensor,
        shape: Sequence[int],
        *,
        valid_shape: Sequence[int] | None = None,
        inplace: bool = False,
    ) -> _Tensor:
        """See `pypto.reshape`; in place, a valid shape is ignored, as upstream's method does."""
        valid_shape = None if inplace else valid_shape
        result: _Tensor = _BOUND["reshape"](self, shape, valid_shape=valid_shape, inplace=inplace)
        return result

    def expand_clone(
        self: _Tensor, shape: Sequence[int], *, valid_shape: Sequence[int] | None = None
    ) -> _Tensor:
        """See `pypto.expand_clone`."""
        result: _Tensor = _BOUND["expand_clone"](self, shape, valid_shape=valid_shape)
        return result

    def topk(
        self: _Tensor, k: int, dim: int | None = None, largest: bool = True
    ) -> tuple[_Tensor, _Tensor]:
        """See `pypto.topk`."""
        result: tuple[_Tensor, _Tensor] = _call("topk", self, k, dim, largest)
        return result

    def argmax(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.argmax`."""
        result: _Tensor = _call("argmax", self, dim, keepdim)
        return result

    def argmin(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.argmin`."""
        result: _Tensor = _call("argmin", self, dim, keepdim)
        return result

    def cumsum(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.cumsum`."""
        result: _Tensor = _call("cumsum", self, dim)
        return result

    def gather(self: _Tensor, dim: int, index: _Tensor) -> _Tensor:
        """See `pypto.gather`."""
        result: _Tensor = _call("gather", self, dim, index)
        return result

    def scatter(
        self: _Tensor,
        dim: int,
        index: _Tensor,
        src: _Tensor | Number,
        *,
        reduce: str | None = None,
    ) -> _Tensor:
        """See `pypto.scatter`."""
        result: _Tensor = _BOUND["scatter"](self, dim, index, src, reduce=reduce)
        return result

    def scatter_(
        self: _Tensor,
        dim: int,
        index: _Tensor,
        src: _Tensor | Number,
        *,
        reduce: str | None = None,
    ) -> _Tensor:
        """See `pypto.scatter_`."""
        result: _Tensor = _BOUND["scatter_"](self, dim, index, src, reduce=reduce)
        return result

    def scatter_update(self: _Tensor, dim: int, index: _Tensor, src: _Tensor) -> _Tensor:
        """See `pypto.scatter_update`."""
        result: _Tensor = _call("scatter_update", self, dim, index, src)
        return result

    def pad(
        self: _Tensor, pad: Sequence[int], mode: str = "constant", value: Number = 0
    ) -> _Tensor:
        """See `pypto.pad`."""
        result: _Tensor = _call("pad", self, pad, mode, value)
        return result

    def fillpad(self: _Tensor, mode: str = "constant", value: Number = 0) -> _Tensor:
        """See `pypto.fillpad`."""
        result: _Tensor = _call("fillpad", self, mode, value)
        return result

    def var(
        self: _Tensor,
        dim: int | Sequence[int] | None = None,
        correction: float = 1,
        keepdim: bool = False,
    ) -> _Tensor:
        """See `pypto.var`."""
        result: _Tensor = _call("var", self, dim, correction, keepdim)
        return result

    def fill_(self, value: Number) -> None:
        """Take over one number everywhere; see `pypto.full`."""
        self.move(_call("full", self.shape, value, self.dtype))
