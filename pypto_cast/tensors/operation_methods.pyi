"""The operations that are methods of a tensor; docs.generators.operation_stubs wrote it of the rows."""

from collections.abc import Sequence
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.tensors.operators import ElementLike
from typing import Any
from typing import TypeVar

_Tensor = TypeVar("_Tensor", bound="OperationMethods")

class OperationMethods:
    def add(self: _Tensor, other: _Tensor | int | float) -> _Tensor:
        """See `pypto.add`."""
    def amax(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.amax`."""
    def amin(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.amin`."""
    def argmax(self: _Tensor, dim: int = -1, keepdim: bool = False) -> _Tensor:
        """See `pypto.argmax`."""
    def argmin(self: _Tensor, dim: int = -1, keepdim: bool = False) -> _Tensor:
        """See `pypto.argmin`."""
    def ceil(self: _Tensor) -> _Tensor:
        """See `pypto.ceil`."""
    def clone(self: _Tensor) -> _Tensor:
        """See `pypto.clone`."""
    def cos(self: _Tensor) -> _Tensor:
        """See `pypto.cos`."""
    def cumsum(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.cumsum`."""
    def div(self: _Tensor, other: _Tensor | int | float) -> _Tensor:
        """See `pypto.div`."""
    def exp(self: _Tensor) -> _Tensor:
        """See `pypto.exp`."""
    def exp2(self: _Tensor) -> _Tensor:
        """See `pypto.exp2`."""
    def expand_clone(self: _Tensor, shape: Sequence[int], *, valid_shape: Sequence[int] | None = None) -> _Tensor:
        """See `pypto.expand_clone`."""
    def fillpad(self: _Tensor, mode: str = 'constant', value: float = 0) -> _Tensor:
        """See `pypto.fillpad`."""
    def floor(self: _Tensor) -> _Tensor:
        """See `pypto.floor`."""
    def gather(self: _Tensor, dim: int, index: _Tensor) -> _Tensor:
        """See `pypto.gather`."""
    def log(self: _Tensor) -> _Tensor:
        """See `pypto.log`."""
    def logical_not(self: _Tensor) -> _Tensor:
        """See `pypto.logical_not`."""
    def matmul(self: _Tensor, mat2: _Tensor, out_dtype: DataType, *, a_trans: bool = False, b_trans: bool = False, c_matrix_nz: bool = False, extend_params: dict[str, Any] | None = None) -> _Tensor:
        """See `pypto.matmul`."""
    def maximum(self: _Tensor | int | float | ElementLike, other: _Tensor | int | float | ElementLike) -> _Tensor:
        """See `pypto.maximum`."""
    def mul(self: _Tensor, other: _Tensor | int | float) -> _Tensor:
        """See `pypto.mul`."""
    def reciprocal(self: _Tensor) -> _Tensor:
        """See `pypto.reciprocal`."""
    def relu(self: _Tensor) -> _Tensor:
        """See `pypto.relu`."""
    def round(self: _Tensor, decimals: int = 0) -> _Tensor:
        """See `pypto.round`."""
    def rsqrt(self: _Tensor) -> _Tensor:
        """See `pypto.rsqrt`."""
    def scatter(self: _Tensor, dim: int, index: _Tensor, src: _Tensor | ElementLike | float, *, reduce: str | None = None) -> _Tensor:
        """See `pypto.scatter`."""
    def scatter_(self: _Tensor, dim: int, index: _Tensor, src: _Tensor | ElementLike | float, *, reduce: str | None = None) -> _Tensor:
        """See `pypto.scatter_`."""
    def scatter_update(self: _Tensor, dim: int, index: _Tensor, src: _Tensor) -> _Tensor:
        """See `pypto.scatter_update`."""
    def sigmoid(self: _Tensor) -> _Tensor:
        """See `pypto.sigmoid`."""
    def sin(self: _Tensor) -> _Tensor:
        """See `pypto.sin`."""
    def softmax(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.softmax`."""
    def sqrt(self: _Tensor) -> _Tensor:
        """See `pypto.sqrt`."""
    def sub(self: _Tensor, other: _Tensor | int | float) -> _Tensor:
        """See `pypto.sub`."""
    def sum(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.sum`."""
    def topk(self: _Tensor, k: int, dim: int | None = None, largest: bool = True) -> tuple[_Tensor, _Tensor]:
        """See `pypto.topk`."""
    def transpose(self: _Tensor, dim0: int, dim1: int) -> _Tensor:
        """See `pypto.transpose`."""
    def trunc(self: _Tensor) -> _Tensor:
        """See `pypto.trunc`."""
    def unsqueeze(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.unsqueeze`."""
    def var(self: _Tensor, dim: int | Sequence[int] | None = None, correction: float = 1, keepdim: bool = False) -> _Tensor:
        """See `pypto.var`."""
