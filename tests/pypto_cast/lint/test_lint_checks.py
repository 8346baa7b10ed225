"""Each check: sources that it finds something in, and right neighbours of them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from pypto_cast.lint.checks import CHECKS
from pypto_cast.lint.cpp_source import uses_in_cpp
from pypto_cast.lint.dsl_casts import DSL_CASTS, others_round
from pypto_cast.lint.lint_settings import LintSettings
from pypto_cast.lint.linting import lint
from pypto_cast.lint.tracked import Cast, Unnamed
from simulator.numbers.rounding import RoundMode


def found(
    folder: Path, text: str, suffix: str = ".py", settings: LintSettings | None = None
) -> list[str]:
    """The line and code of each finding in a source."""
    path = folder / f"source{suffix}"
    path.write_text(textwrap.dedent(text))
    return [f"{each.line} {each.code}" for each in lint([path], settings)]


def in_kernel(body: str, x: str = "pypto.Tensor([64, 512], pypto.DT_FP32)") -> str:
    """A kernel of upstream's over x, whose body begins on line 5."""
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"import pypto\n\n@pypto.frontend.jit\ndef kernel(x: {x}, y: {x}):\n{lines}\n"


HALF = "pypto.Tensor([64, 512], pypto.DT_FP16)"
LONG_HALF = "pypto.Tensor([64, 4096], pypto.DT_FP16)"

