"""Python's operators and upstream's methods of a tensor.

`s - x` is neg(x - s), so that equal operands give -0; `s / x` is reciprocal(x) * s, rounded twice;
`x // y` is floor(x / y); `x % y` is remainder, `x ** y` is pow; `x += y` binds the name to x + y,
and so on, all as upstream's.
"""

from __future__ import annotations

import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeVar, cast

from pypto_cast.dtypes.data_types import DataType, PrecisionType
from pypto_cast.missing_names import unknown_name
from pypto_cast.options import context as options
from pypto_cast.options.releases import RELEASES
from pypto_cast.recording import recording
from pypto_cast.tensors.operation_methods import OperationMethods
from pypto_cast.tensors.symbolic import SymbolicScalar

REGISTERED: Final[dict[str, Callable[..., Any]]] = {}
_MISCALLED: Final = (
    "upstream's method {} hands one tensor too many to its function, which then raises TypeError; "
    "call pypto.{}"
)
Number = int | float
Precision = PrecisionType | None
"""The argument `precision_type`; None stands for the operation's own."""
_Tensor = TypeVar("_Tensor", bound="Operators")
_Method = TypeVar("_Method", bound=Callable[..., Any])


class ElementLike(Protocol):
    """A number with a dtype, as upstream's `Element`."""

    @property
    def dtype(self) -> DataType: ...

    @property
    def value(self) -> int | float: ...


def register_methods(
    operations: Mapping[str, Callable[..., Any]], methods: Iterable[str], without: Iterable[str]
) -> None:
    """Have operators call these functions, by name, and tensors have some as methods.

    Args:
        operations: the functions.
        methods: the names of those that are methods.
        without: arguments that methods do not take.
    """
    REGISTERED.update(operations)
    for name in methods:
        method = _method(operations[name], without)
        is_lacked = any(name in release.lacks_methods for release in RELEASES.values())
        setattr(OperationMethods, name, of_some_releases(method) if is_lacked else method)


def of_some_releases(method: _Method) -> _Method:
    """A method that the releases which lack it refuse as upstream's tensor does."""
    name = method.__name__

    @functools.wraps(method)
    def checked(x: Operators, *arguments: Any, **named: Any) -> Any:
        release = options.current().followed_release
        recording.record_release_dependence(name, x.dtype)
        if name in release.lacks_methods:
            raise AttributeError(
                f"a Tensor of {release} has no method {name}; options(release=) chooses another",
                name=name,
                obj=x,
            )
        return method(x, *arguments, **named)

    return cast(_Method, checked)


def _method(function: Callable[..., Any], without: Iterable[str]) -> Callable[..., Any]:
    """A function as a method, without its last arguments of these names."""
    plain = inspect.unwrap(function)
    if not set(without).intersection(plain.__code__.co_varnames):
        return function  # most are; a signature takes longer to read
    taken = inspect.signature(plain)
    left = [each for each in taken.parameters.values() if each.name not in without]

    def method(*arguments: Any, **named: Any) -> Any:
        if len(arguments) > len(left) or not named.keys().isdisjoint(without):
            found = ", ".join(each.name for each in left[1:]) or "no argument"
            raise TypeError(f"{function.__name__} takes as a method of a tensor: {found}")
        return function(*arguments, **named)

    functools.update_wrapper(method, function)
    vars(method)["__signature__"] = taken.replace(parameters=left)
    return method


def _call(name: str, first: _Tensor, *operands: object, **named: object) -> _Tensor:
    result: _Tensor = REGISTERED[name](first, *operands, **named)
    return result


class Operators(OperationMethods):
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
            kind = type(self)
            raise AttributeError(unknown_name(name, f"a {kind.__name__}", dir(kind)))

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

    def __mod__(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        return _call("remainder", self, other)

    def __pow__(self: _Tensor, other: _Tensor | Number) -> _Tensor:
        return _call("pow", self, other)

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

    def pad(
        self: _Tensor, pad: Sequence[int], mode: str = "constant", value: Number = 0
    ) -> _Tensor:
        """See `pypto.pad`."""
        return _call("pad", self, pad, mode, value)

    def triu_(self: _Tensor, diagonal: int = 0) -> _Tensor:
        """Take over the upper triangle of oneself; see `pypto.triu`."""
        self.move(_call("triu", self, diagonal))
        return self

    def tril_(self: _Tensor, diagonal: int = 0) -> _Tensor:
        """Take over the lower triangle of oneself; see `pypto.tril`."""
        self.move(_call("tril", self, diagonal))
        return self

    def fill_(self: _Tensor, value: Number) -> _Tensor:
        """Take over one number everywhere, and return the tensor; see `pypto.full`."""
        self.move(REGISTERED["full"](self.shape, value, self.dtype))
        return self

    def greater(self: _Tensor, other: _Tensor | float) -> _Tensor:
        """See `pypto.gt`; upstream's other name of it."""
        return self > other

    def where(self, *_: object, **__: object) -> NoReturn:
        """Raises TypeError: upstream's method cannot be called."""
        raise TypeError(_MISCALLED.format("where", "where(condition, input, other)"))

    def lrelu(self, *_: object, **__: object) -> NoReturn:
        """Raises TypeError: upstream's method cannot be called."""
        raise TypeError(_MISCALLED.format("lrelu", "lrelu(x, negative_slope)"))
