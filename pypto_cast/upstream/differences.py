"""Programs that run here and that upstream refuses: a warning, or an error where all is strict."""

from __future__ import annotations

from pypto_cast.kernel.causes import warn_caller
from pypto_cast.options import current


class UpstreamDifferenceError(ValueError):
    """Upstream refuses what the program does, under `options(strict=True)`."""


class UpstreamDifferenceWarning(UserWarning):
    """Upstream refuses what the program does, and it runs here."""


def differs(text: str) -> None:
    """Say that upstream refuses what is done here.

    Args:
        text: what it refuses, and what would do.

    Raises:
        UpstreamDifferenceError: under `options(strict=True)`.

    Warns:
        UpstreamDifferenceWarning: otherwise.
    """
    if current().strict:
        raise UpstreamDifferenceError(text)
    warn_caller(text, UpstreamDifferenceWarning)
