"""An ONNX backend of Cast and CastLike: models in, arrays out. Needs the onnx package.

    from pypto_cast.dialects.onnx import backend

    backend.prepare(model).run([x])

The module has the functions that onnx's test runner looks for; `Backend` is their class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.backend.base import Backend as OnnxBackend
from onnx.backend.base import BackendRep

from pypto_cast.dialects.onnx.cast import OPSET, cast, cast_like
from pypto_cast.dialects.onnx.types import tensor_type, type_of_dtype

Array = npt.NDArray[Any]

_DOMAINS: Final = ("", "ai.onnx")
_OPERATORS: Final = {"Cast": 1, "CastLike": 2}
"""Each operator with its number of inputs."""


class Model(BackendRep):
    """A checked model, ready to run any number of times."""

    def __init__(self, model: ModelProto) -> None:
        graph = model.graph
        self._nodes = list(graph.node)
        self._opset = next(int(x.version) for x in model.opset_import if x.domain in _DOMAINS)
        self._constants: dict[str, Array] = {
            tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer
        }
        self._inputs = {
            x.name: x.type.tensor_type.elem_type
            for x in graph.input
            if x.name not in self._constants
        }
        self._outputs = [y.name for y in graph.output]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model.

        Args:
            inputs: one array per input that is no initializer, in the order of the graph, or a
                mapping by name.
            kwargs: none are known.

        Returns:
            One array per output.

        Raises:
            TypeError: keyword arguments, or an array of another element type than the graph says.
            ValueError: another number of inputs, or other names, than the graph has.
        """
        if kwargs:
            raise TypeError(f"run takes inputs and no options, not {sorted(kwargs)}")
        named = self._named(inputs)
        if set(named) != set(self._inputs):
            raise ValueError(f"the graph's inputs are {list(self._inputs)}, not {list(named)}")
        for name, declared in self._inputs.items():
            _check_type(name, np.asarray(named[name]), declared)
        tensors: dict[str, Array] = self._constants | named
        for node in self._nodes:
            operands = [tensors[name] for name in node.input]
            tensors[node.output[0]] = _run(node, operands, self._opset)
        return tuple(tensors[name] for name in self._outputs)

    def _named(self, inputs: Any) -> dict[str, Array]:
        if isinstance(inputs, Mapping):
            return dict(inputs)
        if len(inputs) != len(self._inputs):
            raise ValueError(
                f"the graph has {len(self._inputs)} inputs {list(self._inputs)}, not {len(inputs)}"
            )
        return dict(zip(self._inputs, inputs, strict=True))


class Backend(OnnxBackend):
    """Runs models whose nodes are Cast and CastLike, on the CPU."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """True if every node is a Cast or a CastLike, and the device is the CPU."""
        return cls.supports_device(device) and not _foreign(model)

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Model:
        """Check a model and make it ready.

        Raises:
            NotImplementedError: a node that is neither Cast nor CastLike.
            ValueError: a device other than the CPU.
            onnx.checker.ValidationError: the model breaks a rule of ONNX.
        """
        _check_device(device)
        if foreign := _foreign(model):
            raise NotImplementedError(
                f"this backend runs Cast and CastLike; the model has {', '.join(foreign)}"
            )
        super().prepare(model, device, **kwargs)
        return Model(model)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node.

        Args:
            node: a Cast or a CastLike.
            inputs: its arrays.
            device: "CPU".
            outputs_info: not needed: type and shape follow from the inputs.
            kwargs: `opset_version`, 25 if not given.

        Raises:
            NotImplementedError: another operator.
            ValueError: a device other than the CPU, or another number of inputs than it takes.
        """
        _check_device(device)
        if not _is_ours(node):
            raise NotImplementedError(f"this backend runs Cast and CastLike, not {node.op_type}")
        if len(inputs) != _OPERATORS[node.op_type]:
            raise ValueError(
                f"{node.op_type} takes {_OPERATORS[node.op_type]} inputs, not {len(inputs)}"
            )
        opset = kwargs.setdefault("opset_version", OPSET)
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        return (_run(node, list(inputs), opset),)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True if `device` is the CPU."""
        return device.split(":")[0] == "CPU"


def _check_type(name: str, given: Array, declared: int) -> None:
    wanted, found = tensor_type(declared), type_of_dtype(given.dtype)
    if found is not wanted:
        raise TypeError(
            f"input {name!r} is {found.name} ({given.dtype}), but {wanted.name} in the graph"
        )


def _check_device(device: str) -> None:
    if not Backend.supports_device(device):
        raise ValueError(f"device must be 'CPU', not {device!r}")


def _is_ours(node: NodeProto) -> bool:
    return node.domain in _DOMAINS and node.op_type in _OPERATORS


def _foreign(model: ModelProto) -> list[str]:
    return sorted({node.op_type for node in model.graph.node if not _is_ours(node)})


def _run(node: NodeProto, operands: list[Array], opset: int) -> Array:
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    saturate = bool(given.get("saturate", 1))
    round_mode = given.get("round_mode", b"up").decode()
    if node.op_type == "CastLike":
        x, target_type = operands
        return cast_like(x, target_type, saturate=saturate, round_mode=round_mode, opset=opset)
    (x,) = operands
    return cast(x, given["to"], saturate=saturate, round_mode=round_mode, opset=opset)


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device

__all__ = [
    "Backend",
    "Model",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]
