"""A mypy plugin that reads `pypto.Tensor[[shape], dtype]` in annotations as `pypto.Tensor`.

    [tool.mypy]
    plugins = ["pypto_cast.mypy_plugin"]

A list in brackets is no type to mypy; upstream's kernels are written so all the same. A short file
because users' settings of mypy name it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy.plugin import AnalyzeTypeContext, Plugin
from mypy.types import Type

_TENSOR: Final = frozenset({"pypto_cast.Tensor", "pypto_cast.tensors.tensor.Tensor"})


class TensorPlugin(Plugin):
    """Takes the brackets off tensor annotations."""

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        """The hook for `Tensor`, and no other type."""
        return _plain_tensor if fullname in _TENSOR else None


def _plain_tensor(context: AnalyzeTypeContext) -> Type:
    return context.api.named_type("pypto_cast.tensors.tensor.Tensor", [])


def plugin(version: str) -> type[Plugin]:
    """The entry point that mypy calls."""
    return TensorPlugin
