"""The code around the example of an operation's row: operands of an expression, or a kernel."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pypto_cast import operations
from pypto_cast.operations.operation_rows import ROWS
from tiling.chips import CHIPS, DEFAULT_CHIP

_SET_UP: Final = MappingProxyType(
    {
        "pypto": "import pypto_cast as pypto\n",
        "vec": "pypto.set_vec_tile_shapes(2, 32)",
        "matmul": "pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])",
        "scaled_mm": "pypto.set_cube_tile_shapes([16, 16], [64, 64], [32, 32])",
        "x": "x = pypto.tensor([2, 3], pypto.DT_FP32, data=[[1.5, -2.0, 0.25], [0.0, 8.0, -1.5]])",
        "y": "y = pypto.tensor([2, 3], pypto.DT_FP32, data=[[2.0, 0.5, 0.25], [4.0, 1.0, -3.0]])",
        "i": "i = pypto.tensor([2, 3], pypto.DT_INT16, data=[[1, 2, -4], [5, 6, 7]])",
        "j": "j = pypto.tensor([2, 3], pypto.DT_INT16, data=[[1, 0, 2], [4, 1, 1]])",
        "at": "at = pypto.tensor([2, 2], pypto.DT_INT32, data=[[2, 0], [1, 1]])",
        "row": "row = pypto.tensor([2], pypto.DT_INT32, data=[1, 0])",
        "u": "u = pypto.reshape(pypto.arange(32), [1, 32])",
        "v": "v = pypto.reshape(pypto.arange(32, 64), [1, 32])",
        "codes": "codes = pypto.cast(pypto.full([2, 64], 1.5, pypto.DT_FP32), pypto.DT_FP8E4M3)",
        "scales": "scales = pypto.tensor(None, pypto.DT_FP8E8M0, data=[[[1.0, 1.0]]] * 2)",
    }
)
"""Lines that come before an expression, by the word in it that needs them."""

_KERNEL: Final = """\
import numpy as np

import pypto_cast as pypto


@pypto.frontend.jit
def kernel(
    x: pypto.Tensor[[2, 3], pypto.DT_FP32],
    at: pypto.Tensor[[2], pypto.DT_INT32],
    out: pypto.Tensor[[2, 3], pypto.DT_FP32],
):
    pypto.set_vec_tile_shapes(2, 32)
    out[:] = pypto.ones(2, 3)
    {}


out = np.zeros((2, 3), np.float32)
x = np.array([[1.5, -2.0, 0.25], [0.0, 8.0, -1.5]], np.float32)
kernel(x, np.array([1, 0], np.int32), out)
print(out)
"""
"""A kernel, for operations that write to a tensor."""


def _line(name: str) -> str:
    """The example of a row, or the operation of one tensor or two."""
    given = inspect.signature(getattr(operations, name)).parameters.values()
    count = sum(each.default is each.empty for each in given)
    line = ROWS[name].example or f"pypto.{{name}}({', '.join('xy'[:count])})"
    return line.replace("{name}", name)


_LINES: Final = {name: _line(name) for name in operations.__all__}
STATEMENTS: Final[Mapping[str, str]] = {
    name: line for name, line in _LINES.items() if re.search(r"\bout\b", line)
}
"""Statements of a kernel, by operation."""
EXPRESSIONS: Final[Mapping[str, str]] = {
    name: line for name, line in _LINES.items() if name not in STATEMENTS
}
"""Expressions over the operands, by operation."""


def example(name: str) -> str:
    """The example of an operation, from its imports on."""
    if name in STATEMENTS:
        return _KERNEL.format(STATEMENTS[name])
    expression = EXPRESSIONS[name]
    words = {"vec", *re.findall(r"\w+", expression)}
    first, *lines = [line for word, line in _SET_UP.items() if word in words]
    lines.append(f"print({expression})\n")
    chip = chip_of(name)
    if chip != DEFAULT_CHIP.name:
        lines = [f'with pypto.options(chip="{chip}"):', *(f"    {line}" for line in lines)]
    return "\n".join((first, *lines))


def chip_of(name: str) -> str:
    """A chip that has an operation: the default one, but for those of another family alone."""
    families = ROWS[name].dtypes or {DEFAULT_CHIP.isa: ()}
    chips = (DEFAULT_CHIP, *CHIPS.values())
    return next(chip.name for chip in chips if chip.isa in families)
