"""Kernels as files, written from one line each: a name, shapes and dtypes, a tile.

The line is a row of the public list of kernels that upstream's wheel compiled, or a draw. The name
says which operations; `FAMILIES` has their text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Tensor = tuple[tuple[int, ...], str]
DTYPES: Final = {
    **{"float32": "DT_FP32", "float16": "DT_FP16", "bfloat16": "DT_BF16", "bool": "DT_BOOL"},
    **{name: f"DT_{name.upper()}" for name in ("int8", "int16", "int32", "int64", "uint8")},
}
"""The package's names of torch's dtypes."""
_NORM: Final = """
mean = pypto.sum(a0, dim=-1, keepdim=True) * (1.0 / {columns})
centred = a0 - mean
variance = pypto.sum(centred * centred, dim=-1, keepdim=True) * (1.0 / {columns})
a3[:] = centred / pypto.sqrt(variance + 1e-5) * a1 + a2
"""
_INT8: Final = """
scale = pypto.amax(pypto.abs(wide), dim=-1, keepdim=True) * (1.0 / 127)
whole = pypto.cast(wide / scale, pypto.DT_INT32, pypto.CastMode.CAST_RINT)
half = pypto.cast(whole, pypto.DT_FP16, pypto.CastMode.CAST_ROUND)
{codes}[:] = pypto.cast(half, pypto.DT_INT8, pypto.CastMode.CAST_TRUNC)
{scales}[:] = scale
"""
_RMS: Final = """
x = pypto.cast(a0, pypto.DT_FP32)
mean = pypto.sum(x * x, dim=-1, keepdim=True) * (1.0 / {columns})
wide = x / pypto.sqrt(mean + 1e-6) * pypto.cast(a1, pypto.DT_FP32)
"""
_SOFTMAX: Final = """
e = pypto.exp(a0 - pypto.amax(a0, dim=-1, keepdim=True))
a1[:] = pypto.cast(e / pypto.sum(e, dim=-1, keepdim=True), pypto.{last})
"""
_SWIGLU: Final = """
wide = pypto.cast(a0, pypto.DT_FP32)
silu = wide * pypto.sigmoid(wide)
a2[:] = pypto.cast(silu * pypto.cast(a1, pypto.DT_FP32), pypto.{last})
"""
_CHAIN: Final = "s = a0 + a1\n" + "".join(
    f"s = s {operator} a{number}\n" for operator, number in itertools.product("+*", range(8))
)
FAMILIES: Final[Mapping[str, str]] = {
    r"cast(shape|tile)?_?\w+": "a1[:] = pypto.cast(a0, pypto.{last})",
    r"chain_\w+": "a2[:] = pypto.exp(a0 + a1) * a0 - pypto.abs(a1)",
    r"clip_\w+": "a1[:] = pypto.clip(a0, -1.0, 1.0)",
    r"concat_\w+": "a2[:] = pypto.concat([a0, a1], -1)",
    r"cumsum": "a1[:] = pypto.cumsum(a0, -1)",
    r"divs_\w+": "a1[:] = a0 / 3.0",
    r"gather_topk": "a1[:], a2[:] = pypto.topk(a0, 8, -1)",
    r"int8tok_\w": "wide = pypto.cast(a0, pypto.DT_FP32)" + _INT8.format(codes="a1", scales="a2"),
    r"ln_\w": _NORM,
    r"longchain": "s = a0 + a1\nt = s * a2\nu = pypto.exp(t) + a0\n"
    "a3[:] = u / (pypto.abs(s) + 1.0) - t * a1",
    r"matmul1": "pypto.set_cube_tile_shapes([64, 64], [128, 128], [64, 64])\n"
    "a2[:] = pypto.matmul(a0, a1, pypto.{last})",
    r"muladd_s_\w+": "a1[:] = a0 * 2.0 + 1.0 - 0.5",
    r"one_(?P<name>\w+)_\w+": "a1[:] = pypto.{name}(a0)",
    r"red_(?P<name>\w+)_first_\w+": "a1[:] = pypto.{name}(a0, 0, True)",
    r"red_(?P<name>\w+)_mid_\w+": "a1[:] = pypto.{name}(a0, 1, True)",
    r"red_(?P<name>\w+)_last_\w+": "a1[:] = pypto.{name}(a0, -1, True)",
    r"reshape1": "a1[:] = pypto.reshape(a0 * 2.0, {last_shape})",
    r"retile": "s = a0 * 2.0\npypto.set_vec_tile_shapes(16, 256)\na1[:] = s + 1.0",
    r"rmsq_\w": _RMS + _INT8.format(codes="a2", scales="a3"),
    r"softmax_\w": _SOFTMAX,
    r"softmaxop_\w+": "a1[:] = pypto.softmax(a0, -1)",
    r"spill": _CHAIN + "a8[:] = s",
    r"swiglu_\w+": _SWIGLU,
    r"transpose_\w+": "a1[:] = pypto.transpose(a0, 0, 1)",
    r"two_outs": "a1[:] = pypto.cast(a0 * 2.0, pypto.DT_FP16)\n"
    "a2[:] = pypto.cast(a0 + 1.0, pypto.{last})",
    r"two_(?P<name>\w+)_\w+": "a2[:] = pypto.{name}(a0, a1)",
    r"where_\w+": "a2[:] = pypto.where(a0 > a1, a0, a1)",
}
"""The operations of kernels of a name; `{last}` is the dtype of the last argument."""

_TENSOR: Final = re.compile(r"(\d+(?:x\d+)*):(\w+)")
_KERNEL: Final = """\
import pypto_cast as pypto


