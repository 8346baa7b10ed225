"""The smallest part of a kernel's inputs on which a result still cannot come from a device.

Axes of inputs that are as long as an axis of the output at the same place are cut with it, while
the same elements of the result stay impossible and no others become so. Where the kernel's shapes
are fixed, the inputs keep their shape, and 0 stands for everything outside the part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.kernel.certainty import Certainty
from pypto_cast.recording.buffers import UnsetArray
from pypto_cast.recording.suppositions import supposing
from pypto_cast.report.text_format import plural
from simulator.numbers import float_environment
from tiling.grid import Shape

_Array = npt.NDArray[Any]
Box = tuple[tuple[int, int], ...]
Run = Callable[[Mapping[str, _Array]], Certainty]
_RESULT: Final = "result_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """Inputs that still show an impossible element.

    Attributes:
        output: the name of the output.
        box: begin and end of each axis of the output.
        inputs: by the names of parameters, cut or with zeros outside the box.
        result: the elements of the result in the box.
        is_cut: the inputs have only the elements of the box.
        impossible: elements in it that no device gives.
    """

    output: str
    box: Box
    inputs: Mapping[str, _Array]
    result: _Array
    is_cut: bool
    impossible: int

    def __str__(self) -> str:
        part = ", ".join(f"{low}:{high}" for low, high in self.box)
        how = "inputs cut to it" if self.is_cut else "inputs 0 outside it"
        return f"{self.output}[{part}] still differs in {plural(self.impossible, 'element')}, {how}"

    def arrays(self) -> dict[str, Any]:
        """The arrays of a file: given inputs by name, and the result."""
        given = {name: x for name, x in self.inputs.items() if not isinstance(x, UnsetArray)}
        held = {**given, self._result_name: self.result}
        return {
            name: x if x.dtype.isbuiltin == 1 else x.view(f"u{x.itemsize}")
            for name, x in held.items()
        }

    @property
    def _result_name(self) -> str:
        return f"{_RESULT}{self.output}"

    def script(self, kernel: str, file: Path, settings: Mapping[str, Mapping[str, object]]) -> str:
        """A program that judges the part again.

        Args:
            kernel: its file and its name, as FILE::KERNEL; the file by its whole path.
            file: where `arrays` are, beside the program, with the arguments that are no tensors.
            settings: the arguments of the functions that the kernel runs under, by their names.
        """
        part = ", ".join(f"{low}:{high}" if not self.is_cut else ":" for low, high in self.box)
        under = ", ".join(
            f"{function}({', '.join(f'{name}={value!r}' for name, value in given.items())})"
            for function, given in settings.items()
        )
        return _SCRIPT.format(
            kernel=kernel,
            under=under,
            file=file.name,
            output=self.output,
            part=part,
            result=self._result_name,
        )


_SCRIPT: Final = '''"""Shows elements of {output} that no device gives on these inputs."""

from pathlib import Path

import numpy as np

from pypto_cast.cli.commands.certainty_command import kernel_named, saved_arguments
from pypto_cast.options.context import options
from pypto_cast.upstream.import_alias import as_pypto
from pypto_cast.upstream.npu_requests import npu_requests

file = Path(__file__).with_name({file!r})
with {under}:
    _, kernel = kernel_named({kernel!r})
    arguments, others = saved_arguments(kernel, file, besides=[{result!r}])
    output = kernel.certainty(*arguments, **others)[{output!r}]

part = np.s_[{part}]
with np.load(file) as held:
    result = held[{result!r}].view(output.values.dtype)
whole = output.values.copy()
whole[part] = result
outside = np.argwhere(~output.contains(whole))
for index in map(tuple, outside.tolist()):
    print(list(index), "is", whole[index], "and may be", output.possible(index))
raise SystemExit(1 if len(outside) else 0)
'''


def reproduced(
    run: Run, inputs: Mapping[str, _Array], bounds: Certainty, results: Mapping[str, _Array]
) -> Reproduction:
    """Cut the inputs as far as an impossible element stays so.

    Args:
        run: the bounds of the kernel on other inputs; it raises for shapes that it does not take.
        inputs: of the kernel, outputs too.
        bounds: on all of them.
        results: of the device.

    Raises:
        ValueError: every element may be.
    """
    outside = {o.name: ~o.contains(results[o.name]) for o in bounds.outputs}
    name = next((name for name, where in outside.items() if where.any()), None)
    if name is None:
        raise ValueError("a device may give every element: there is nothing to reproduce")
    where, result = outside[name], results[name]
    first = tuple(int(i) for i in np.argwhere(where)[0])
    whole = tuple((0, n) for n in where.shape)
    for is_cut in (True, False):

        def differs(box: Box, is_cut: bool = is_cut) -> bool:
            return _still_differs(run, inputs, name, result, where, box, is_cut=is_cut)

        found = _smallest(whole, first, differs)
        if found != whole or not is_cut:
            break
    index = _index(found)
    return Reproduction(
        output=name,
        box=found,
        inputs=_part(inputs, where.shape, found, is_cut=is_cut),
        result=np.ascontiguousarray(result[index]),
        is_cut=is_cut,
        impossible=int(np.count_nonzero(where[index])),
    )


def _smallest(box: Box, first: Shape, differs: Callable[[Box], bool]) -> Box:
    """Halve each axis around an element as long as the halves differ."""
    for axis in range(len(box)):
        low, high = box[axis]
        while high - low > 1:
            middle = (low + high) // 2
            half = (low, middle) if first[axis] < middle else (middle, high)
            smaller = (*box[:axis], half, *box[axis + 1 :])
            if not differs(smaller):
                break
            box, (low, high) = smaller, half
    return box


@float_environment.quiet()
def _still_differs(
    run: Run,
    inputs: Mapping[str, _Array],
    name: str,
    result: _Array,
    outside: npt.NDArray[np.bool_],
    box: Box,
    *,
    is_cut: bool,
) -> bool:
    try:
        with supposing():
            bounds = run(_part(inputs, outside.shape, box, is_cut=is_cut))
    except MemoryError:
        raise
    except Exception:  # the kernel's own too, as of an assertion about its shapes
        return False
    if name not in bounds:
        return False  # a loop over so few rows runs no round
    index = _index(box)
    output = bounds[name]
    whole = output.values.copy()
    at = ... if is_cut else index
    whole[at] = result[index]
    found = ~output.contains(whole)
    return bool(np.array_equal(found[at], outside[index]))


def _part(
    inputs: Mapping[str, _Array], shape: Shape, box: Box, *, is_cut: bool
) -> dict[str, _Array]:
    """The inputs, cut along the axes that are as long as the output's there."""
    found = {}
    for name, array in inputs.items():
        if array.ndim != len(shape):
            found[name] = array
            continue
        index = tuple(
            slice(low, high) if n == m else slice(None)
            for n, m, (low, high) in zip(array.shape, shape, box, strict=True)
        )
        if is_cut:
            found[name] = array[index].copy()  # of its class, as an output that is left out
        else:
            found[name] = np.zeros_like(array)
            found[name][index] = array[index]
    return found


def _index(box: Box) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in box)
