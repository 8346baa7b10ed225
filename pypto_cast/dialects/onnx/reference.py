"""Cast and CastLike for onnx's ReferenceEvaluator, so that whole models get exact casts.

    from onnx.reference import ReferenceEvaluator
    from pypto_cast.dialects.onnx.reference import Cast, CastLike

    ReferenceEvaluator(model, new_ops=[Cast, CastLike]).run(None, {"x": x})

The evaluator hands `new_ops` on to the bodies of If, Loop and Scan, but not to the functions that a
model defines; `Evaluator` has them there too. Needs the onnx package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from pypto_cast.dialects.onnx.cast import cast, cast_like

Array = npt.NDArray[Any]


class _Operator(OpRun):
    op_domain = ""

    @property
    def _opset(self) -> int:
        return int(self.run_params["opsets"][self.op_domain])


class Cast(_Operator):
    """Cast as `pypto_cast.dialects.onnx.cast` does it, under the opset of the model.

    Raises:
        TypeError: what that function refuses so; the evaluator puts its own text before it.
        ValueError: a text that is no number.
    """

    def _run(self, x: Array, to: int, saturate: int = 1, round_mode: str = "up") -> tuple[Array]:
        result = cast(x, to, saturate=bool(saturate), round_mode=round_mode, opset=self._opset)
        return (result,)


class CastLike(_Operator):
    """CastLike, likewise."""

    def _run(
        self, x: Array, target_type: Array, saturate: int = 1, round_mode: str = "up"
    ) -> tuple[Array]:
        result = cast_like(
            x, target_type, saturate=bool(saturate), round_mode=round_mode, opset=self._opset
        )
        return (result,)


class Evaluator(ReferenceEvaluator):
    """onnx's ReferenceEvaluator with these operators everywhere in a model.

    Args:
        proto: a model, graph, function or node, or the path of a model.
        new_ops: further operators; one named Cast or CastLike comes before those here.
        options: as ReferenceEvaluator takes them.
    """

    def __init__(
        self, proto: Any, *, new_ops: Sequence[type[OpRun]] | None = None, **options: Any
    ) -> None:
        super().__init__(proto, new_ops=[*(new_ops or ()), Cast, CastLike], **options)
