"""Calls of all operations of the table on operands of [8, 8], for programs drawn at random.

A call takes its operands of a `Drawn`, which picks earlier results by dtype and numbers by chance,
alike in every run of one program.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pypto_cast as pypto
from pypto_cast import experimental
from pypto_cast.operations.operation_rows import ROWS
from tiling.chips import A2_A3

SIDE: Final = 8
SHAPE: Final = (SIDE, SIDE)
TILE: Final = (32, 32)
LEFT_OUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: "of the 950 alone, and programs are carried out on A2/A3"
        for name, row in ROWS.items()
        if row.dtypes and A2_A3 not in row.dtypes
    }
)
"""Operations of the table that no program calls, with the reason."""

_FP32, _FP16, _BF16 = pypto.DT_FP32, pypto.DT_FP16, pypto.DT_BF16
_CUBE: Final = (_FP16, _BF16, _FP32)


class Drawn:
    """The operands of one program.

    Args:
        seed: of its chance.
        out: the FP32 output that statements write to.
        inputs: the first tensors, one of each dtype at least.
    """

    def __init__(self, seed: int, out: pypto.Tensor, inputs: Sequence[pypto.Tensor]) -> None:
        self._chance, self.out = random.Random(seed), out
        self._held: dict[pypto.DataType, list[pypto.Tensor]] = {}
        for tensor in inputs:
            self.hold(tensor)

    def hold(self, tensor: pypto.Tensor) -> None:
        """Have a result picked by later calls.

        Raises:
            ValueError: of another shape.
        """
        if list(tensor.shape) != list(SHAPE):
            raise ValueError(f"a result of shape {tensor.shape}, not {list(SHAPE)}")
        self._held.setdefault(tensor.dtype, []).append(tensor)

    def pick(self, choices: Sequence[Any]) -> Any:
        """One of several, by chance."""
        return self._chance.choice(choices)

    def of(self, *dtypes: pypto.DataType) -> pypto.Tensor:
        """A tensor of one of these dtypes, mostly of the last results."""
        held = self._held[self.pick([each for each in dtypes if each in self._held])]
        return self.pick(held[-2:] if self._chance.random() < 0.75 else held)

    def x(self) -> pypto.Tensor:
        """An FP32 tensor."""
        return self.of(_FP32)

    def like(self, tensor: pypto.Tensor) -> pypto.Tensor:
        """Another one of its dtype."""
        return self.of(tensor.dtype)

    def real(self) -> float:
        """A number."""
        return float(self.pick((-2.0, -0.75, 0.0, 0.1, 0.5, 1.0, 3.0, 127.0)))

    def axis(self) -> int:
        """One of two."""
        return int(self.pick((0, 1, -1)))

    def places(self) -> pypto.Tensor:
        """INT32 [8, 8] from 0 to 7: places in the order of numbers, which may be undecided."""
        x, make = self.x(), self._chance.random()
        if make < 0.6:
            return pypto.argsort(x, -1, self.pick((True, False)))
        if make < 0.8:
            return pypto.expand_clone(pypto.argmax(x, -1, True), list(SHAPE))
        return pypto.clip(self.of(pypto.DT_INT32), 0, SIDE - 1)

    def row(self) -> pypto.Tensor:
        """INT32 [8] from 0 to 7."""
        return pypto.reshape(self.places()[0:1, :], [SIDE])

    def line(self, dtype: pypto.DataType = _FP32) -> pypto.Tensor:
        """[8] of a dtype."""
        return pypto.reshape(self.of(dtype)[0:1, :], [SIDE])


Call = Callable[[Drawn], Any]
"""Calls one operation; gives a tensor, several, or None of a statement."""


def _dtypes(name: str) -> tuple[pypto.DataType, ...]:
    listed: tuple[pypto.DataType, ...] = tuple(ROWS[name].dtypes[A2_A3])
    return listed


def _plain(name: str) -> Call:
    """A call of one tensor or two of one dtype, of those of the row."""
    given = inspect.signature(getattr(pypto, name)).parameters.values()
    count = sum(each.default is each.empty for each in given)

    def call(drawn: Drawn) -> Any:
        first = drawn.of(*_dtypes(name))
        return getattr(pypto, name)(first, *(drawn.like(first) for _ in range(count - 1)))

    return call


def _along(name: str) -> Call:
    """A reduction, repeated along its dimension."""

    def call(drawn: Drawn) -> Any:
        dim = drawn.axis()
        found = getattr(pypto, name)(drawn.of(*_dtypes(name)), dim, keepdim=True)
        return pypto.expand_clone(found, list(SHAPE))

    return call


def _with_axis(name: str) -> Call:
    return lambda drawn: getattr(pypto, name)(drawn.of(*_dtypes(name)), drawn.axis())


def _in_tiles(call: Call, *entries: int) -> Call:
    """A call under another tile shape."""

    def run(drawn: Drawn) -> Any:
        pypto.set_vec_tile_shapes(*entries)
        found = call(drawn)
        pypto.set_vec_tile_shapes(*TILE)
        return found

    return run


def _added(name: str) -> Call:
    def call(drawn: Drawn) -> Any:
        x, dim = drawn.of(*_dtypes(name)), drawn.pick((0, 1))
        alpha = drawn.pick((1, 1, 2))
        return getattr(pypto, name)(x, dim, drawn.row(), drawn.like(x), alpha=alpha)

    return call


def _added_in_place(name: str) -> Call:
    return lambda drawn: getattr(pypto, name)(drawn.out, drawn.pick((0, 1)), drawn.row(), drawn.x())


def _scattered(drawn: Drawn, x: pypto.Tensor, function: Callable[..., Any]) -> Any:
    reduce = drawn.pick((None, None, "add", "multiply")) if x.dtype is _FP32 else None
    source = drawn.pick((drawn.like(x), 2.0))
    return function(x, drawn.pick((0, 1)), drawn.places(), source, reduce=reduce)


def _product(drawn: Drawn) -> Any:
    dtype = drawn.pick((*_CUBE, pypto.DT_INT8))
    out = pypto.DT_INT32 if dtype is pypto.DT_INT8 else drawn.pick((_FP32, dtype))
    turned = {f"{side}_trans": drawn.pick((True, False)) for side in "ab"}
    return pypto.matmul(drawn.of(dtype), drawn.of(dtype), out, **turned)


def _convolution(drawn: Drawn) -> Any:
    dtype = drawn.pick(_CUBE)
    x = pypto.reshape(drawn.of(dtype), [1, SIDE, SIDE])
    weight = pypto.reshape(drawn.of(dtype), [SIDE, SIDE, 1])
    return pypto.reshape(pypto.conv(x, weight, dtype, [1], [0, 0], [1]), list(SHAPE))


def _batches(drawn: Drawn) -> Any:
    dtype = drawn.pick((_FP16, _BF16))
    x, y = (pypto.reshape(drawn.of(dtype), each) for each in ([4, 2, 8], [2, 8, 4]))
    found = experimental.transposed_batchmatmul(x, y, dtype)
    return pypto.reshape(pypto.concat([found, found], -1), list(SHAPE))


def _pages_in_ub(drawn: Drawn) -> Any:
    places = pypto.reshape(drawn.row(), [1, SIDE])
    return experimental.gather_in_ub(drawn.x(), places, _pages(), 4, -2)


def _pages_in_l1(drawn: Drawn) -> Any:
    places = pypto.reshape(drawn.row(), [1, SIDE])
    found = experimental.gather_in_l1(
        drawn.of(*_CUBE), places, _pages(), 4, SIDE, False, drawn.pick((True, False))
    )
    return found


def _pages() -> pypto.Tensor:
    """The blocks of four rows of eight, the last first."""
    return pypto.sub(pypto.full([1, 2], 1, pypto.DT_INT32), pypto.reshape(pypto.arange(2), [1, 2]))


def _unpacked(drawn: Drawn) -> Any:
    x = drawn.of(*_CUBE)
    return pypto.reshape(pypto.unpack(pypto.pack(x), x.dtype), list(SHAPE))


def _quantized(drawn: Drawn) -> Any:
    points = drawn.pick((None, drawn.line()))
    otype = pypto.DT_INT8 if points is None else pypto.DT_UINT8
    return pypto.quantize(drawn.x(), drawn.line(), otype, drawn.pick((-1, -2)), points)


def _dequantized(drawn: Drawn) -> Any:
    x = drawn.of(pypto.DT_INT8, pypto.DT_INT16)
    points = drawn.pick((None, drawn.line()))
    return pypto.dequantize(x, drawn.line(), _FP32, drawn.pick((-1, -2)), points)


def _sorted(drawn: Drawn) -> Any:
    values, places = pypto.topk(drawn.x(), SIDE, -1, drawn.pick((True, False)))
    return values, places


def _powers(drawn: Drawn) -> Any:
    x = drawn.of(*_dtypes("pow"))
    return pypto.pow(x, drawn.pick((2, 3, 0.5, -1)) if x.dtype is _FP32 else drawn.pick((2, 3)))


def _chosen(drawn: Drawn) -> Any:
    x = drawn.of(*_dtypes("where"))
    return pypto.where(drawn.of(pypto.DT_BOOL), x, drawn.like(x))


def _padded(drawn: Drawn) -> Any:
    x = drawn.x()
    return pypto.pad(x[0:4, 0:4], [0, 4, 0, 4], value=drawn.real())


def _filled(drawn: Drawn) -> Any:
    x = drawn.x()
    return pypto.fillpad(pypto.view(x, list(SHAPE), [0, 0], valid_shape=[4, 8]), value=0.5)


def _classes(drawn: Drawn) -> Any:
    row = drawn.row()
    return _in_tiles(lambda drawn: pypto.one_hot(row, SIDE), SIDE, SIDE)(drawn)


def _accumulated(drawn: Drawn) -> None:
    pypto.index_put_(drawn.out, [drawn.row()], drawn.x(), drawn.pick((True, False)))


def _in_rows(drawn: Drawn) -> Any:
    rows = pypto.reshape(drawn.row(), [1, SIDE])
    x = drawn.of(*_dtypes("scatter_update"))
    return pypto.scatter_update(x, -2, rows, drawn.like(x))


_CALLS: Final[dict[str, Call]] = {
    "full": lambda d: pypto.full(list(SHAPE), d.real(), _FP32),
    "zeros": lambda d: pypto.zeros(*SHAPE, dtype=_FP32),
    "ones": lambda d: pypto.ones(*SHAPE, dtype=_FP32),
    "arange": lambda d: pypto.reshape(pypto.arange(64), list(SHAPE)),
    "reshape": lambda d: pypto.reshape(pypto.reshape(d.x(), [4, 16]), list(SHAPE)),
    "unsqueeze": _in_tiles(
        lambda d: pypto.reshape(pypto.unsqueeze(d.x(), 0), list(SHAPE)), 1, *TILE
    ),
    "transpose": lambda d: pypto.transpose(d.of(*_dtypes("transpose")), 0, 1),
    "permute": lambda d: pypto.permute(d.of(*_dtypes("permute")), [1, 0]),
    "gathermask": lambda d: pypto.gathermask(pypto.concat([d.x(), d.x()], -1), d.pick((1, 2))),
    "pack": _unpacked,
    "unpack": _unpacked,
    "concat": lambda d: pypto.concat([d.x()[0:4, :], d.x()[4:8, :]], 0),
    "clone": lambda d: pypto.clone(d.x()),
    "expand_clone": lambda d: pypto.expand_clone(d.x()[2:3, :], list(SHAPE)),
    "div": lambda d: pypto.div(d.of(*_CUBE), d.pick((3.0, 127.0))),
    "clip": lambda d: pypto.clip(d.x(), d.real(), d.real()),
    "expand_exp_dif": lambda d: pypto.expand_exp_dif(x := d.x(), pypto.amax(x, -1, True)),
    "lrelu": lambda d: pypto.lrelu(d.of(*_dtypes("lrelu")), 0.25),
    "prelu": lambda d: pypto.prelu(d.x(), d.line()),
    "ceil_div": lambda d: pypto.ceil_div(d.of(pypto.DT_INT32), d.pick((2, 3, -3))),
    "floor_div": lambda d: pypto.floor_div(d.of(*_CUBE, pypto.DT_INT32), d.pick((2, 3, -3))),
    "where": _chosen,
    "pow": _powers,
    "triu": lambda d: pypto.triu(d.of(*_dtypes("triu")), d.pick((-1, 0, 2))),
    "tril": lambda d: pypto.tril(d.of(*_dtypes("tril")), d.pick((-1, 0, 2))),
    "pad": _padded,
    "fillpad": _filled,
    "one_hot": _classes,
    "quantize": _quantized,
    "dequantize": _dequantized,
    "softmax": _with_axis("softmax"),
    "rms_norm": lambda d: pypto.rms_norm(d.of(*_dtypes("rms_norm"))),
    "conv": _in_tiles(_convolution, 1, *TILE),
    "matmul": _product,
    "transposed_batchmatmul": _in_tiles(_batches, 1, *TILE),
    "scatter": lambda d: _scattered(d, d.of(*_dtypes("scatter")), pypto.scatter),
    "scatter_": lambda d: _scattered(d, d.out, pypto.scatter_),
    "scatter_update": _in_rows,
    "index_put_": _accumulated,
    "atomic_add": lambda d: pypto.atomic_add(d.x()[0:4, :], [d.pick((0, 2, 4)), 0], d.out),
    "index_add": _added("index_add"),
    "index_add_": _added_in_place("index_add_"),
    "index_add_ub": _added("index_add_ub"),
    "index_add__ub": _added_in_place("index_add__ub"),
    "axpy_": lambda d: pypto.axpy_(d.out, d.x(), d.real()),
    "gather": lambda d: pypto.gather(d.of(*_dtypes("gather")), d.pick((0, 1)), d.places()),
    "index_select": lambda d: pypto.index_select(d.of(*_dtypes("index_select")), 0, d.row()),
    "gather_in_ub": _pages_in_ub,
    "gather_in_l1": _pages_in_l1,
    "topk": _sorted,
    "argsort": _with_axis("argsort"),
    "sort32": lambda d: pypto.sort32(d.x(), 5)[:, d.pick((slice(SIDE), slice(SIDE, None)))],
    **{name: _with_axis(name) for name in ("cumsum", "cumprod")},
    **{name: _along(name) for name in ("amax", "amin", "sum", "prod", "var", "argmax", "argmin")},
}
CALLS: Final[Mapping[str, Call]] = MappingProxyType(
    {name: _CALLS.get(name) or _plain(name) for name in ROWS if name not in LEFT_OUT}
)
"""A call of each operation of the table."""
STATEMENTS: Final = frozenset(
    ("scatter_", "index_put_", "atomic_add", "index_add_", "index_add__ub", "axpy_")
)
"""Those that write to the output."""
