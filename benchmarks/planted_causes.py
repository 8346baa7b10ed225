"""Plants 20 causes in the results of 8 kernels, and counts how many `judge` names first.

`python -m benchmarks.planted_causes --write` writes the table. The results are computed in numpy
alone, with one mistake each: nothing of the project rounds, sums or moves an element of them. A
cause counts where it changes at least 8 elements.
"""

from __future__ import annotations

import argparse
import datetime
import linecache
import subprocess
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import pypto_cast as pypto
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.testing.hypotheses import Explanation, explanations
from pypto_cast.testing.judgement import judge

_Array = npt.NDArray[Any]
Values = dict[str, _Array]
_LEAST_CHANGED: Final = 8
_FILE: Final = "planted.py"
_PAGE: Final = Path(__file__).with_suffix(".md")

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


def _at(beginning: str) -> str:
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
        space = _compiled(text)
        outputs = [
            np.zeros((rows, 1 if name == "r" else cols), dtype) for name, dtype in _DTYPES.items()
        ]
        return lambda: space["kernel"].certainty(*inputs.values(), *outputs)


def _compiled(text: str) -> dict[str, Any]:
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

_UNITS: Final[dict[str, Callable[[_Array], _Array]]] = {
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


def to_float(x: _Array, mode: str = "RINT", *, man: int = 10, exp: int = 5) -> _Array:
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


def _beyond(x: _Array, mode: str, largest: float) -> _Array:
    positive, negative = _TO_INFINITY.get(mode, (0, 0))
    ends = np.where(x > 0, np.inf if positive else largest, np.inf if negative else largest)
    return np.copysign(ends, x)


def _numbers(x: _Array, most: float) -> _Array:
    """NaN as 0, and everything within a magnitude."""
    return np.clip(np.nan_to_num(x, nan=0.0, posinf=most, neginf=-most), -most, most)


def to_int(x: _Array, mode: str, bits: int, *, wraps: bool = False) -> _Array:
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
    moves_b: Callable[[_Array], _Array] | None = None
    sums: Callable[[_Array], _Array] | None = None


def computed(sketch: Sketch, inputs: Values, mistake: Mistake) -> Values:
    """The outputs, in numpy."""
    operations = {
        **{"mul": np.multiply, "add": np.add, "sub": np.subtract},
        **{"maximum": np.maximum, "minimum": np.minimum},
    }
    flush = _flushed if mistake.flushes else (lambda x, least: x)
    tiny, small = 2.0**-126, 2.0**-14

    def fp32(x: _Array) -> _Array:
        return flush(x.astype(np.float32), tiny)

    def fp16(x: _Array, mode: str = "RINT") -> _Array:
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


def _flushed(x: _Array, least: float) -> _Array:
    return np.where(np.abs(x) < least, np.copysign(0, x), x).astype(x.dtype)


def _by_tiles(x: _Array, width: int) -> _Array:
    """The tiles onto the first one, then its elements by pairs of neighbours."""
    total = x[:, :width].copy()
    for start in range(width, x.shape[1], width):
        tile = x[:, start : start + width]
        total[:, : tile.shape[1]] += tile
    return _by_pairs(total)


def _by_pairs(x: _Array) -> _Array:
    while x.shape[1] > 1:
        even = x.shape[1] // 2 * 2
        x = np.concatenate((x[:, 0:even:2] + x[:, 1:even:2], x[:, even:]), 1)
    return x


def _from_the_end(x: _Array) -> _Array:
    total = x[:, -1:].copy()
    for column in range(x.shape[1] - 2, -1, -1):
        total = total + x[:, column : column + 1]
    return total


# --- Causes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A cause.

    Attributes:
        name: its name.
        hypothesis: the beginning of the words that judge has to say first.
        place: their end.
        mistake: in numpy; None: elements of the right result are moved.
        moved: the right result with elements moved.
    """

    name: str
    hypothesis: str
    place: str = ""
    mistake: Mistake | None = None
    moved: Callable[[Sketch, Values], Values] | None = None


def _tiles(sketch: Sketch) -> list[tuple[slice, slice]]:
    (rows, cols), (height, width) = sketch.shape, sketch.tile
    return [
        (slice(r, min(r + height, rows)), slice(c, min(c + width, cols)))
        for r in range(0, rows, height)
        for c in range(0, cols, width)
    ]


def _stale(sketch: Sketch, right: Values) -> Values:
    """The elements of w behind the last whole 32 B of a row are those of the tile before."""
    w, tiles = right["w"].copy(), _tiles(sketch)
    for (rows, cols), (_, before) in zip(tiles[1:], tiles, strict=False):
        width = cols.stop - cols.start
        start = width // 8 * 8
        if start < width and before.stop - before.start >= width:
            source = right["w"][_before(tiles, (rows, cols))]
            w[rows, cols.start + start : cols.stop] = source[:, start:width]
    return {**right, "w": w}


def _before(tiles: list[tuple[slice, slice]], tile: tuple[slice, slice]) -> tuple[slice, slice]:
    return tiles[tiles.index(tile) - 1]


def _elsewhere(sketch: Sketch, right: Values) -> Values:
    h, tiles = right["h"].copy(), _tiles(sketch)
    across = len(range(0, sketch.shape[1], sketch.tile[1]))
    h[tiles[across]] = right["h"][tiles[0]]
    return {**right, "h": h}


def _unwritten(sketch: Sketch, right: Values) -> Values:
    y = right["y"].copy()
    y[_tiles(sketch)[1]] = 0
    return {**right, "y": y}


def _nan(sketch: Sketch, right: Values) -> Values:
    f = right["f"].copy()
    f[_tiles(sketch)[2]] = np.nan
    return {**right, "f": f}


def _turned(x: _Array) -> _Array:
    return x.T.reshape(x.shape)


def _interleaved(x: _Array) -> _Array:
    found, half = np.empty_like(x), (x.shape[1] + 1) // 2
    found[:, 0::2], found[:, 1::2] = x[:, :half], x[:, half:]
    return found


_H, _Y, _Z, _W = (_at(start) for start in ("g = ", "y[0:]", "z[0:]", "w[0:]"))
_FIRST, _SUM, _Q = _at("u = "), _at("r[0:]"), _at("pypto.cast(q, H)")
CAUSES: Final = (
    Planted(name="ROUND", hypothesis="CAST_ROUND", place=_Y, mistake=Mistake(to_y="ROUND")),
    Planted(name="TRUNC", hypothesis="CAST_TRUNC", place=_W, mistake=Mistake(to_w="TRUNC")),
    Planted(name="FLOOR", hypothesis="CAST_FLOOR", place=_H, mistake=Mistake(to_h="FLOOR")),
    Planted(name="CEIL", hypothesis="CAST_CEIL", place=_Z, mistake=Mistake(to_z="CEIL")),
    Planted(name="ODD", hypothesis="CAST_ODD", place=_H, mistake=Mistake(to_h="ODD")),
    Planted(name="wrap", hypothesis="no saturation", place=_Y, mistake=Mistake(wraps=True)),
    Planted(
        name="double rounding",
        hypothesis="rounding through FP16",
        place=_W,
        mistake=Mistake(through_fp16=True),
    ),
    Planted(
        name="lower precision",
        hypothesis="the result of FIRST kept in BF16",
        place=_FIRST,
        mistake=Mistake(first_in_bf16=True),
    ),
    Planted(
        name="higher precision",
        hypothesis="the operand of cast kept in FP32",
        place=_Z,
        mistake=Mistake(z_from_fp32=True),
    ),
    Planted(
        name="AutoCast of another release",
        hypothesis="upstream's release 0.2.0",
        mistake=Mistake(rounds_between=True),
    ),
    Planted(
        name="order of sums",
        hypothesis="sums one after the other from the end",
        place=_SUM,
        mistake=Mistake(sums=_from_the_end),
    ),
    Planted(name="flush of subnormals", hypothesis="subnormal", mistake=Mistake(flushes=True)),
    Planted(name="INF/NAN mode", hypothesis="inf_nan_mode=False", mistake=Mistake(saturates=True)),
    Planted(
        name="operand transposed",
        hypothesis="OPERAND of FIRST transposed",
        place=_FIRST,
        mistake=Mistake(moves_b=_turned),
    ),
    Planted(
        name="operand permuted",
        hypothesis="OPERAND of FIRST with its halves interleaved",
        place=_FIRST,
        mistake=Mistake(moves_b=_interleaved),
    ),
    Planted(name="stale tail", hypothesis="stale tails of tiles of w", moved=_stale),
    Planted(name="tile of elsewhere", hypothesis="tile ", moved=_elsewhere),
    Planted(name="core unwritten", hypothesis="1 tile of core 1 of y unwritten", moved=_unwritten),
    Planted(name="NaN", hypothesis="tile 2 of f NaN", moved=_nan),
    Planted(
        name="signed read as unsigned",
        hypothesis="input of cast read as UINT8",
        place=_Q,
        mistake=Mistake(reads_unsigned=True),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A planted cause, judged.

    Attributes:
        sketch, cause: which.
        changed: elements that it changes.
        first: the best explanation; None: none.
    """

    sketch: Sketch
    cause: Planted
    changed: int
    first: Explanation | None

    @property
    def counts(self) -> bool:
        """It changes enough elements."""
        return self.changed >= _LEAST_CHANGED

    @property
    def is_named(self) -> bool:
        """It is among those that are named first, and explains all of it."""
        first = self.first
        return (
            first is not None
            and first.explained == first.of
            and any(self._fits(text) for text in first.hypotheses)
        )

    def _fits(self, text: str) -> bool:
        words = self.cause.hypothesis.replace("FIRST", self.sketch.first)
        wanted = words.removeprefix("OPERAND")
        return (wanted in text if wanted != words else text.startswith(words)) and text.endswith(
            self.cause.place
        )


def planted(sketch: Sketch, cause: Planted, seed: int) -> Verdict:
    """Plant a cause, and judge the result."""
    inputs = inputs_of(sketch, np.random.default_rng(seed))
    run = sketch.bounds(inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bounds = run()
        right = computed(sketch, inputs, Mistake())
        differ = [o.name for o in bounds.outputs if _apart(right[o.name], o.values).any()]
        assert not differ, f"the numpy model differs in {differ}"
        if cause.mistake is not None:
            wrong = computed(sketch, inputs, cause.mistake)
        else:
            assert cause.moved is not None
            wrong = cause.moved(sketch, right)
        changed = sum(int(np.count_nonzero(_apart(wrong[n], right[n]))) for n in right)
        found = explanations(run, wrong)
    return Verdict(sketch=sketch, cause=cause, changed=changed, first=next(iter(found), None))


def _apart(a: _Array, b: _Array) -> _Array:
    codes = f"u{a.itemsize}"
    same: _Array = np.ascontiguousarray(a).view(codes) != np.ascontiguousarray(b).view(codes)
    return same & ~((a != a) & (b != b))


# --- Results that may be, and one element that may not -------------------------------------------

_OPEN: Final = """
import pypto_cast as pypto

F, B = (pypto.Tensor[[8, 32], dtype] for dtype in (pypto.DT_FP32, pypto.DT_BF16))

@pypto.frontend.jit
def kernel(x: F, y: F, z: B):
    pypto.set_vec_tile_shapes(4, 16)
    e = pypto.exp(x) * 3.0
    y[0:] = e
    z[0:] = pypto.cast(pypto.log(e), pypto.DT_BF16, mode=pypto.CAST_RINT)
"""


def open_bounds(seed: int) -> Certainty:
    """The intervals of a kernel with open results, on random inputs."""
    x = np.random.default_rng(seed).standard_normal((8, 32)).astype(np.float32)
    y, z = np.zeros_like(x), pypto.from_numpy(x)
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=[8, 32]):
        warnings.simplefilter("ignore")
        narrow = pypto.cast(z, pypto.DT_BF16)
        found: Certainty = _compiled(_OPEN)["kernel"].certainty(x, y, narrow)
    return found


def member(bounds: Certainty, rng: np.random.Generator) -> Values:
    """A random element of each interval: as many codes above its low end as its width allows."""
    found = {}
    for output in bounds.outputs:
        codes = f"i{output.values.itemsize}"
        low, high = (x.view(codes).astype(np.int64) for x in (output.low, output.high))
        least, most = np.minimum(low, high), np.maximum(low, high)
        assert ((low < 0) == (high < 0)).all(), "an interval holds zero"
        found[output.name] = (
            rng.integers(least, most, endpoint=True).astype(codes).view(output.values.dtype)
        )
    return found


def moved_outside(bounds: Certainty, values: Values, rng: np.random.Generator) -> Values:
    """One element of one output a code above or below its interval."""
    names = list(values)
    name = names[int(rng.integers(len(names)))]
    array = values[name].copy()
    index = tuple(int(rng.integers(n)) for n in array.shape)
    output, codes = bounds[name], f"i{array.itemsize}"
    ends = [int(x.view(codes)[index]) for x in (output.low, output.high)]
    code = max(ends) + 1 if rng.random() < 0.5 else min(ends) - 1
    array.view(codes)[index] = code
    return {**values, name: array}


def blamed_and_missed(count: int, seed: int) -> tuple[int, int]:
    """Of so many members the ones that are blamed, of as many with one element outside the ones
    that are not found.
    """
    rng = np.random.default_rng(seed)
    blamed = missed = 0
    for k in range(count):
        if k % 50 == 0:
            bounds = open_bounds(seed + k)
        values = member(bounds, rng)
        blamed += not judge(values, bounds=bounds).passes
        wrong = judge(moved_outside(bounds, values, rng), bounds=bounds)
        missed += [o.impossible for o in wrong.outputs if o.impossible] != [1]
    return blamed, missed


def golden_is_named(sketch: Sketch, cause: Planted, seed: int) -> bool:
    """True if a golden with a cause is named as the golden, and the right result passes."""
    inputs = inputs_of(sketch, np.random.default_rng(seed))
    run, right = sketch.bounds(inputs), computed(sketch, inputs, Mistake())
    assert cause.mistake is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = judge(right, computed(sketch, inputs, cause.mistake), bounds=run(), run=run)
    first = next(iter(found.golden_explanations), None)
    named = Verdict(sketch=sketch, cause=cause, changed=0, first=first).is_named
    return found.passes and not found.explanations and named


# --- The table -----------------------------------------------------------------------------------


def _rows(seed: int, sketches: Sequence[Sketch]) -> Iterator[str]:
    for cause in CAUSES:
        verdicts = [planted(sketch, cause, seed) for sketch in sketches]
        counted = [each for each in verdicts if each.counts]
        named = [each for each in counted if each.is_named]
        alone = [each for each in named if each.first and len(each.first.hypotheses) == 1]
        changed = [each.changed for each in counted] or [0]
        yield (
            f"| {cause.name} | {len(counted)} | {len(named)} | {len(alone)} | "
            f"{min(changed):,} to {max(changed):,} |"
        )


def _page(seed: int) -> Iterator[str]:
    revision = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    today = datetime.datetime.now(datetime.timezone.utc).date()
    yield "# Planted causes that judge names first"
    yield ""
    yield f"`python -m benchmarks.planted_causes --write` of {today} at {revision}, seed {seed}:"
    yield f"{len(CAUSES)} causes, each in the results of {len(SKETCHES)} kernels."
    yield ""
    yield "The operands are made so that each cause changes at least 8 elements: with ties, with"
    yield "subnormal FP16 numbers, and without -0. Named first counts causes that share the first"
    yield "place with others; alone are those that do not. The order of sums in the results is the"
    yield "one that this project takes for a device's."
    yield ""
    yield "| cause | kernels where it changes 8 elements | named first | alone | elements changed |"
    yield "|---|---|---|---|---|"
    yield from _rows(seed, SKETCHES)
    blamed, missed = blamed_and_missed(1000, seed)
    goldens = [
        golden_is_named(sketch, cause, seed)
        for cause in CAUSES[:6]
        for sketch in SKETCHES[:2]
        if cause.mistake is not None
    ]
    yield ""
    yield f"- Of 1,000 members of the intervals of a kernel, {blamed} are blamed."
    yield f"- Of 1,000 with one element a code outside, {missed} are missed."
    yield f"- Of {len(goldens)} goldens with a mistake, {sum(goldens)} are named as the golden."


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"write {_PAGE.name}")
    asked = parser.parse_args()
    text = "\n".join((*_page(asked.seed), ""))
    if asked.write:
        _PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
