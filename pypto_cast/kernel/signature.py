"""The parameters of a kernel: tensors first, as annotated, then anything else."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pypto_cast.tensors.arguments import TensorAnnotation
from pypto_cast.tensors.symbolic import Symbol
from pypto_cast.tensors.tensor import Tensor
from pypto_cast.tensors.undecided import KernelNumber
from tiling.grid import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The parameters of a kernel.

    Attributes:
        kernel: its name.
        tensors: annotations of its tensor parameters by name, in order.
        others: the parameters that follow, by name.
    """

    kernel: str
    tensors: Mapping[str, TensorAnnotation]
    others: Mapping[str, inspect.Parameter]

    def split(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Split the arguments of a call into tensors and others.

        Raises:
            TypeError: arguments are missing, too many, unknown, or a tensor is given by name.
        """
        count = len(self.tensors)
        by_name = [name for name in self.tensors if name in named]
        if by_name or len(arguments) < count:
            wanted = ", ".join(self.tensors)
            raise TypeError(
                f"{self.kernel} takes {count} tensors by position ({wanted}), as upstream's "
                f"kernels do; it got {len(arguments)} arguments by position"
                + (f" and {', '.join(by_name)} by name" if by_name else "")
            )
        rest = arguments[count:]
        if len(rest) > len(self.others) or set(named) - set(self.others):
            raise TypeError(
                f"{self.kernel} takes {', '.join(self.others) or 'nothing'} after its tensors; it "
                f"got {len(rest)} more arguments by position and {sorted(named)} by name"
            )
        values = dict(zip(self.others, rest, strict=False))
        if twice := sorted(set(values) & set(named)):
            raise TypeError(f"{self.kernel} got {', '.join(twice)} twice")
        for name, value in (*values.items(), *named.items()):
            if hasattr(value, "__array__") and not isinstance(value, KernelNumber):
                raise TypeError(
                    f"{self.kernel}: {name} is an array ({type(value).__name__}); annotate it as "
                    f"{name}: pypto.Tensor[...]"
                )
        values.update(named)
        for name, parameter in self.others.items():
            if name not in values and parameter.default is inspect.Parameter.empty:
                raise TypeError(f"{self.kernel} misses its argument {name}")
        return list(arguments[:count]), values

    def check_dimensions(self, shapes: Mapping[str, Shape]) -> None:
        """Compare dimensions that have the same name.

        Raises:
            ValueError: two of them differ in length.
        """
        lengths: dict[str, tuple[str, int]] = {}
        for name, annotation in self.tensors.items():
            for entry, length in zip(annotation.shape, shapes[name], strict=False):
                if isinstance(entry, Symbol):
                    before, known = lengths.setdefault(entry.name, (name, length))
                    if known != length:
                        raise ValueError(
                            f"{self.kernel}: dimension {entry.name} is {known} in {before} and "
                            f"{length} in {name}"
                        )


def signature_of(function: Callable[..., None], names: Mapping[str, Any]) -> Signature:
    """Read the annotations of a function.

    Args:
        function: the kernel.
        names: local names where it is defined, for annotations that are strings.

    Raises:
        TypeError: no tensor parameter, one after another kind of parameter, `*args` or `**kwargs`,
            or a string annotation with names that are not there.
    """
    tensors: dict[str, TensorAnnotation] = {}
    others: dict[str, inspect.Parameter] = {}
    kernel = getattr(function, "__name__", "kernel")
    try:
        found = inspect.get_annotations(function, locals=names, eval_str=True)
    except NameError as error:
        raise TypeError(
            f"{kernel}: the annotations cannot be read ({error}); define what they name before the "
            "kernel, or leave `from __future__ import annotations` out, as upstream needs"
        ) from error
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{kernel}: a kernel has no {parameter}; name each parameter")
        annotation = _tensor_annotation(found.get(name))
        if annotation is None:
            others[name] = parameter
        elif others:
            raise TypeError(
                f"{kernel}: tensor {name} comes after {', '.join(others)}; tensors come first"
            )
        else:
            tensors[name] = annotation
    if not tensors:
        raise TypeError(
            f"{kernel} has no tensor parameter: annotate them, as in "
            "x: pypto.Tensor[[pypto.DYNAMIC, 64], pypto.DT_FP32]"
        )
    return Signature(kernel=kernel, tensors=tensors, others=others)


def _tensor_annotation(annotation: object) -> TensorAnnotation | None:
    """`Tensor[...]`, upstream's older `Tensor(...)` or plain `Tensor`; None if it is no tensor."""
    if isinstance(annotation, Tensor):
        return annotation.annotation
    if annotation is Tensor:
        return TensorAnnotation()
    return annotation if isinstance(annotation, TensorAnnotation) else None
