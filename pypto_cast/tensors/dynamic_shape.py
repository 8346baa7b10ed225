"""The shape of a tensor that has dynamic dimensions."""

from __future__ import annotations

from pypto_cast.options.context import current
from pypto_cast.tensors.symbolic import SymbolicScalar
from pypto_cast.unsupported import tolerate


class DynamicShape(list[SymbolicScalar]):
    """Dimensions of which upstream learns some when a kernel runs.

    Comparing them with a list is refused there ("Not concrete value"); it warns here.
    """

    __slots__ = ()
    __hash__ = None

    def __eq__(self, other: object) -> bool:
        _warn()
        return list.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        _warn()
        return list.__ne__(self, other)


def _warn() -> None:
    tolerate(
        "upstream compares no shape with a dynamic dimension: compare the other dimensions, as in "
        "x.shape[1] == 64",
        strict=current().strict,
    )
