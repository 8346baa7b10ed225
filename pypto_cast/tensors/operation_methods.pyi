"""The operations that are methods of a tensor; docs.generators.operation_stubs wrote it of the rows."""

from collections.abc import Sequence
from pypto_cast.dtypes.data_types import DataType
from pypto_cast.dtypes.data_types import DequantScaleRoundingMode
from pypto_cast.dtypes.data_types import PrecisionType
from pypto_cast.tensors.operators import ElementLike
from typing import Any
from typing import TypeVar

_Tensor = TypeVar("_Tensor", bound="OperationMethods")

class OperationMethods:
    def acosh(self: _Tensor) -> _Tensor:
        """See `pypto.acosh`."""
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
    def asinh(self: _Tensor) -> _Tensor:
        """See `pypto.asinh`."""
    def axpy_(self: _Tensor, x: _Tensor, alpha: int | float = 1.0) -> _Tensor:
        """See `pypto.axpy_`."""
    def ceil(self: _Tensor) -> _Tensor:
        """See `pypto.ceil`."""
    def clone(self: _Tensor) -> _Tensor:
        """See `pypto.clone`."""
    def cos(self: _Tensor) -> _Tensor:
        """See `pypto.cos`."""
    def cosh(self: _Tensor) -> _Tensor:
        """See `pypto.cosh`."""
    def cumprod(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.cumprod`."""
    def cumsum(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.cumsum`."""
    def div(self: _Tensor, other: _Tensor | int | float, precision_type: PrecisionType | None = None) -> _Tensor:
        """See `pypto.div`."""
    def erfc(self: _Tensor) -> _Tensor:
        """See `pypto.erfc`."""
    def exp(self: _Tensor, precision_type: PrecisionType | None = None) -> _Tensor:
        """See `pypto.exp`."""
    def exp2(self: _Tensor) -> _Tensor:
        """See `pypto.exp2`."""
    def expand_clone(self: _Tensor, shape: Sequence[int], *, valid_shape: Sequence[int] | None = None) -> _Tensor:
        """See `pypto.expand_clone`."""
    def expm1(self: _Tensor) -> _Tensor:
        """See `pypto.expm1`."""
    def fillpad(self: _Tensor, mode: str = 'constant', value: float = 0) -> _Tensor:
        """See `pypto.fillpad`."""
    def floor(self: _Tensor) -> _Tensor:
        """See `pypto.floor`."""
    def fmod(self: _Tensor, other: _Tensor | int | float, precision_type: PrecisionType | None = None) -> _Tensor:
        """See `pypto.fmod`."""
    def gather(self: _Tensor, dim: int, index: _Tensor) -> _Tensor:
        """See `pypto.gather`."""
    def gathermask(self: _Tensor, pattern_mode: int) -> _Tensor:
        """See `pypto.gathermask`."""
    def gcd(self: _Tensor, other: _Tensor | int) -> _Tensor:
        """See `pypto.gcd`."""
    def hypot(self: _Tensor, other: _Tensor) -> _Tensor:
        """See `pypto.hypot`."""
    def index_add(self: _Tensor, dim: int, index: _Tensor, source: _Tensor, *, alpha: int | float = 1) -> _Tensor:
        """See `pypto.index_add`."""
    def index_add_(self: _Tensor, dim: int, index: _Tensor, source: _Tensor, *, alpha: int | float = 1) -> _Tensor:
        """See `pypto.index_add_`."""
    def index_add__ub(self: _Tensor, dim: int, index: _Tensor, source: _Tensor, *, alpha: int | float = 1) -> _Tensor:
        """See `pypto.index_add__ub`."""
    def index_add_ub(self: _Tensor, dim: int, index: _Tensor, source: _Tensor, *, alpha: int | float = 1) -> _Tensor:
        """See `pypto.index_add_ub`."""
    def log(self: _Tensor, precision_type: PrecisionType | None = None) -> _Tensor:
        """See `pypto.log`."""
    def log10(self: _Tensor, precision_type: PrecisionType | None = None) -> _Tensor:
        """See `pypto.log10`."""
    def log1p(self: _Tensor) -> _Tensor:
        """See `pypto.log1p`."""
    def log2(self: _Tensor, precision_type: PrecisionType | None = None) -> _Tensor:
        """See `pypto.log2`."""
    def logical_not(self: _Tensor) -> _Tensor:
        """See `pypto.logical_not`."""
    def matmul(self: _Tensor, mat2: _Tensor, out_dtype: DataType, *, a_trans: bool = False, b_trans: bool = False, c_matrix_nz: bool = False, extend_params: dict[str, Any] | None = None) -> _Tensor:
        """See `pypto.matmul`."""
    def maximum(self: _Tensor | int | float | ElementLike, other: _Tensor | int | float | ElementLike) -> _Tensor:
        """See `pypto.maximum`."""
    def mul(self: _Tensor, other: _Tensor | int | float) -> _Tensor:
        """See `pypto.mul`."""
    def permute(self: _Tensor, perm: Sequence[int]) -> _Tensor:
        """See `pypto.permute`."""
    def prelu(self: _Tensor, weight: _Tensor) -> _Tensor:
        """See `pypto.prelu`."""
    def prod(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.prod`."""
    def quant_mx(self: _Tensor, quant_dtype: DataType = DataType.DT_FP8E4M3, mode: DequantScaleRoundingMode = DequantScaleRoundingMode.ROUND_DOWN, axis: int = -1, performance_mode: bool = True) -> tuple[_Tensor, _Tensor]:
        """See `pypto.quant_mx`."""
    def reciprocal(self: _Tensor, precision_type: PrecisionType | None = None) -> _Tensor:
        """See `pypto.reciprocal`."""
    def relu(self: _Tensor) -> _Tensor:
        """See `pypto.relu`."""
    def remainder(self: _Tensor | int | float, other: _Tensor | int | float, precision_type: PrecisionType | None = None) -> _Tensor:
        """See `pypto.remainder`."""
    def round(self: _Tensor, decimals: int = 0) -> _Tensor:
        """See `pypto.round`."""
    def rsqrt(self: _Tensor, precision_type: PrecisionType | None = None) -> _Tensor:
        """See `pypto.rsqrt`."""
    def scatter(self: _Tensor, dim: int, index: _Tensor, src: _Tensor | ElementLike | float, *, reduce: str | None = None) -> _Tensor:
        """See `pypto.scatter`."""
    def scatter_(self: _Tensor, dim: int, index: _Tensor, src: _Tensor | ElementLike | float, *, reduce: str | None = None) -> _Tensor:
        """See `pypto.scatter_`."""
    def scatter_update(self: _Tensor, dim: int, index: _Tensor, src: _Tensor) -> _Tensor:
        """See `pypto.scatter_update`."""
    def sigmoid(self: _Tensor) -> _Tensor:
        """See `pypto.sigmoid`."""
    def sign(self: _Tensor) -> _Tensor:
        """See `pypto.sign`."""
    def signbit(self: _Tensor) -> _Tensor:
        """See `pypto.signbit`."""
    def sin(self: _Tensor) -> _Tensor:
        """See `pypto.sin`."""
    def sinh(self: _Tensor) -> _Tensor:
        """See `pypto.sinh`."""
    def softmax(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.softmax`."""
    def sqrt(self: _Tensor, precision_type: PrecisionType | None = None) -> _Tensor:
        """See `pypto.sqrt`."""
    def sub(self: _Tensor, other: _Tensor | int | float) -> _Tensor:
        """See `pypto.sub`."""
    def sum(self: _Tensor, dim: int, keepdim: bool = False) -> _Tensor:
        """See `pypto.sum`."""
    def tanh(self: _Tensor) -> _Tensor:
        """See `pypto.tanh`."""
    def topk(self: _Tensor, k: int, dim: int | None = None, largest: bool = True) -> tuple[_Tensor, _Tensor]:
        """See `pypto.topk`."""
    def transpose(self: _Tensor, dim0: int, dim1: int) -> _Tensor:
        """See `pypto.transpose`."""
    def tril(self: _Tensor, diagonal: int = 0) -> _Tensor:
        """See `pypto.tril`."""
    def triu(self: _Tensor, diagonal: int = 0) -> _Tensor:
        """See `pypto.triu`."""
    def trunc(self: _Tensor) -> _Tensor:
        """See `pypto.trunc`."""
    def unsqueeze(self: _Tensor, dim: int) -> _Tensor:
        """See `pypto.unsqueeze`."""
    def var(self: _Tensor, dim: int | Sequence[int] | None = None, correction: float = 1, keepdim: bool = False) -> _Tensor:
        """See `pypto.var`."""