FOUND = {
    "mode": (in_kernel("y[:] = pypto.cast(x, pypto.DT_INT32)"), ["5 PC101"]),
    "mode-none": (
        in_kernel("y[:] = pypto.cast(x, pypto.DT_INT32, pypto.CastMode.CAST_NONE)"),
        ["5 PC101"],
    ),
    "twice": (
        in_kernel(
            """
            h = pypto.cast(x, pypto.DT_FP16)
            y[:] = pypto.cast(h, pypto.DT_INT32, pypto.CAST_RINT)
            """
        ),
        ["6 PC102"],
    ),
    "twice-through-a-view-and-fp32": (
        in_kernel(
            """
            h = pypto.reshape(pypto.cast(x, pypto.DT_FP16, mode=pypto.CAST_CEIL), [512, 64])
            wide = pypto.cast(h, pypto.DT_FP32)
            y[:] = pypto.cast(wide, pypto.DT_INT32, pypto.CAST_TRUNC)
            """
        ),
        ["7 PC102"],
    ),
    "twice-to-bf16": (
        in_kernel("y[:] = pypto.cast(pypto.cast(x, pypto.DT_FP16), pypto.DT_BF16)"),
        ["5 PC102"],
    ),
    "saturation": (
        in_kernel("y[:] = pypto.cast(x, pypto.DT_INT8, pypto.CAST_TRUNC)", HALF),
        ["5 PC103"],
    ),
    "saturation-of-unknown-source": (
        "import pypto_cast as pypto\n\ndef f(x):\n    pypto.cast(x, pypto.DT_INT8, mode=1)\n",
        ["4 PC103"],
    ),
    "compared-after-wrap": (
        in_kernel(
            """
            off = pypto.SaturationMode.OFF
            n = pypto.cast(x, pypto.DT_INT8, pypto.CAST_RINT, satmode=off)
            y[:] = pypto.eq(n, n)
            """,
            HALF,
        ),
        ["7 PC104"],
    ),
    "golden-compared-after-wrap": (
        "import torch\ndef check(a, b):\n    assert torch.equal(a.to(torch.int8), b)\n",
        ["3 PC104"],
    ),
    "golden-of-numpy": (
        "import numpy as np\ndef check(a, b):\n    c = a.astype(np.int8)\n    assert all(c == b)\n",
        ["4 PC104"],
    ),
    "half-sum": (in_kernel("y[:] = pypto.sum(x, -1, keepdim=True)", HALF), ["5 PC201"]),
    "half-sum-of-a-method": (in_kernel("y[:] = x.sum(dim=-1)", HALF), ["5 PC201"]),
    "dynamic": (
        in_kernel("y[:] = pypto.exp(x)", "pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32)"),
        ["5 PC301"],
    ),
    "dynamic-operator-once": (
        in_kernel("z = x + 1.0\ny[:] = x * z", "pypto.Tensor[[pypto.DYNAMIC, 32], pypto.DT_FP32]"),
        ["5 PC301"],
    ),
    "tile": (
        in_kernel(
            """
            pypto.set_vec_tile_shapes(65, 512)
            y[:] = pypto.cast(x, pypto.DT_BF16)
            """,
            "pypto.Tensor([128, 1024], pypto.DT_FP32)",
        ),
        ["6 PC302"],
    ),
    "tile-of-an-operation": (
        in_kernel(
            """
            pypto.set_vec_tile_shapes(64, 1024)
            y[:] = pypto.exp(x)
            """,
            "pypto.Tensor([128, 1024], pypto.DT_FP32)",
        ),
        ["6 PC302"],
    ),
    "tile-with-too-few-entries": (
        in_kernel("pypto.set_vec_tile_shapes(64)\ny[:] = pypto.exp(x)"),
        ["6 PC302"],
    ),
    "triton": (
        """
        import triton.language as tl
        def kernel(p, q):
            x = tl.load(p).to(tl.float32)
            tl.store(q, (x * 127.0).to(tl.int8))
        """,
        ["5 PC101", "5 PC103"],
    ),
    "triton-ascend": (
        """
        import triton.language as tl
        def kernel(x):
            n = tl.math.rint(tl.exp(x.to(tl.float16)))
            return tl.cast(n, tl.int8)
        """,
        ["5 PC103"],
    ),
    "triton-rtz-twice": (
        """
        import triton.language as tl
        def kernel(x):
            h = x.to(tl.float32).to(tl.float16, fp_downcast_rounding="rtz")
            return h.to(tl.bfloat16)
        """,
        ["5 PC102"],
    ),
    "tilelang-ascend": (
        """
        import tilelang.language as T
        def kernel(A: T.Tensor((8, 8), "float16"), B: T.Tensor((8, 8), "int8")):
            a = T.alloc_ub((8, 8), "float16")
            b = T.alloc_ub((8, 8), "int8")
            T.copy(A, a)
            T.tile.cast(b, a, mode="CAST_NONE", count=64)
            T.copy(b, B)
        """,
        ["7 PC101"],
    ),
    "tilelang": (
        """
        import tilelang.language as T
        def kernel(A: T.Tensor((8,), "float16"), B: T.Tensor((8,), "int8")):
            B[0] = T.cast(A[0], "int8")
        """,
        ["4 PC101", "4 PC103"],
    ),
    "tilelang-copy": (
        """
        import tilelang.language as T
        def kernel(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "int32")):
            T.copy(A, B)
        """,
        ["4 PC101"],
    ),
    "tilelang-mlir": (
        """
        import tilelang.language as T
        a = T.alloc_ub((8,), "float32")
        h = T.alloc_ub((8,), "float16")
        n = T.alloc_ub((8,), "int32")
        T.npuir_cast(a, h)
        T.npuir_cast(h, n, round_mode="rint")
        """,
        ["7 PC102"],
    ),
    "tile-of-a-dynamic-view": (
        in_kernel(
            """
            pypto.set_vec_tile_shapes(64, 4096)
            for k in pypto.loop(x.shape[0]):
                part = x[k : k + 64, :]
                y[k:, 0:] = pypto.exp(part)
                z = pypto.exp(x[0:16, :])
            """,
            "pypto.Tensor([pypto.DYNAMIC, 4096], pypto.DT_FP16)",
        ),
        ["8 PC302"],
    ),
    "tile-of-an-open-argument": (
        in_kernel(
            """
            TILE = (64, 4096)
            pypto.set_vec_tile_shapes(*TILE)
            y[:] = x + 1
            """,
            "pypto.Tensor((), pypto.DT_FP16)",
        ),
        ["7 PC302"],
    ),
    "tile-of-a-product": (
        in_kernel("pypto.set_vec_tile_shapes(64, 4096)\ny[:] = x * 2", LONG_HALF),
        ["6 PC302"],
    ),
    "tilelang-casts": (
        """\
        import tilelang
        import tilelang.language as T

        @tilelang.jit
        def build(n, accumulated="float", narrow=T.int8):
            to = "int8"

            @T.prim_func
            def main(A: T.Tensor((n,), accumulated), B: T.Tensor((n,), narrow)):
                B[0] = T.cast(A[0], to)
                B[1] = T.Cast(to, A[1])
                B[2] = T.Cast(dtype="int8", value=A[2])
                B[3] = A[3].astype(narrow)
                B[4] = A[4].astype("int8")
                B[5] = T.int8(A[5])
                B[6] = T.cast(T.cast(A[6], "bfloat16"), "float8_e4m3")
            return main
        """,
        [*(f"{line} {code}" for line in range(10, 16) for code in ("PC101", "PC103")), "16 PC102"],
    ),
    "triton-casts": (
        """\
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(p, to: tl.constexpr = tl.int8):
            x = tl.load(p).to(tl.float32)
            narrow = tl.int8
            tl.store(p, x.to(to))
            tl.store(p, x.to(dtype=narrow))
            tl.store(p, tl.cast(x, narrow))
            tl.store(p, x.to(tl.bfloat16).to(tl.float8e5))
        """,
        [*(f"{line} {code}" for line in (8, 9, 10) for code in ("PC101", "PC103")), "11 PC102"],
    ),
}

