"""The shape of a tensor that has dynamic dimensions."""

from __future__ import annotations

from typing import Any

from pypto_cast.options.context import current
from pypto_cast.tensors.symbolic import RuntimeScalar, SymbolicScalar
from pypto_cast.unsupported import tolerate


class DynamicShape(list[SymbolicScalar]):
    """Dimensions of which upstream learns some when a kernel runs.

    Comparing them with a list is refused there ("Not concrete value"); it warns here.
    """

    __slots__ = ()
    __hash__ = None

    def __getitem__(self, key: Any) -> Any:
        found = list.__getitem__(self, key)
        if isinstance(key, slice) and any(isinstance(e, RuntimeScalar) or e < 0 for e in found):
            return DynamicShape(found)
        return found

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
