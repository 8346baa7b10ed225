"""Refuses the operations on tensors that upstream has and this package does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

_T = TypeVar("_T")

UPSTREAM: Final = "upstream pypto (https://gitcode.com/cann/pypto)"

# fmt: off
_BINARY: Final = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
    "and", "or", "xor", "lshift", "rshift",
)
# fmt: on
_ARITHMETIC: Final = {
    **{f"__{name}__": name for name in ("neg", "pos", "abs", "invert")},
    **{f"__{prefix}{name}__": name for name in _BINARY for prefix in ("", "r", "i")},
    **{f"__{name}__": name for name in ("lt", "le", "gt", "ge")},
}

_REFUSALS: Final = {
    "__bool__": "a tensor has no truth value; upstream's kernels know none either",
    "__iter__": "a tensor is not iterable; take parts of it with x[a:b] or pypto.view",
    **{
        method: f"no {name} of tensors here: pypto_cast covers cast, and a number computed by "
        f"Python would not be in the device program; arithmetic is in {UPSTREAM}"
        for method, name in _ARITHMETIC.items()
    },
}
"""The text of the error that each operator of a tensor raises."""


def unknown_name(name: str, owner: str = "pypto_cast") -> str:
    """The text for a name that the package, or something of it, does not have."""
    return (
        f"{owner} has no {name!r}: pypto_cast covers cast and what a kernel needs around it (jit, "
        f"loop, view, assemble, slices); other operations are in {UPSTREAM}"
    )


def refusing(decorated: type[_T]) -> type[_T]:
    """Give a class operators that raise TypeError: the package covers cast."""
    for method, text in _REFUSALS.items():
        setattr(decorated, method, _refusal(text))
    return decorated


def _refusal(text: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *_: object) -> NoReturn:
        raise TypeError(text)

    return refuse