QUIET = {
    "named-mode": in_kernel("y[:] = pypto.cast(x, pypto.DT_INT32, mode=pypto.CAST_TRUNC)"),
    "mode-by-variable": in_kernel("m = modes[0]\ny[:] = pypto.cast(x, pypto.DT_INT32, m)"),
    "integers-in-floats": in_kernel("y[:] = pypto.cast(pypto.round(x), pypto.DT_INT32)"),
    "quantising-idiom": in_kernel(
        """
        n = pypto.cast(x, pypto.DT_INT32, pypto.CAST_RINT)
        h = pypto.cast(n, pypto.DT_FP16, pypto.CAST_ROUND)
        on = pypto.SaturationMode.ON
        y[:] = pypto.cast(h, pypto.DT_INT8, pypto.CAST_TRUNC, satmode=on)
        """
    ),
    "integers-through-fp16": in_kernel(
        """
        h = pypto.cast(x, pypto.DT_FP16)
        on = pypto.SaturationMode.ON
        y[:] = pypto.cast(h, pypto.DT_INT8, pypto.CAST_RINT, satmode=on)
        """,
        "pypto.Tensor([64, 512], pypto.DT_INT16)",
    ),
    "odd-first": in_kernel(
        """
        h = pypto.cast(x, pypto.DT_FP16, pypto.CAST_ODD)
        y[:] = pypto.cast(h, pypto.DT_INT32, pypto.CAST_RINT)
        """
    ),
    "truncated-twice": in_kernel(
        """
        h = pypto.cast(x, pypto.DT_FP16, pypto.CAST_TRUNC)
        y[:] = pypto.cast(h, pypto.DT_INT32, pypto.CAST_TRUNC)
        """
    ),
    "computed-between": in_kernel(
        """
        h = pypto.cast(x, pypto.DT_BF16)
        y[:] = pypto.cast(h + 1.0, pypto.DT_INT32, pypto.CAST_RINT)
        """
    ),
    "branches-differ": in_kernel(
        """
        if flag:
            h = pypto.cast(x, pypto.DT_FP16)
        else:
            h = pypto.cast(x, pypto.DT_INT32, pypto.CAST_RINT)
        y[:] = pypto.cast(h, pypto.DT_INT32)
        """
    ),
    "set-by-a-loop": in_kernel(
        """
        h = x
        for _ in pypto.loop(3):
            y[:] = pypto.cast(h, pypto.DT_INT32)
            h = pypto.cast(y, pypto.DT_INT32, pypto.CAST_RINT)
        """
    ),
    "clamped": in_kernel(
        "y[:] = pypto.cast(pypto.clip(x, -128.0, 127.0), pypto.DT_INT8, pypto.CAST_RINT)", HALF
    ),
    "clamped-in-two-steps": in_kernel(
        """
        z = pypto.minimum(pypto.maximum(x, -128.0), 127.0)
        y[:] = pypto.cast(z, pypto.DT_INT8, pypto.CAST_RINT)
        """,
        HALF,
    ),
    "golden-clamped": (
        "import torch\ndef check(a, b):\n"
        "    assert torch.equal(torch.round(a).clamp(-128, 127).to(torch.int8), b)\n"
    ),
    "sum-of-few": in_kernel("y[:] = pypto.sum(x, 0)", HALF),
    "sum-in-fp32": in_kernel("y[:] = pypto.sum(pypto.cast(x, pypto.DT_FP32), -1)", HALF),
    "sum-of-unknown-shape": in_kernel("y[:] = x.sum(-1)", "pypto.Tensor([], pypto.DT_FP16)"),
    "dynamic-in-a-loop": in_kernel(
        """
        for k in pypto.loop(x.shape[0]):
            part = pypto.view(x, [1, 32], [k, 0])
            y[k:, 0:] = pypto.exp(part)
        """,
        "pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32)",
    ),
    "dynamic-part": in_kernel(
        "y[:] = pypto.exp(x[0:8])", "pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32)"
    ),
    "dynamic-outside-a-kernel": (
        "import pypto\ndef f(x: pypto.Tensor([pypto.DYNAMIC], pypto.DT_FP32)):\n    return x + 1\n"
    ),
    "tile-clipped-to-the-tensor": in_kernel(
        "pypto.set_vec_tile_shapes(1024, 1024)\ny[:] = pypto.cast(x, pypto.DT_BF16)",
        "pypto.Tensor([8, 1024], pypto.DT_FP32)",
    ),
    "tile-of-variables": in_kernel(
        "pypto.set_vec_tile_shapes(rows, 4096)\ny[:] = pypto.cast(x, pypto.DT_BF16)"
    ),
    "tile-set-elsewhere": in_kernel(
        "pypto.set_vec_tile_shapes(64)\nset_tiles(64, 64)\ny[:] = pypto.exp(x)"
    ),
    "tile-of-an-index": in_kernel(
        "pypto.set_vec_tile_shapes(64, 4096)\ny[0:1] = pypto.exp(x[0, :])", LONG_HALF
    ),
    "framework-default-outside-a-language": (
        "import torch\ndef golden(a, to='int8'):\n    return torch.zeros([4]).to(to)\n"
    ),
    "tilelang-default-that-is-given-otherwise": (
        "import tilelang.language as T\ndef f(a, to='int8'):\n    to = a.to\n"
        "    return T.Cast(to, T.float32(1))\n"
    ),
    "triton-rounds-first": (
        "import triton.language as tl\ndef k(x):\n"
        "    return tl.clamp(tl.floor(x.to(tl.float32)), -128.0, 127.0).to(tl.int8)\n"
    ),
    "triton-mask": "import triton.language as tl\ndef k(x):\n    return (x > 0).to(tl.int8)\n",
    "triton-unknown": "import triton.language as tl\ndef k(p):\n    tl.load(p).to(tl.int8)\n",
}


