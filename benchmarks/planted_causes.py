"""Plants 20 causes in the results of 8 kernels, and counts how many `judge` names first.

`python -m benchmarks.planted_causes --write` writes the table. The results are computed in numpy
alone, with one mistake each; see `planted_kernels`. A cause counts where it changes at least 8
elements. It is named first if the words for it are among those of the best explanation, which
explains all that differs and contradicts nothing.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

import pypto_cast as pypto
from benchmarks.planted_kernels import (
    SKETCHES,
    Array,
    Mistake,
    Sketch,
    Values,
    compiled,
    computed,
    from_the_end,
    inputs_of,
    place_at,
)
from pypto_cast.kernel.certainty import Certainty
from pypto_cast.testing.hypotheses import Explanation, explanations
from pypto_cast.testing.judgement import judge

_LEAST_CHANGED: Final = 8
_PAGE: Final = Path(__file__).with_suffix(".md")

# --- Causes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A cause.

    Attributes:
        name: its name.
        hypothesis: the words that judge has to say first; {first} is the kernel's first operation,
            {below} the first tile of its second row of tiles.
        place: the end of these words.
        mistake: in numpy; None: elements of the right result are moved.
        moved: the right result with elements moved.
    """

    name: str
    hypothesis: str
    place: str = ""
    mistake: Mistake | None = None
    moved: Callable[[Sketch, Values], Values] | None = None

    def words(self, sketch: Sketch) -> str:
        """The words that judge has to say of a kernel."""
        words = self.hypothesis.format(first=sketch.first, below=_tiles_across(sketch))
        return f"{words} {self.place}".rstrip()


def _tiles(sketch: Sketch) -> list[tuple[slice, slice]]:
    (rows, cols), (height, width) = sketch.shape, sketch.tile
    return [
        (slice(r, min(r + height, rows)), slice(c, min(c + width, cols)))
        for r in range(0, rows, height)
        for c in range(0, cols, width)
    ]


def _tiles_across(sketch: Sketch) -> int:
    return len(range(0, sketch.shape[1], sketch.tile[1]))


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
    h[tiles[_tiles_across(sketch)]] = right["h"][tiles[0]]
    return {**right, "h": h}


def _unwritten(sketch: Sketch, right: Values) -> Values:
    y = right["y"].copy()
    y[_tiles(sketch)[1]] = 0
    return {**right, "y": y}


def _nan(sketch: Sketch, right: Values) -> Values:
    f = right["f"].copy()
    f[_tiles(sketch)[2]] = np.nan
    return {**right, "f": f}


def _turned(x: Array) -> Array:
    return x.T.reshape(x.shape)


def _interleaved(x: Array) -> Array:
    found, half = np.empty_like(x), (x.shape[1] + 1) // 2
    found[:, 0::2], found[:, 1::2] = x[:, :half], x[:, half:]
    return found


