"""Casts in single calls, and what a machine gives where kernels miss a goal.

Tables of `python -m benchmarks.kernel_speed`, which has the goals. Needs torch.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final
from unittest import mock

import numpy as np
import torch

import pypto_cast as pypto
from benchmarks.measuring import Row, best_seconds
from benchmarks.whole_kernels import softmax, swiglu
from simulator.arithmetic.native.node_program import Program
from simulator.numbers import result_memory
from simulator.numbers.convert import INF_NAN, Conversion
from simulator.numbers.formats import FP16, FP32
from simulator.numbers.native.library import native
from simulator.numbers.rounding import RoundMode

_SIDE: Final = 4096
_D: Final = pypto.STATIC
_Fp32 = pypto.Tensor([_D, _D], pypto.DT_FP32)
_Bf16 = pypto.Tensor([_D, _D], pypto.DT_BF16)
_Heads = pypto.Tensor([_D, _D, _D], pypto.DT_FP32)


@pypto.jit
def add(x: _Fp32, y: _Fp32, out: _Fp32) -> None:
    """A sum."""
    out[:] = pypto.add(x, y)


@pypto.jit
def exponential(x: _Fp32, out: _Fp32) -> None:
    """The powers of a softmax alone."""
    out[:] = pypto.exp(x)


@pypto.jit
def rms_norm(x: _Fp32, out: _Fp32) -> None:
    """Along rows."""
    out[:] = pypto.rms_norm(x)


@pypto.jit
def softmax_by_rows(x: _Fp32, out: _Fp32) -> None:
    """A row an iteration, in its steps."""
    for i in pypto.loop(x.shape[0]):
        row = pypto.view(x, [1, x.shape[1]], [i, 0])
        powers = pypto.exp(pypto.sub(row, pypto.amax(row, -1, True)))
        pypto.assemble(pypto.div(powers, pypto.sum(powers, -1, True)), [i, 0], out)


@pypto.jit
def whole_by_rows(x: _Fp32, out: _Fp32) -> None:
    """The same by one function."""
    for i in pypto.loop(x.shape[0]):
        row = pypto.view(x, [1, x.shape[1]], [i, 0])
        pypto.assemble(pypto.softmax(row, -1), [i, 0], out)


@pypto.jit
def product(a: _Bf16, b: _Bf16, out: _Fp32) -> None:
    """A product of BF16 matrices in FP32."""
    out[:] = pypto.matmul(a, b, pypto.DT_FP32)


@pypto.jit
def attention(q: _Heads, k: _Heads, v: _Heads, out: _Heads) -> None:
    """Flash attention: blocks of keys, the maximum and the sum are carried along."""
    length, block = int(k.shape[1]), 512
    most = total = found = None
    for start in range(0, length, block):
        keys, values = k[:, start : start + block], v[:, start : start + block]
        scores = pypto.mul(pypto.matmul(q, keys, pypto.DT_FP32, b_trans=True), 128**-0.5)
        peak = pypto.amax(scores, -1, True)
        if most is not None:
            peak = pypto.maximum(most, peak)
        powers = pypto.exp(pypto.sub(scores, peak))
        sums, part = pypto.sum(powers, -1, True), pypto.matmul(powers, values, pypto.DT_FP32)
        if most is not None:
            shrink = pypto.exp(pypto.sub(most, peak))
            sums = pypto.add(pypto.mul(total, shrink), sums)
            part = pypto.add(pypto.mul(found, shrink), part)
        most, total, found = peak, sums, part
    out[:] = pypto.div(found, total)


def torch_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor) -> None:
    """The peer of `attention`, in the same steps."""
    most = total = found = None
    for start in range(0, k.shape[1], 512):
        keys, values = k[:, start : start + 512], v[:, start : start + 512]
        scores = (q @ keys.transpose(1, 2)) * 128**-0.5
        peak = scores.amax(-1, keepdim=True)
        if most is not None:
            peak = torch.maximum(most, peak)
        powers = torch.exp(scores - peak)
        sums, part = powers.sum(-1, keepdim=True), powers @ values
        if most is not None:
            shrink = torch.exp(most - peak)
            sums, part = total * shrink + sums, found * shrink + part
        most, total, found = peak, sums, part
    out[:] = found / total


def _numbers(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def casts(rounds: int) -> Iterator[Row]:
    """Casts in single calls met in turn: the ratio of a peer's processor time to theirs."""
    x = _numbers(2048, _SIDE)
    large = np.zeros((16 << 10, _SIDE), np.float32)
    short = np.arange(8 << 20).astype(np.int16).reshape(x.shape)
    tensor, integers = torch.from_numpy(x), torch.from_numpy(short)
    half = torch.empty(x.shape, dtype=torch.float16)
    narrow = torch.empty(x.shape, dtype=torch.int16)
    given = {
        name: pypto.from_torch(torch.from_numpy(each))
        for name, each in (("x", x), ("large", large), ("short", short))
    }
    to_half = partial(pypto.cast, dtype=pypto.DT_FP16, mode=pypto.CAST_RINT)
    # The bytes that a cast from FP32 to FP16 of 256 MB reads and writes, half each.
    moved = large[: 12 << 10]
    torch.set_num_threads(1)
    pypto.set_vec_tile_shapes(64, 512)
    room = np.empty_like(moved)
    rows: list[tuple[str, str, Callable[[], object], Callable[[], object]]] = [
        ("FP32 to FP16", "torch: 1.0", lambda: to_half(given["x"]), lambda: half.copy_(tensor)),
        (
            "FP32 to INT16, ROUND",
            "torch: 1.0",
            lambda: pypto.cast(given["x"], pypto.DT_INT16, pypto.CAST_ROUND),
            lambda: narrow.copy_(tensor.round()),
        ),
        ("INT16 to FP16", "numpy: 5", lambda: to_half(given["short"]), lambda: short.astype("f2")),
        ("INT16 to FP16", "torch", lambda: to_half(given["short"]), lambda: half.copy_(integers)),
        (
            "FP32 to FP16, source of 256 MB",
            "memcpy: 1.0",
            lambda: to_half(given["large"]),
            lambda: np.copyto(room, moved),
        ),
    ]
    with pypto.options(threads=1):
        for name, peer, ours, theirs in rows:
            best = best_seconds({"ours": ours, "peer": theirs}, rounds, clock=time.process_time)
            yield {
                "cast": name,
                "peer, goal": peer,
                "times as fast": round(best["peer"] / best["ours"], 2),
            }

    def in_two() -> object:
        with pypto.options(threads=2):
            return to_half(given["x"])

    with pypto.options(threads=1):
        best = best_seconds({"one": lambda: to_half(given["x"]), "two": in_two}, rounds)
    pypto.set_vec_tile_shapes(16, 512)
    yield {
        "cast": "FP32 to FP16, two threads, wall time",
        "peer, goal": "one thread: what the probe below gives",
        "times as fast": round(best["one"] / best["two"], 2),
    }


