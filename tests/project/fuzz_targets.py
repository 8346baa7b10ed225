"""The targets of `fuzz.py`: the command, the planner, the parsers and kernels, on hostile input.

A target passes if the project answers, or refuses in its own words. Every target is a test of
hypothesis, whose choices the fuzzer makes.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pypto_cast as pypto
from pypto_cast.cast.cast_plan import plan_cast
from pypto_cast.checkpoints.stored import read_header
from pypto_cast.cli.main import main
from pypto_cast.dialects.onnx.types import tensor_type
from pypto_cast.dialects.openvino.element_types import known_name
from pypto_cast.dialects.paddle.cast import dtype_name
from pypto_cast.dtypes import names
from pypto_cast.report.text_format import tile_named
from pypto_cast.tensors.array_files import open_npy
from pypto_cast.tuning.sweep.config import read_config
from simulator.numbers import literals
from simulator.numbers.formats import FORMATS
from tiling.cost_file import read_cost_set

ROOMS = ("tiling", "simulator", "ascend_kernels", "pypto_cast")
# Of the checkout, or of the installation where the script is run beside one.
FOLDERS = tuple(os.path.dirname(str(import_module(room).__file__)) + os.sep for room in ROOMS)

Target = Callable[..., Any]


def is_own(error: BaseException) -> bool:
    """True if an error is the project's: of its classes, or raised by its statements."""
    if type(error).__module__.split(".")[0] in ROOMS:
        return True
    *_, last = traceback.extract_tb(error.__traceback__)
    raised = last.filename.startswith(FOLDERS) and (last.line or "").startswith("raise ")
    return raised and isinstance(error, (ValueError, TypeError, RuntimeError)) and bool(str(error))


@contextlib.contextmanager
def refused_in_own_words(*others: type[Exception]) -> Iterator[None]:
    try:
        yield
    except others:
        pass
    except Exception as error:
        if not is_own(error):
            raise


def fuzzed(**drawn: st.SearchStrategy[Any]) -> Callable[[Target], Target]:
    """A test of hypothesis that keeps no examples of its own."""
    quiet = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    return lambda target: quiet(given(**drawn)(target))


EXTENT = st.integers(-2, 80) | st.sampled_from([1 << 15, 1 << 31, 1 << 62, True, 1.5, None, "8"])
DTYPE = st.sampled_from(list(pypto.DataType))
MODE = st.sampled_from(list(pypto.CastMode))
SATMODE = st.sampled_from(list(pypto.SaturationMode))
NAME = st.sampled_from(sorted(names.SPELLINGS)) | st.text(max_size=12)

# --- Parsers ----------------------------------------------------------------------------------

NUMBER = st.text("0123456789+-.eExXpPabfnityco_: \n", max_size=24) | st.text(max_size=8)


@fuzzed(text=NUMBER, code=NUMBER, fmt=st.sampled_from(list(FORMATS.values())))
def numbers(text: str, code: str, fmt: Any) -> None:
    with refused_in_own_words():
        number = literals.number_named(text)
        literals.short_text(str(number))
        literals.number_of(literals.nearest_code(number, fmt), fmt)
    with refused_in_own_words():
        literals.bits_text(literals.code_named(code, fmt), fmt)


@fuzzed(name=NAME, prefix=st.sampled_from(["", "DT_", "torch.", "np.", "tensor(", "<"]))
def spellings(name: str, prefix: str) -> None:
    text = prefix + name
    for look_up in (
        *(names.dtype_named, names.mode_named, names.satmode_named, names.format_named),
        *(tensor_type, known_name, dtype_name, tile_named),
    ):
        with refused_in_own_words():
            look_up(text)


def _mutated(draw: st.DrawFn, whole: bytes) -> bytes:
    """A few bytes replaced, and perhaps the end cut off."""
    held = bytearray(whole)
    for _ in range(draw(st.integers(0, 4))):
        held[draw(st.integers(0, len(held) - 1))] = draw(st.integers(0, 255))
    return bytes(held[: draw(st.integers(0, len(held)))] if draw(st.booleans()) else held)


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(6, dtype=np.float32).reshape(2, 3))
    return file.getvalue()


def _safetensors() -> bytes:
    header = b'{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"__metadata__":{"a":"b"}}'
    return len(header).to_bytes(8, "little") + header + bytes(24)


SWEEP = b'shapes = [[8, 16]]\npairs = [["fp32", "fp16"]]\nmodes = "all"\ntop = 2\nmax_tiles = 9\n'
COSTS = b'name = "mine"\nbase = "pto-isa-910b3"\nsource = "here"\n'
READERS: Sequence[tuple[str, bytes, Callable[[Path], object]]] = (
    ("x.npy", _npy(), open_npy),
    ("x.safetensors", _safetensors(), read_header),
    ("sweep.toml", SWEEP, read_config),
    ("costs.toml", COSTS, read_cost_set),
)