@pytest.mark.parametrize("name", FOUND)
def test_what_a_check_finds(name: str, tmp_path: Path) -> None:
    text, expected = FOUND[name]
    assert found(tmp_path, text) == expected


@pytest.mark.parametrize("name", QUIET)
def test_right_neighbours_are_left_alone(name: str, tmp_path: Path) -> None:
    assert found(tmp_path, QUIET[name]) == []


def test_every_check_is_tripped() -> None:
    assert {line.split()[1] for _, lines in FOUND.values() for line in lines} == set(CHECKS)


CPP = """
using namespace AscendC;
class Quantise {
    __aicore__ inline void Compute() {
        LocalTensor<float> x = queue.DeQue<float>();
        auto h = buffer.Get<half>();
        Cast(h, x, RoundMode::CAST_RINT, count);  // Cast(n, x, RoundMode::CAST_NONE, count);
        LocalTensor<int8_t> n = out.AllocTensor<int8_t>();
        Cast(n, h[0], AscendC::RoundMode::CAST_TRUNC, count);
        Cast(m, x, RoundMode::CAST_NONE, count);
        Adds(h, h, half(1), count);
        Cast(n, h, mode, count);
    }
    LocalTensor<int32_t> m;
};
"""
PTO = """
using SrcT = pto::Tile<TileType::Vec, float, 16, 16>;
using DstT = pto::Tile<TileType::Vec, int32_t, 16, 16>;
void f() { SrcT src; DstT dst;
  TCVT(dst, src, RoundMode::CAST_NONE);
  TCVT(dst, src, RoundMode::CAST_RINT);
}
"""


def test_casts_of_ascendc(tmp_path: Path) -> None:
    assert found(tmp_path, CPP, ".cpp") == ["9 PC102", "10 PC101"]
    assert found(tmp_path, PTO, ".h") == ["5 PC101"]


def test_a_source_that_is_cut_off_is_read_to_its_end(tmp_path: Path) -> None:
    for end in range(0, len(CPP), 7):
        found(tmp_path, CPP[:end], ".cpp")


def test_the_threshold_of_sums(tmp_path: Path) -> None:
    text = in_kernel("y[:] = x.sum(-1)", HALF)
    assert found(tmp_path, text, settings=LintSettings(many_elems=512)) == ["5 PC201"]
    assert found(tmp_path, text, settings=LintSettings(many_elems=513)) == []


