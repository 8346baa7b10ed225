"""Code that runs here and that upstream refuses: a warning, an error under `strict`."""

from __future__ import annotations

from pypto_cast.kernel.causes import warn_caller


class UpstreamRefusalWarning(UserWarning):
    """Code that runs here and that upstream refuses."""


class DynamicOperandWarning(UpstreamRefusalWarning):
    """An operation on a tensor with a DYNAMIC dimension; upstream wants views in a loop."""


class UpstreamRefusalError(ValueError):
    """Code that upstream refuses."""


def tolerate(
    text: str, *, strict: bool, category: type[UpstreamRefusalWarning] = UpstreamRefusalWarning
) -> None:
    """Warn the caller of code that upstream refuses, at a place of a kernel once in a run.

    Args:
        text: what upstream refuses, and what it takes instead.
        strict: raise instead.
        category: of the warning.

    Raises:
        UpstreamRefusalError: under `strict`.
    """
    if strict:
        raise UpstreamRefusalError(text)
    warn_caller(text, category, once=True)
