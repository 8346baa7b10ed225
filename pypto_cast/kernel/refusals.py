"""What upstream does with tensors and this package does not: said in words, not in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from pypto_cast.kernel import recording

UPSTREAM: Final = "upstream pypto (https://gitcode.com/cann/pypto)"

_OPERATORS: Final = {
    **{f"__{name}__": name for name in ("neg", "pos", "abs", "invert")},
    **{
        f"__{prefix}{name}__": name
        for name in (
            *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
            *("and", "or", "xor", "lshift", "rshift"),
        )
        for prefix in ("", "r", "i")
    },
    **{f"__{name}__": name for name in ("lt", "le", "gt", "ge")},
}


class CastOnly:
    """A class whose operators and unknown attributes say that the package covers cast."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if recording.current() is not None and other is not None:
            raise TypeError("a kernel does not compare tensors: pypto_cast covers cast")
        return self is other

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("a tensor has no truth value; upstream's kernels know none either")

    def __iter__(self) -> NoReturn:
        raise TypeError("a tensor is not iterable; take parts of it with x[a:b] or pypto.view")

    if not TYPE_CHECKING:  # so that type checkers report them

        def __getattr__(self, name: str) -> object:
            raise AttributeError(_unknown(f"a {type(self).__name__}", name))


def unknown_name(name: str) -> str:
    """What to say of a name that the package does not have."""
    return _unknown("pypto_cast", name)


def _unknown(owner: str, name: str) -> str:
    return (
        f"{owner} has no {name!r}: pypto_cast covers cast and what a kernel needs around it (jit, "
        f"loop, view, assemble, slices); other operations are in {UPSTREAM}"
    )


def _refused(name: str) -> object:
    def refuse(self: object, *_: object) -> NoReturn:
        raise TypeError(
            f"no {name} of tensors here: pypto_cast covers cast, and a number computed by Python "
            f"would not be in the device program; arithmetic is in {UPSTREAM}"
        )

    return refuse


for _method, _name in _OPERATORS.items():
    setattr(CastOnly, _method, _refused(_name))