def test_the_defaults_of_the_languages() -> None:
    trunc = {row.name for row in DSL_CASTS.values() if row.to_integer is RoundMode.TRUNC}
    assert {"pypto", "pypto_cast", "triton", "pto-isa"} <= trunc
    assert all(row.to_float is RoundMode.RINT for row in DSL_CASTS.values())
    assert all(row.origin.text for row in DSL_CASTS.values())
    assert next(row.name for row in others_round(DSL_CASTS["pypto"])) == "AscendC"


REGISTERS = """\
constexpr AscendC::MicroAPI::CastTrait NAMED = {
    AscendC::MicroAPI::RegLayout::ZERO, AscendC::MicroAPI::SatMode::NO_SAT,
    AscendC::MicroAPI::MaskMergeMode::ZEROING, AscendC::RoundMode::CAST_RINT};
static constexpr MicroAPI::CastTrait OPEN{MicroAPI::RegLayout::ZERO,
    MicroAPI::SatMode::UNKNOWN, MicroAPI::MaskMergeMode::ZEROING, RoundMode::UNKNOWN};
AscendC::MicroAPI::Cast<half, float, NAMED>(h, x, mask);
AscendC::MicroAPI::Cast<int32_t, half, NAMED>(n, h, mask);
MicroAPI::Cast<int32_t, float, OPEN>(n, x, mask);
MicroAPI::Cast<int32_t, T, OPEN>(n, y, mask);
MicroAPI::Cast<int32_t, float, ELSEWHERE>(n, x, mask);
"""


def test_the_traits_of_casts_of_registers(tmp_path: Path) -> None:
    assert found(tmp_path, REGISTERS, ".cpp") == ["7 PC102", "8 PC101"]


def test_a_trait_that_is_declared_twice(tmp_path: Path) -> None:
    """The one before a cast counts; behind it only one that all agree on."""
    trait = "CastTrait T = {RegLayout::ZERO, RoundMode::CAST_%s};\n"
    call = "Cast<int32_t, float, T>(n, x, mask);\n"

    def modes(text: str) -> list[object]:
        return [use.mode for use in uses_in_cpp(text) if isinstance(use, Cast)]

    floor, ceil = trait % "FLOOR", trait % "CEIL"
    assert modes(floor + call + ceil + call) == [RoundMode.FLOOR, RoundMode.CEIL]
    assert modes(call + floor + ceil) == [Unnamed.VARIABLE]
    assert modes(call + floor + floor) == [RoundMode.FLOOR]


HELPERS = """\
import pypto

@pypto.frontend.jit
def kernel(x: pypto.Tensor([64, 512], pypto.DT_FP32), y: pypto.Tensor([64, 512], pypto.DT_INT8)):
    h = to_half(x)
    y[:] = to_byte(h)
    s = added(h, keep=True)
    s = added(x)
    {more}

def to_half(x):
    return pypto.cast(x, pypto.DT_FP16, pypto.CAST_RINT)

def to_byte(h):
    return pypto.cast(h, pypto.DT_INT8, pypto.CAST_RINT, satmode=pypto.SaturationMode.ON)

def added(h, keep=False):
    return pypto.sum(h, -1, keep)

def set_tiles():
    pypto.set_vec_tile_shapes(64)

def itself(x):
    return itself(x + 1)
"""


@pytest.mark.parametrize(
    ("more", "codes"),
    [
        ("pass", []),
        ("set_tiles(); z = pypto.exp(x)", ["9 PC302"]),
        ("z = itself(x)", []),
        ("z = added(*[h])", []),
        ("z = added(h, nothing=h)", []),
        ("z = pypto.cast(to_half(x=x), pypto.DT_INT32, pypto.CAST_RINT)", ["9 PC102"]),
    ],
)
def test_helpers_of_a_file_are_read_by_their_calls(
    more: str, codes: list[str], tmp_path: Path
) -> None:
    """Operands and results are known in each call; a finding in them is told once."""
    always = ["15 PC102", "18 PC201"]
    assert found(tmp_path, HELPERS.format(more=more)) == [*codes, *always]


def test_helpers_that_call_the_next_one_twice(tmp_path: Path) -> None:
    last = 60
    text = "".join(f"def f{k}(x):\n    return f{k + 1}(f{k + 1}(x))\n" for k in range(last))
    text += f"def f{last}(x):\n    return x\n"
    text += "import pypto\nx = pypto.zeros([8, 512], pypto.DT_FP16)\ny = pypto.sum(f0(x), -1)\n"
    assert found(tmp_path, text) == []