_H, _Y, _Z, _W = (place_at(start) for start in ("g = ", "y[0:]", "z[0:]", "w[0:]"))
_FIRST, _SUM, _Q = place_at("u = "), place_at("r[0:]"), place_at("pypto.cast(q, H)")
CAUSES: Final = (
    Planted(name="ROUND", hypothesis="CAST_ROUND", place=_Y, mistake=Mistake(to_y="ROUND")),
    Planted(name="TRUNC", hypothesis="CAST_TRUNC", place=_W, mistake=Mistake(to_w="TRUNC")),
    Planted(name="FLOOR", hypothesis="CAST_FLOOR", place=_H, mistake=Mistake(to_h="FLOOR")),
    Planted(name="CEIL", hypothesis="CAST_CEIL", place=_Z, mistake=Mistake(to_z="CEIL")),
    Planted(name="ODD", hypothesis="CAST_ODD", place=_H, mistake=Mistake(to_h="ODD")),
    Planted(name="wrap", hypothesis="no saturation", place=_Y, mistake=Mistake(wraps=True)),
    Planted(
        name="double rounding",
        hypothesis="rounding through FP16 first",
        place=_W,
        mistake=Mistake(through_fp16=True),
    ),
    Planted(
        name="lower precision",
        hypothesis="the result of {first} kept in BF16",
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
        mistake=Mistake(sums=from_the_end),
    ),
    Planted(
        name="flush of subnormals",
        hypothesis="subnormal results flushed to zero everywhere",
        mistake=Mistake(flushes=True),
    ),
    Planted(name="INF/NAN mode", hypothesis="inf_nan_mode=False", mistake=Mistake(saturates=True)),
    Planted(
        name="operand transposed",
        hypothesis="other of {first} transposed",
        place=_FIRST,
        mistake=Mistake(moves_b=_turned),
    ),
    Planted(
        name="operand permuted",
        hypothesis="other of {first} with its halves interleaved",
        place=_FIRST,
        mistake=Mistake(moves_b=_interleaved),
    ),
    Planted(
        name="stale tail",
        hypothesis="stale tails of tiles of w, behind the last whole 32 B of a row",
        moved=_stale,
    ),
    Planted(
        name="tile of elsewhere", hypothesis="tile {below} of h holds tile 0", moved=_elsewhere
    ),
    Planted(
        name="core unwritten", hypothesis="1 tile of core 1 of y unwritten, 0", moved=_unwritten
    ),
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
        """It is among those that are named first, and gives all that differs and nothing else."""
        first = self.first
        return (
            first is not None
            and (first.explained, first.contradicted) == (first.of, 0)
            and self.cause.words(self.sketch) in first.hypotheses
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


def _apart(a: Array, b: Array) -> Array:
    codes = f"u{a.itemsize}"
    same: Array = np.ascontiguousarray(a).view(codes) != np.ascontiguousarray(b).view(codes)
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
        found: Certainty = compiled(_OPEN)["kernel"].certainty(x, y, narrow)
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


def _rows(seeds: Sequence[int]) -> Iterator[str]:
    for cause in CAUSES:
        verdicts = [planted(sketch, cause, seed) for seed in seeds for sketch in SKETCHES]
        counted = [each for each in verdicts if each.counts]
        named = [each for each in counted if each.is_named]
        alone = [each for each in named if each.first and len(each.first.hypotheses) == 1]
        changed = [each.changed for each in counted] or [0]
        yield (
            f"| {cause.name} | {len(counted)} | {len(named)} | {len(alone)} | "
            f"{min(changed):,} to {max(changed):,} |"
        )


def _page(seeds: Sequence[int]) -> Iterator[str]:
    revision = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    today = datetime.datetime.now(datetime.timezone.utc).date()
    said = " ".join(map(str, seeds))
    yield "# Planted causes that judge names first"
    yield ""
    yield f"`python -m benchmarks.planted_causes --write --seeds {said}` of {today} at {revision}:"
    yield f"{len(CAUSES)} causes, each in the results of {len(SKETCHES)} kernels, for each seed."
    yield ""
    yield "The operands are made so that each cause changes at least 8 elements: with ties, with"
    yield "subnormal FP16 numbers, and without -0. The first explanation has to say the words for"
    yield "the cause, its place and its tile, to explain all that differs and contradict nothing."
    shared = "Named first counts causes that share the first place with others"
    yield f"{shared}, alone those that do not."
    yield "The order of sums in the results is the one that this project takes for a device's."
    yield ""
    yield "| cause | results where it changes 8 elements | named first | alone | elements changed |"
    yield "|---|---|---|---|---|"
    yield from _rows(seeds)
    blamed, missed = blamed_and_missed(1000, seeds[0])
    goldens = [
        golden_is_named(sketch, cause, seed)
        for seed in seeds
        for cause in CAUSES
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
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--write", action="store_true", help=f"write {_PAGE.name}")
    asked = parser.parse_args()
    text = "\n".join((*_page(asked.seeds), ""))
    if asked.write:
        _PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