def memory(rounds: int) -> Iterator[Row]:
    """The time, in ms, of memory alone: of an addition, and of what a certainty returns."""
    x, y = _numbers(_SIDE, _SIDE), _numbers(_SIDE, _SIDE)
    out = np.zeros_like(x)

    def touched() -> None:
        pypto.release_memory()
        kept = [result_memory.empty(x.size, np.dtype(dtype)) for dtype in ("f4", "f4", "f4", "u2")]
        for array in kept:
            array.view(np.uint8)[::4096] = 0
        del kept

    tensors = list(map(torch.from_numpy, (x, y, out)))
    runs: dict[str, Callable[[], object]] = {
        "numpy.add into used memory": partial(np.add, x, y, out),
        "numpy.copyto": partial(np.copyto, out, x),
        "the kernel add": partial(add, *tensors),
        "first touch of the values, ends and causes of a certainty": touched,
        "the kernel exp": partial(exponential, tensors[0], tensors[2]),
        "torch.softmax": partial(torch.softmax, tensors[0], -1),
    }
    torch.set_num_threads(1)
    with pypto.options(threads=1):
        for name, seconds in best_seconds(runs, rounds, clock=time.process_time).items():
            yield {"probe, 4096 x 4096 FP32": name, "ms": round(1e3 * seconds, 2)}


