"""The kernels that causes are planted in, their inputs, and the same kernels in numpy alone.

Nothing of the project rounds, sums or moves an element of the kernels in numpy.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pypto_cast.kernel.certainty import Certainty

Array = npt.NDArray[Any]
Values = dict[str, Array]
_FILE: Final = "planted.py"

# --- Kernels -------------------------------------------------------------------------------------

_TEXT: Final = """
import pypto_cast as pypto

def of(dtype, columns={cols}):
    return pypto.Tensor[[{rows}, columns], dtype]

F, H, I, B = pypto.DT_FP32, pypto.DT_FP16, pypto.DT_INT32, pypto.DT_INT8

@pypto.frontend.jit
def kernel(a: of(F), b: of(F), q: of(B), h: of(H), y: of(B), z: of(I), w: of(I), f: of(H),
           r: of(F, 1)):
    pypto.set_vec_tile_shapes(*{tile})
    u = pypto.{first}(a, b)
    p = pypto.cast(
        pypto.cast(q, H), F)
    v = pypto.{second}(u, p)
    g = pypto.cast(v, H, mode=pypto.CAST_RINT)
    h[0:] = g
    y[0:] = pypto.cast(g, B, mode=pypto.CAST_RINT)
    z[0:] = pypto.cast(g, I, mode=pypto.CAST_RINT)
    w[0:] = pypto.cast(v, I, mode=pypto.CAST_RINT)
    f[0:] = pypto.mul(pypto.sub(g, 3.0), g)
    r[0:] = pypto.sum(v, -1, True)
"""
_DTYPES: Final[dict[str, npt.DTypeLike]] = {
    **{"h": np.float16, "y": np.int8, "z": np.int32, "w": np.int32, "f": np.float16},
    "r": np.float32,
}


def place_at(beginning: str) -> str:
    """The place of a line of the kernel, as judge says it."""
    lines = _TEXT.splitlines()
    number = next(n for n, line in enumerate(lines, 1) if line.strip().startswith(beginning))
    return f"at {_FILE}:{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A kernel: two operations, a shape and a tile.

    Attributes:
        first, second: names of the operations on a and b, and on their result and q.
        shape, tile: of the arrays.
    """

    first: str
    second: str
    shape: tuple[int, int]
    tile: tuple[int, int]

    def __str__(self) -> str:
        rows, cols = self.shape
        return f"{self.first}, {self.second}, {rows} x {cols} by {self.tile[0]} x {self.tile[1]}"

    def bounds(self, inputs: Values) -> Callable[[], Certainty]:
        """Gives the intervals of the kernel."""
        rows, cols = self.shape
        text = _TEXT.format(
            rows=rows, cols=cols, tile=list(self.tile), first=self.first, second=self.second
        )
        space = compiled(text)
        outputs = [
            np.zeros((rows, 1 if name == "r" else cols), dtype) for name, dtype in _DTYPES.items()
        ]
        return lambda: space["kernel"].certainty(*inputs.values(), *outputs)


def compiled(text: str) -> dict[str, Any]:
    """The names of a source, which `inspect` finds too."""
    linecache.cache[_FILE] = (len(text), None, text.splitlines(True), _FILE)
    space: dict[str, Any] = {"__name__": "planted"}
    exec(compile(text, _FILE, "exec"), space)
    return space


SKETCHES: Final = (
    Sketch(first="mul", second="add", shape=(16, 76), tile=(4, 40)),
    Sketch(first="mul", second="sub", shape=(16, 60), tile=(8, 32)),
    Sketch(first="sub", second="mul", shape=(24, 44), tile=(4, 24)),
    Sketch(first="add", second="mul", shape=(32, 36), tile=(8, 16)),
    Sketch(first="mul", second="mul", shape=(16, 68), tile=(4, 40)),
    Sketch(first="sub", second="add", shape=(20, 52), tile=(5, 24)),
    Sketch(first="maximum", second="mul", shape=(16, 84), tile=(4, 48)),
    Sketch(first="minimum", second="sub", shape=(16, 92), tile=(8, 48)),
)


def inputs_of(sketch: Sketch, rng: np.random.Generator) -> Values:
    """Random numbers of many magnitudes: some overflow FP16, some are subnormal in it."""
    scale = np.exp2(rng.integers(-12, 7, sketch.shape) * (rng.random(sketch.shape) < 0.5))
    a, b = (rng.standard_normal(sketch.shape) * 6 for _ in "ab")
    q = rng.integers(-128, 128, sketch.shape) * (rng.random(sketch.shape) < 0.7)
    kind = rng.random(sketch.shape)
    large, tiny, halves = kind < 0.03, (kind > 0.03) & (kind < 0.2), kind > 0.6
    a = np.where(large, a * 2.0**14, np.where(tiny | halves, a, a * scale))
    least = 2.0 ** (-10 if sketch.first == "mul" else -19)
    a, b = (np.where(tiny, x * least, np.where(halves, np.rint(x * 2) / 2, x)) for x in (a, b))
    small = np.clip(q, -3, 3)
    q = np.where(halves, small, np.where(tiny, small * (sketch.second == "mul"), q))
    a, b = a + 0.0, b + 0.0  # numpy takes either zero for the greater
    return {"a": a.astype(np.float32), "b": b.astype(np.float32), "q": q.astype(np.int8)}


# --- The kernels in numpy ------------------------------------------------------------------------

_UNITS: Final[dict[str, Callable[[Array], Array]]] = {
    "RINT": np.rint,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "TRUNC": np.trunc,
    "ROUND": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "ODD": lambda x: np.where(
        (np.trunc(x) != x) & (np.trunc(x) % 2 == 0), np.trunc(x) + np.sign(x), np.trunc(x)
    ),
}
_TO_INFINITY: Final = {"RINT": (1, 1), "ROUND": (1, 1), "FLOOR": (0, 1), "CEIL": (1, 0)}
"""1 where results beyond the largest number become infinite: positive ones, negative ones."""


