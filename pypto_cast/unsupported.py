"""Code that upstream refuses and this package runs, and code that this package refuses.

Upstream's refusals are warnings, errors under `strict`; operations of tensors that upstream has and
this package does not raise with the place where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from pypto_cast.call_sites import warn_caller
from pypto_cast.error import FeError, PyptoError, error_of

_T = TypeVar("_T")

UPSTREAM: Final = "upstream pypto (https://gitcode.com/cann/pypto)"

_BINARY: Final = ("and", "or", "xor", "lshift", "rshift")
_ARITHMETIC: Final = {
    **{f"__{name}__": name for name in ("abs", "invert")},
    **{f"__r{name}__": name for name in ("floordiv", "mod", "pow")},
    **{f"__{prefix}{name}__": name for name in _BINARY for prefix in ("", "r", "i")},
}

_REFUSALS: Final = {
    "__bool__": "a tensor has no truth value; upstream's kernels know none either",
    "__iter__": "a tensor is not iterable; take parts of it with x[a:b] or pypto.view",
    **{
        method: f"no operator {name} of tensors here; pypto_cast has the operations around a cast, "
        f"others are in {UPSTREAM}"
        for method, name in _ARITHMETIC.items()
    },
}
"""The text of the error that each operator of a tensor raises."""


def refusing(decorated: type[_T]) -> type[_T]:
    """Give a class operators that raise TypeError, where the package has no operation."""
    for method, text in _REFUSALS.items():
        setattr(decorated, method, _refusal(text))
    return decorated


def _refusal(text: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *_: object) -> NoReturn:
        raise error_of(FeError, TypeError, text)

    return refuse


class UpstreamRefusalWarning(UserWarning):
    """Code that runs here and that upstream refuses, or that writes elsewhere there."""


class DynamicOperandWarning(UpstreamRefusalWarning):
    """An operation on a tensor with a DYNAMIC dimension; upstream wants views in a loop."""


class UpstreamRefusalError(ValueError):
    """Code that upstream refuses."""


def tolerate(
    text: str,
    *,
    strict: bool,
    category: type[UpstreamRefusalWarning] = UpstreamRefusalWarning,
    family: type[PyptoError] = FeError,
) -> None:
    """Warn the caller of code that upstream refuses, at a place of a kernel once in a run.

    Args:
        text: what upstream refuses, and what it takes instead.
        strict: raise instead.
        category: of the warning.
        family: the class of upstream's error, of which that under `strict` is too.

    Raises:
        UpstreamRefusalError: under `strict`.
    """
    if strict:
        raise error_of(family, UpstreamRefusalError, text)
    warn_caller(text, category, once=True)