@pypto.frontend.jit(runtime_options={{"run_mode": pypto.RunMode.SIM}})
def {name}({parameters}):
    pypto.set_vec_tile_shapes({tile})
{body}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A kernel as a file.

    Attributes:
        id: of the row.
        name: of the kernel in the file.
        text: the file.
        tensors: shape and torch's dtype of each tensor argument; none if the file has its own.
    """

    id: str
    name: str
    text: str
    tensors: tuple[Tensor, ...]


def written(name: str, shapes: str, tile: str) -> Written:
    """The kernel of a family.

    Args:
        name: one that a pattern of `FAMILIES` takes.
        shapes: of the arguments, as "64x256:float32 64x1:int8"; the outputs come last.
        tile: as "16x128".

    Raises:
        ValueError: there is no such family, or an argument is no tensor.
    """
    found = [(match, body) for key, body in FAMILIES.items() if (match := re.fullmatch(key, name))]
    tensors = tensors_of(shapes)
    if not found or not tile:
        raise ValueError("its name and its columns do not say what it computes")
    match, body = found[-1]
    shape, dtype = tensors[-1]
    body = body.strip().format(
        **match.groupdict(), last=DTYPES[dtype], last_shape=list(shape), columns=tensors[0][0][-1]
    )
    return _written(name, tensors, tile, body)


def written_body(row: Mapping[str, str]) -> Written:
    """The kernel of a row that has its statements itself, in the column body."""
    return _written(
        row["id"], tensors_of(row["shape"]), row["tile"], row["body"].replace("; ", "\n")
    )


def _written(name: str, tensors: Sequence[Tensor], tile: str, body: str) -> Written:
    annotations = (
        f"a{place}: pypto.Tensor({list(shape)}, pypto.{DTYPES[dtype]})"
        for place, (shape, dtype) in enumerate(tensors)
    )
    text = _KERNEL.format(
        name=name,
        parameters=", ".join(annotations),
        tile=tile.replace("x", ", "),
        body="\n".join(f"    {line}" for line in body.splitlines()),
    )
    return Written(id=name, name=name, text=text, tensors=tuple(tensors))


def tensors_of(shapes: str) -> tuple[Tensor, ...]:
    """The arguments of a row, written as "64x256:float32 64x1:int8".

    Raises:
        ValueError: one is no tensor.
    """
    return tuple(map(_tensor, shapes.split()))


def _tensor(text: str) -> Tensor:
    match = _TENSOR.fullmatch(text)
    if match is None or match[2] not in DTYPES:
        raise ValueError(f"argument {text[:40]} is no tensor of a known dtype")
    return tuple(map(int, match[1].split("x"))), match[2]


_FLOATS: Final = ("float32", "float16", "bfloat16")
_DRAWS: Final[tuple[tuple[str, str, int], ...]] = (
    *((f"one_{name}_", "ss", 4) for name in ("abs", "ceil", "exp", "floor", "log", "neg", "relu")),
    *((f"one_{name}_", "ss", 4) for name in ("reciprocal", "rsqrt", "sigmoid", "sqrt", "trunc")),
    *((f"two_{name}_", "sss", 4) for name in ("add", "div", "maximum", "minimum", "mul", "sub")),
    *((f"red_{name}_last_", "sc", 4) for name in ("amax", "amin", "sum")),
    *((name, "ss", 4) for name in ("cast_", "clip_", "muladd_s_", "softmaxop_", "softmaxop_")),
    *((name, "sss", 4) for name in ("chain_", "where_", "swiglu_", "swiglu_")),
    *(("ln_a", "srrs", 2), ("int8tok_a", "sik", 4), ("rmsq_a", "srik", 2)) * 3,
)
"""Names that may be drawn, the arguments, and the most dimensions. An argument is a letter: of the
shape that is drawn, a row, a column; i and k are the shape in INT8 and the column in FP32."""


_OF_ROWS: Final = ("softmaxop_", "clip_")
"""Names that the wheel refuses for one dimension."""


def drawn(random: np.random.Generator) -> Written:
    """Draw a kernel: what it computes, 1 to 4 dimensions, extents, a tile, a dtype.

    The tile does not divide the extents but by chance.
    """
    name, letters, most = _DRAWS[random.integers(len(_DRAWS))]
    dtype = _FLOATS[random.integers(len(_FLOATS))]
    least = 1 if set(letters) == {"s"} and name not in _OF_ROWS else 2
    dims = int(random.integers(least, most + 1))
    tile = [*([1, 2][-max(dims - 2, 0) :] if dims > 2 else []), 8, 32 * random.integers(1, 7)]
    tile = list(map(int, tile[-dims:]))
    shape = [int(random.integers(1, 3 * each + 1)) for each in tile]
    shapes = {
        "s": (shape, dtype),
        "r": ([1] * (dims - 1) + shape[-1:], dtype),
        "c": ([*shape[:-1], 1], dtype),
        "i": (shape, "int8"),
        "k": ([*shape[:-1], 1], "float32"),
    }
    arguments = [shapes[letter] for letter in letters]
    if name == "cast_":
        target = _FLOATS[random.integers(len(_FLOATS))]
        is_lacking = {dtype, target} == {"float16", "bfloat16"}  # A2/A3 has no such cast
        arguments[1] = shape, "float32" if is_lacking else target
    written_as = " ".join(f"{'x'.join(map(str, shape))}:{dtype}" for shape, dtype in arguments)
    return written(
        f"{name}{dtype}" if name.endswith("_") else name, written_as, "x".join(map(str, tile))
    )


_UNARY: Final = ("abs", "exp", "log", "neg", "reciprocal", "relu", "sigmoid", "sqrt")
_STEPS: Final = (
    *("{to} = pypto.{unary}({x})", "{to} = pypto.{unary}({x})", "{to} = {x} {operator} {y}"),
    *("{to} = {x} {operator} {y}", "{to} = {x} {operator} {number}", "{to} = {number} - {x}"),
    *("{to} = pypto.maximum({x}, {y})", "{to} = pypto.clip({x}, -1.0, {number})"),
    "{to} = pypto.where({x} > {y}, {x}, {y})",
    "{to} = pypto.cast(pypto.cast({x}, pypto.{other}), pypto.{dtype})",
    *("{to} = {x} {operator} {broadcast}",) * 2,
    *("{to}r = pypto.{reduction}({x}, {axis}, True)\n{to} = {y} {operator} {to}r",) * 2,
    "pypto.set_vec_tile_shapes({tile})\n{to} = pypto.abs({x})",
)
"""Statements of a chain; each gives a value of the chain's shape and dtype."""
_STEPS_OF_ROWS: Final = tuple(x for x in _STEPS if "reduction" not in x and "clip" not in x)
"""Those that upstream takes for one dimension."""