def to_float(x: Array, mode: str = "RINT", *, man: int = 10, exp: int = 5) -> Array:
    """Numbers rounded to a float format, as float64: FP16, or BF16 with man=7 and exp=8."""
    wide = x.astype(np.float64)
    bias = 2 ** (exp - 1) - 1
    largest = (2 - 2.0**-man) * 2.0**bias
    _, exponent = np.frexp(wide)
    quantum = np.maximum(exponent - 1, 1 - bias) - man
    with np.errstate(invalid="ignore"):
        found = np.ldexp(_UNITS[mode](np.ldexp(wide, -quantum)), quantum)
    found = np.where(
        np.isfinite(wide) & (np.abs(found) > largest), _beyond(wide, mode, largest), found
    )
    return np.where(np.isfinite(wide), np.copysign(found, wide), wide)


def _beyond(x: Array, mode: str, largest: float) -> Array:
    positive, negative = _TO_INFINITY.get(mode, (0, 0))
    ends = np.where(x > 0, np.inf if positive else largest, np.inf if negative else largest)
    return np.copysign(ends, x)


def _numbers(x: Array, most: float) -> Array:
    """NaN as 0, and everything within a magnitude."""
    return np.clip(np.nan_to_num(x, nan=0.0, posinf=most, neginf=-most), -most, most)


def to_int(x: Array, mode: str, bits: int, *, wraps: bool = False) -> Array:
    """Numbers rounded to a signed integer, clamped or with their low bits."""
    wide = np.nan_to_num(
        _UNITS[mode](x.astype(np.float64)), nan=0.0, posinf=2.0**40, neginf=-(2.0**40)
    )
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    if wraps:
        held = np.clip(wide, -(2**31), 2**31 - 1).astype(np.int64)
        held = np.where(x == np.inf, -1, np.where(x == -np.inf, 0, held))
        return (
            (held & (2**bits - 1)).astype(np.uint64).astype(f"u{bits // 8}").view(f"i{bits // 8}")
        )
    return np.clip(wide, least, most).astype(f"i{bits // 8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """A mistake: each field is the right way unless it is given."""

    to_h: str = "RINT"
    to_y: str = "RINT"
    to_z: str = "RINT"
    to_w: str = "RINT"
    wraps: bool = False
    through_fp16: bool = False
    first_in_bf16: bool = False
    z_from_fp32: bool = False
    rounds_between: bool = False
    flushes: bool = False
    saturates: bool = False
    reads_unsigned: bool = False
    moves_b: Callable[[Array], Array] | None = None
    sums: Callable[[Array], Array] | None = None


def computed(sketch: Sketch, inputs: Values, mistake: Mistake) -> Values:
    """The outputs, in numpy."""
    operations = {
        **{"mul": np.multiply, "add": np.add, "sub": np.subtract},
        **{"maximum": np.maximum, "minimum": np.minimum},
    }
    flush = _flushed if mistake.flushes else (lambda x, least: x)
    tiny, small = 2.0**-126, 2.0**-14

    def fp32(x: Array) -> Array:
        return flush(x.astype(np.float32), tiny)

    def fp16(x: Array, mode: str = "RINT") -> Array:
        found = to_float(x, mode)
        if mistake.saturates:
            found = np.clip(
                np.nan_to_num(found, nan=0.0, posinf=65504, neginf=-65504), -65504, 65504
            )
        return flush(found, small).astype(np.float16)

    a, b, q = inputs["a"], inputs["b"], inputs["q"]
    if mistake.moves_b is not None:
        b = mistake.moves_b(b)
    if mistake.reads_unsigned:
        q = q.view(np.uint8)
    with np.errstate(all="ignore"):
        u = fp32(operations[sketch.first](fp32(a), fp32(b)))
        if mistake.first_in_bf16:
            u = to_float(u, man=7, exp=8).astype(np.float32)
        v = fp32(operations[sketch.second](u, q.astype(np.float32)))
        g = fp16(v, mistake.to_h)
        wide = g.astype(np.float32)
        between = wide - np.float32(3)
        if mistake.rounds_between:
            between = fp16(between).astype(np.float32)
        found = {
            "h": g,
            "y": to_int(g, mistake.to_y, 8, wraps=mistake.wraps),
            "z": to_int(v if mistake.z_from_fp32 else g, mistake.to_z, 32),
            "w": to_int(to_float(v) if mistake.through_fp16 else v, mistake.to_w, 32),
            "f": fp16(between * wide),
        }
        found["r"] = (mistake.sums or partial(_by_tiles, width=sketch.tile[1]))(v)
    return found


def _flushed(x: Array, least: float) -> Array:
    return np.where(np.abs(x) < least, np.copysign(0, x), x).astype(x.dtype)


def _by_tiles(x: Array, width: int) -> Array:
    """The tiles onto the first one, then its elements by pairs of neighbours."""
    total = x[:, :width].copy()
    for start in range(width, x.shape[1], width):
        tile = x[:, start : start + width]
        total[:, : tile.shape[1]] += tile
    return _by_pairs(total)


def _by_pairs(x: Array) -> Array:
    while x.shape[1] > 1:
        even = x.shape[1] // 2 * 2
        x = np.concatenate((x[:, 0:even:2] + x[:, 1:even:2], x[:, even:]), 1)
    return x


def from_the_end(x: Array) -> Array:
    total = x[:, -1:].copy()
    for column in range(x.shape[1] - 2, -1, -1):
        total = total + x[:, column : column + 1]
    return total