@fuzzed(data=st.data(), reader=st.sampled_from(READERS))
def files(data: st.DataObject, reader: tuple[str, bytes, Callable[[Path], object]]) -> None:
    name, whole, read = reader
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data.draw(st.composite(_mutated)(whole)) if whole else b"")
        with refused_in_own_words(OSError):
            read(path)


# --- The planner ------------------------------------------------------------------------------


@fuzzed(
    shape=st.lists(EXTENT, max_size=5).map(tuple),
    tile=st.lists(EXTENT, max_size=5).map(tuple),
    src=DTYPE,
    dst=DTYPE,
    mode=MODE,
    satmode=SATMODE,
    strict=st.booleans(),
)
def planner(
    shape: Any, tile: Any, src: Any, dst: Any, mode: Any, satmode: Any, strict: bool
) -> None:
    with refused_in_own_words(), pypto.options(vec_tile_shapes=tile, strict=strict):
        pypto.Tensor(shape, src)
        cast = plan_cast(shape, src, dst, mode, satmode)
        plan = cast.tiles
        assert str(plan)
        assert all(1 <= side <= extent for side, extent in zip(plan.tile_shape, shape, strict=True))


# --- Kernels ----------------------------------------------------------------------------------

SIDE = st.integers(-1, 40)
PAIR = st.tuples(SIDE, SIDE)


@fuzzed(
    x=hnp.arrays(np.float32, st.tuples(st.integers(1, 24), st.sampled_from([8, 16]))),
    out_shape=st.tuples(st.integers(1, 24), st.sampled_from([8, 16])),
    dst=DTYPE,
    out_dtype=st.sampled_from([np.float16, np.int32, np.float32, "bfloat16", np.int8]),
    tile=PAIR,
    view=PAIR,
    offset=PAIR,
    valid=st.none() | PAIR,
    steps=st.integers(-1, 4),
    place=PAIR,
    mode=MODE,
)
def kernels(
    x: Any, out_shape: Any, dst: Any, out_dtype: Any, tile: Any, view: Any, offset: Any,
    valid: Any, steps: int, place: Any, mode: Any,
) -> None:  # fmt: skip
    def body(source: pypto.Tensor, target: pypto.Tensor) -> None:
        pypto.set_vec_tile_shapes(*tile)
        for index in pypto.loop(steps, name="steps", idx_name="index"):
            row = offset[0] + index * view[0]
            shape = None if valid is None else list(valid)
            part = pypto.view(source, list(view), [row, offset[1]], valid_shape=shape)
            cast = pypto.cast(part, dst, mode=mode)
            pypto.assemble(cast, [place[0] + index * view[0], place[1]], target)

    out = np.zeros(out_shape, out_dtype)
    before = x.copy()
    with refused_in_own_words():
        try:
            pypto.jit(body)(pypto.from_numpy(x), pypto.from_numpy(out))
        except BaseException:
            assert not out.view(np.uint8).any(), "a kernel that raised has written"
            raise
    np.testing.assert_array_equal(before.view(np.uint32), x.view(np.uint32))


# --- The command ------------------------------------------------------------------------------

ARGUMENT = (
    NAME | NUMBER | st.sampled_from(["x.npy", "x.safetensors", "sweep.toml", "8,16", "0-3", "."])
)
COMMANDS = ("cast", "checkpoint", "compare", "explain", "matrix", "trace", "tune", "sweep")
FLAGS = (
    *("--to", "--from", "--mode", "--satmode", "--tile", "--chip", "--output", "--force", "--json"),
    *("--strict", "--text", "--cores", "--cost-set", "--shape", "--top", "--max-tiles", "--help"),
    *("--all-values", "--between", "--no-inf-nan"),
)


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@fuzzed(
    name=st.sampled_from(COMMANDS) | st.text(max_size=5),
    first=ARGUMENT,
    options=st.lists(st.tuples(st.sampled_from(FLAGS), st.none() | ARGUMENT), max_size=5),
    pair=st.none() | st.tuples(NAME, NAME),
)
def command(name: str, first: str, options: Any, pair: Any) -> None:
    """An answer with exit code 0 or 1, or 2 and one line that is expected."""
    words = [name, first, *(word for option in options for word in option if word is not None)]
    if pair is not None:
        words += ["--from", pair[0], "--to", pair[1]]
    out, err = io.StringIO(), io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        _inside(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        for file, whole, _ in READERS:
            Path(file).write_bytes(whole)
        code = main(words)
    said = err.getvalue()
    assert code in (0, 1, 2), words
    assert "Traceback" not in said, words
    if code == 2:
        last = said.splitlines()[-1]
        assert last.startswith("pypto-cast: error: "), (words, last)
        assert "error: unexpected " not in last, (words, last)


TARGETS: dict[str, Target] = {
    target.__name__: target for target in (numbers, spellings, files, planner, kernels, command)
}

warnings.simplefilter("ignore")