def drawn_chain(random: np.random.Generator, dims: int) -> Written:
    """Draw a kernel of two to six operations: operands, broadcasts, reductions, casts, tiles.

    It has one output or two. The tile divides the extents in half of all draws.
    """

    def one(of: Sequence[Any]) -> Any:
        return of[random.integers(len(of))]

    def tile() -> list[int]:
        drawn = [one((1, 1, 2)), one((1, 2)), one((4, 8, 16)), 32 * int(random.integers(1, 7))]
        return drawn[-dims:]

    first, dtype = tile(), str(one(_FLOATS))
    divides = bool(random.integers(2))
    most = [2, 2, 3, 3][-dims:]
    shape = [each * int(random.integers(1, k + 1)) for each, k in zip(first, most, strict=True)]
    if not divides:
        shape = [int(random.integers(1, each + 1)) for each in shape]
    axes = [axis for axis, extent in enumerate(shape) if extent > 1] or [0]
    row = list(shape)
    row[one(axes)] = 1
    tensors = [(tuple(shape), dtype)] * int(random.integers(1, 3))
    values, lines = [f"a{place}" for place in range(len(tensors))], []
    for number in range(int(random.integers(2, 7))):
        step = one(_STEPS if dims > 1 else _STEPS_OF_ROWS)
        if "{broadcast}" in step and (tuple(row), dtype) not in tensors[-1:]:
            tensors.append((tuple(row), dtype))
        lines += step.format(
            to=f"v{number}",
            x=one(values[-3:]),
            y=one(values),
            operator=one("+-*/"),
            unary=one(_UNARY),
            number=one((0.5, 1.25, 2.0)),
            reduction=one(("sum", "amax", "amin")),
            axis=one(axes),
            broadcast=f"a{len(tensors) - 1}",
            dtype=DTYPES[dtype],
            other=DTYPES[one(_FLOATS[1:] if dtype == "float32" else _FLOATS[:1])],
            tile=", ".join(map(str, tile())),
        ).splitlines()
        values.append(f"v{number}")
    for factor in (1.5, 3.0)[: 1 + int(random.integers(2))]:
        lines.append(f"a{len(tensors)}[:] = {one(values[-2:])} * {factor}")
        tensors.append((tuple(shape), dtype))
    return _written("chain", tensors, "x".join(map(str, first)), "\n".join(lines))
