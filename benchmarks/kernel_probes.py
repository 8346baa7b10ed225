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

_SIDE: Final = 4096
_D: Final = pypto.STATIC
_Fp32 = pypto.Tensor([_D, _D], pypto.DT_FP32)


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
    """The time, in ms, of a product of 256 x 1024 x 1024 in float64 alone."""
    a, b = _numbers(256, 1024).astype(np.float64), _numbers(1024, 1024).astype(np.float64)
    one, other = torch.from_numpy(a), torch.from_numpy(b)
    torch.set_num_threads(1)
    runs = {"numpy's": partial(np.matmul, a, b), "torch's": partial(torch.matmul, one, other)}
    for name, seconds in best_seconds(runs, rounds, clock=time.process_time).items():
        yield {"probe, float64 product": name, "ms": round(1e3 * seconds, 2)}


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


PROBES: Final = (memory, passes, products, small_calls, second_thread)