def passes(rounds: int) -> Iterator[Row]:
    """The steps of the native programs of a call, and their time, in ms."""
    found: list[tuple[int, float]] = []
    call = Program.call

    def timed(program: Program, needed: Any) -> Any:
        start = time.process_time()
        try:
            return call(program, needed)
        finally:
            found.append((len(program.step_of), time.process_time() - start))

    x = torch.from_numpy(_numbers(_SIDE, _SIDE))
    gates = [x.to(torch.bfloat16), x.flip(0).to(torch.bfloat16)]
    kernels: tuple[tuple[str, Any, list[torch.Tensor]], ...] = (
        ("softmax", softmax, [x]),
        ("rms_norm", rms_norm, [x]),
        ("swiglu", swiglu, gates),
    )
    with mock.patch.object(Program, "call", timed):
        for name, kernel, inputs in kernels:
            for what, run in (("plain", kernel), ("certainty", kernel.certainty)):
                best: list[tuple[int, float]] = []
                for _ in range(rounds):
                    found.clear()
                    with pypto.options(threads=1):
                        run(*inputs, torch.zeros_like(inputs[0]))
                    shown = [each for each in found if each[1] > 1e-3]
                    best = [min(pair) for pair in zip(best, shown, strict=False)] or shown
                yield {
                    "probe": f"native programs of {name}, {what}",
                    "steps": " and ".join(str(steps) for steps, _ in best),
                    "ms": " and ".join(f"{1e3 * seconds:.1f}" for _, seconds in best),
                }


def products(rounds: int) -> Iterator[Row]:
    """Of a product of 256 x 1024 x 1024 in BF16: the product in float64 alone, and the whole.

    Processor time, in which threads of numpy's BLAS count together.
    """
    a, b = (torch.from_numpy(_numbers(*x)).to(torch.bfloat16) for x in ((256, 1024), (1024, 1024)))
    one, other, out = a.double(), b.double(), torch.zeros(256, 1024)
    torch.set_num_threads(1)
    runs: dict[str, Callable[[], object]] = {
        "numpy's, of float64": partial(np.matmul, one.numpy(), other.numpy()),
        "torch's, of float64": partial(torch.matmul, one, other),
        "torch's, with the conversion: the peer": lambda: a.double() @ b.double(),
        "the kernel": partial(product, a, b, out),
    }
    with pypto.options(threads=1):
        best = best_seconds(runs, rounds, clock=time.process_time)
    for name, seconds in best.items():
        yield _share("BF16 matmul", name, seconds, best["torch's, with the conversion: the peer"])


def attention_parts(rounds: int) -> Iterator[Row]:
    """Of flash attention what its bits ask for: products in float64, exps that are rounded once.

    A certainty has five products for two: of exact scores the values and the magnitudes, of open
    powers the values, the middle, and what magnitudes and radii add together.
    """
    heads, length, depth, block = 8, 2048, 128, 512
    given = [torch.from_numpy(_numbers(heads, length, depth)) for _ in range(3)]
    out, scores = torch.zeros_like(given[0]), _numbers(heads * length, block)
    a, b = _numbers(length, depth).astype(np.float64), _numbers(depth, block).astype(np.float64)
    wide, values = scores[:length].astype(np.float64), _numbers(block, depth).astype(np.float64)
    pairs = heads * length // block
    narrow = [torch.from_numpy(x).float() for x in (a, b, wide, values)]
    tensors = [torch.from_numpy(scores), torch.zeros(scores.shape)]

    def first() -> None:
        for _ in range(pairs):
            np.matmul(a, b)

    def second() -> None:
        for _ in range(pairs):
            np.matmul(wide, values)

    def single() -> None:
        for _ in range(pairs):
            narrow[0] @ narrow[1]
            narrow[2] @ narrow[3]

    def exps() -> None:
        for _ in range(length // block):
            exponential(*tensors)

    runs: dict[str, Callable[[], object]] = {
        "float64 products of queries and keys": first,
        "float64 products of powers and values": second,
        "float32 products of torch, both": single,
        "the powers alone": exps,
        "torch's steps: the peer": partial(torch_attention, *given, out),
    }
    torch.set_num_threads(1)
    with pypto.options(threads=1):
        best = best_seconds(runs, rounds, clock=time.process_time)
        pypto.set_vec_tile_shapes(1, 16, 512)
        best |= best_seconds(
            {"the kernel": partial(attention, *given, out)}, rounds, clock=time.process_time
        )
        pypto.set_vec_tile_shapes(16, 512)
    names = list(best)
    for name in names:
        yield _share("flash attention", name, best[name], best["torch's steps: the peer"])
    five = 2 * best[names[0]] + 3 * best[names[1]]
    name = "five products, over the kernel: a certainty's least"
    yield _share("flash attention", name, five, best["the kernel"])


def _share(work: str, name: str, seconds: float, whole: float) -> Row:
    return {
        "probe": f"{work}: {name}",
        "ms": round(1e3 * seconds, 2),
        "of the peer": round(seconds / whole, 2),
    }


def small_calls(rounds: int) -> Iterator[Row]:
    """Of an operation on 64 elements the calls of Python functions, and the price of so many."""
    x = pypto.from_torch(torch.from_numpy(_numbers(1, 64)))

    def counted(run: Callable[[], object]) -> int:
        calls = 0

        def note(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(note)
        try:
            run()
        finally:
            sys.setprofile(None)
        return calls

    def nothing(_one: object, _two: object) -> None:
        pass

    for name, run in (("add", partial(pypto.add, x, x)), ("exp", partial(pypto.exp, x))):
        run()
        run()  # makes the program that is kept
        count = counted(run)

        def bare(count: int = count) -> None:
            for k in range(count):
                nothing(k, x)

        best = best_seconds({"op": run, "bare": bare}, rounds, clock=time.process_time)
        yield {
            "probe, 64 elements": name,
            "calls": count,
            "us": round(1e6 * best["op"], 1),
            "us of as many empty calls": round(1e6 * best["bare"], 1),
        }


def second_thread(rounds: int) -> Iterator[Row]:
    """The ratio of one thread's wall time to that of two of numpy's."""
    x, out = _numbers(_SIDE, _SIDE), np.zeros((_SIDE, _SIDE), np.float32)
    halves = [slice(0, _SIDE // 2), slice(_SIDE // 2, _SIDE)]

    def in_two(work: Callable[[slice], object]) -> None:
        other = threading.Thread(target=work, args=(halves[1],))
        other.start()
        work(halves[0])
        other.join()

    works: dict[str, Callable[[slice], object]] = {
        "numpy.copyto": lambda part: np.copyto(out[part], x[part]),
        "numpy.sqrt": lambda part: np.sqrt(out[part], out[part]),
    }
    for name, work in works.items():
        runs = {"one": partial(work, slice(0, _SIDE)), "two": partial(in_two, work)}
        best = best_seconds(runs, rounds)
        yield {
            "probe, a second thread": name,
            "times as fast": round(best["one"] / best["two"], 2),
        }


def cast_parts(rounds: int) -> Iterator[Row]:
    """Of FP32 to FP16 in single calls met in turn: the loop itself, and what has as many bytes.

    Each side writes into memory that it has used before, one after another, on one thread.
    """
    x = _numbers(2048, _SIDE)
    tensor, given = torch.from_numpy(x), pypto.from_torch(torch.from_numpy(x))
    halves = np.zeros(x.shape, np.float16)
    narrow = torch.zeros(x.shape, dtype=torch.float16)
    moved, room = x[: 3 * len(x) // 4], np.zeros((3 * len(x) // 4, _SIDE), np.float32)
    conversion = Conversion(src=FP32, dst=FP16, mode=RoundMode.RINT, policy=INF_NAN)
    loop = native().loop((conversion,))
    assert loop is not None
    torch.set_num_threads(1)
    pypto.set_vec_tile_shapes(64, 512)
    runs: dict[str, Callable[[], object]] = {
        "the cast": lambda: pypto.cast(given, pypto.DT_FP16, pypto.CAST_RINT),
        "its native loop": partial(
            loop, x.view(np.uint32).reshape(-1), halves.view(np.uint16).reshape(-1)
        ),
        "torch's copy_": lambda: narrow.copy_(tensor),
        "a copy of as many bytes": partial(np.copyto, room, moved),
    }
    with pypto.options(threads=1):
        best = best_seconds(runs, rounds, clock=time.process_time)
    pypto.set_vec_tile_shapes(16, 512)
    for name, seconds in best.items():
        yield _share("FP32 to FP16", name, seconds, best["torch's copy_"])


PROBES: Final = (
    memory,
    passes,
    products,
    attention_parts,
    small_calls,
    second_thread,
    cast_parts,
)
