"""Kernels beside torch, and their certainty beside themselves: `python -m benchmarks.kernel_speed`.

Both sides run in one process, in turn, on as many threads; torch has no autograd. A figure is the
ratio of the medians of both sides' wall time, in four columns: memory that both sides use again, or
that both get anew for every call; single calls met in turn, or two in a row of which the last
counts. The headline is the worst of them. numpy's BLAS, which takes all cores whatever options say,
is held to one by OPENBLAS_NUM_THREADS=1, which a run asks for. Where a call takes more than half a
second, three single calls are measured. Needs torch; a run takes some minutes.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

import pypto_cast as pypto
from benchmarks.kernel_probes import (
    PROBES,
    add,
    attention,
    casts,
    product,
    rms_norm,
    softmax_by_rows,
    torch_attention,
    whole_by_rows,
)
from benchmarks.measuring import Row, best_seconds, date_and_revision, markdown
from benchmarks.whole_kernels import softmax, swiglu, torch_softmax, torch_swiglu

_D: Final = pypto.STATIC
_Int8 = pypto.Tensor([_D, _D], pypto.DT_INT8)
_Int32 = pypto.Tensor([_D, _D], pypto.DT_INT32)
_SIDE: Final = 4096
_REPEATS: Final = 2
_SLOW_SECONDS: Final = 0.5
_SLOW_ROUNDS: Final = 3
_EPSILON: Final = 1e-6
Tensors = Sequence[torch.Tensor]


@pypto.jit
def linear(a: _Int8, b: _Int8, out: _Int32) -> None:
    """A product of INT8 matrices in INT32."""
    out[:] = pypto.matmul(a, b, pypto.DT_INT32)


class _Steps:
    """The same steps in torch, into memory that is kept; its results are in the last tensor."""

    def __init__(self) -> None:
        self._room: dict[tuple[int, torch.Size, torch.dtype], torch.Tensor] = {}

    def _like(self, k: int, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        key = (k, shape, dtype)
        if key not in self._room:
            self._room[key] = torch.empty(shape, dtype=dtype)
        return self._room[key]

    def softmax(self, x: torch.Tensor, out: torch.Tensor) -> None:
        """In four steps."""
        a = self._like(0, x.shape, x.dtype)
        torch.sub(x, x.amax(-1, keepdim=True), out=a)
        torch.exp(a, out=a)
        torch.div(a, a.sum(-1, keepdim=True), out=out)

    def rms_norm(self, x: torch.Tensor, out: torch.Tensor) -> None:
        """In seven steps."""
        a = self._like(0, x.shape, x.dtype)
        torch.mul(x, x, out=a)
        torch.mul(a, 1.0 / x.shape[-1], out=a)
        root = torch.sqrt(a.sum(-1, keepdim=True) + _EPSILON)
        torch.mul(x, torch.ones_like(root), out=a)
        torch.div(a, root, out=out)

    def swiglu(self, gate: torch.Tensor, up: torch.Tensor, out: torch.Tensor) -> None:
        """Between two casts."""
        a, b = (self._like(k, gate.shape, torch.float32) for k in range(2))
        a.copy_(gate)
        torch.mul(a, -1.0, out=b)
        torch.exp(b, out=b)
        torch.add(b, 1.0, out=b)
        torch.reciprocal(b, out=b)
        torch.mul(a, b, out=b)
        a.copy_(up)
        torch.mul(b, a, out=b)
        out.copy_(b)


def _torch_rms_norm(x: torch.Tensor, out: torch.Tensor) -> None:
    root = torch.sqrt((x * x * (1.0 / x.shape[-1])).sum(-1, keepdim=True) + _EPSILON)
    out[:] = x * torch.ones_like(root) / root


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A row of the table.

    Attributes:
        name: of the work.
        goal: the ratio that is asked for.
        ours: called with inputs and outputs.
        peer: the same, into memory that is kept; or the reason for which there is none.
        fresh: the same, with memory of its own; None: as `peer`.
        inputs: made once.
        outputs: shape and dtype of each.
        threads: of both sides, by default; of ours and the peer's, where they differ.
    """

    name: str
    goal: str
    ours: Callable[..., object]
    peer: Callable[..., object] | str
    inputs: Callable[[], Tensors]
    outputs: Callable[[Tensors], Tensors]
    fresh: Callable[..., object] | None = None
    threads: tuple[int, int] = (1, 1)


def _numbers(*shape: int, dtype: torch.dtype = torch.float32, count: int = 1) -> Tensors:
    random = torch.Generator().manual_seed(7)
    if dtype is torch.int8:
        return [
            torch.randint(-128, 128, shape, generator=random, dtype=dtype) for _ in range(count)
        ]
    return [torch.randn(shape, generator=random).to(dtype) for _ in range(count)]


def _like_first(given: Tensors) -> Tensors:
    return [torch.zeros_like(given[0])]


def _certainty(kernel: Any) -> Callable[..., object]:
    return lambda *tensors: kernel.certainty(*tensors)


def _matrices(rows: int, terms: int, columns: int, dtype: torch.dtype) -> Tensors:
    return [*_numbers(rows, terms, dtype=dtype), *_numbers(terms, columns, dtype=dtype)]


def _product_out(dtype: torch.dtype) -> Callable[[Tensors], Tensors]:
    return lambda given: [torch.zeros(given[0].shape[0], given[1].shape[1], dtype=dtype)]


def _interpreted(rows: int, columns: int) -> Callable[..., object] | str:
    """Softmax by JAX Pallas in interpret mode, a row in each step of the grid, compiled before.

    JAX is no dependency, and has no types here: without it there is a reason instead.
    """
    if importlib.util.find_spec("jax") is None:
        return "JAX not installed"
    jax: Any = importlib.import_module("jax")
    pallas: Any = importlib.import_module("jax.experimental.pallas")
    numbers = jax.numpy

    def body(x: Any, out: Any) -> None:
        row = x[...]
        powers = numbers.exp(row - numbers.max(row, axis=-1, keepdims=True))
        out[...] = powers / numbers.sum(powers, axis=-1, keepdims=True)

    block = pallas.BlockSpec((1, columns), lambda i: (i, 0))
    call = pallas.pallas_call(
        body,
        grid=(rows,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct((rows, columns), numbers.float32),
        interpret=True,
    )
    run = jax.jit(call)
    return lambda x, out: run(jax.dlpack.from_dlpack(x)).block_until_ready()


def pairs() -> Iterator[Pair]:
    """The rows."""
    steps = _Steps()

    def square(**given: Any) -> Pair:
        return Pair(**{"inputs": lambda: _numbers(_SIDE, _SIDE), "outputs": _like_first, **given})

    def gates() -> Tensors:
        return _numbers(_SIDE, _SIDE, dtype=torch.bfloat16, count=2)

    yield square(
        name="softmax FP32", goal="0.7", ours=softmax, peer=steps.softmax, fresh=torch_softmax
    )
    yield square(
        name="rms_norm FP32", goal="0.7", ours=rms_norm, peer=steps.rms_norm, fresh=_torch_rms_norm
    )
    yield square(
        name="add FP32",
        goal="1.0",
        ours=add,
        peer=lambda x, y, out: torch.add(x, y, out=out),
        fresh=lambda x, y, out: torch.add(x, y),
        inputs=lambda: _numbers(_SIDE, _SIDE, count=2),
    )
    yield square(
        name="softmax beside torch's fused",
        goal="2.0 (AVX2: 3)",
        ours=softmax,
        peer=lambda x, out: torch.softmax(x, -1, out=out),
        fresh=lambda x, out: torch.softmax(x, -1),
    )
    yield square(
        name="rms_norm beside torch's fused",
        goal="1.2",
        ours=rms_norm,
        peer=lambda x, out: torch.nn.functional.rms_norm(x, (_SIDE,), eps=_EPSILON),
    )
    yield square(
        name="swiglu BF16",
        goal="0.7",
        ours=swiglu,
        peer=steps.swiglu,
        fresh=torch_swiglu,
        inputs=gates,
    )
    for name, kernel, inputs in (
        ("softmax", softmax, lambda: _numbers(_SIDE, _SIDE)),
        ("rms_norm", rms_norm, lambda: _numbers(_SIDE, _SIDE)),
        ("swiglu", swiglu, gates),
    ):
        yield square(
            name=f"{name}: certainty beside plain",
            goal="3",
            ours=_certainty(kernel),
            peer=kernel,
            inputs=inputs,
        )
    yield Pair(
        name="BF16 matmul 256x1024x1024 beside float64 torch",
        goal="1.0",
        ours=product,
        peer=lambda a, b, out: a.double() @ b.double(),
        inputs=lambda: _matrices(256, 1024, 1024, torch.bfloat16),
        outputs=_product_out(torch.float32),
    )
    integers = {
        "inputs": lambda: _matrices(1024, 4096, 4096, torch.int8),
        "outputs": _product_out(torch.int32),
    }
    yield Pair(
        name="INT8 linear 1024x4096x4096 beside torch._int_mm",
        goal="2.5",
        ours=linear,
        peer=lambda a, b, out: torch._int_mm(a, b, out=out),
        **integers,
    )
    yield Pair(
        name="INT8 linear: certainty beside plain",
        goal="2",
        ours=_certainty(linear),
        peer=linear,
        **integers,
    )
    pypto.set_vec_tile_shapes(1, 16, 512)
    heads = {"inputs": lambda: _numbers(8, 2048, 128, count=3), "outputs": _like_first}
    yield Pair(
        name="flash attention 8x2048x128", goal="3", ours=attention, peer=torch_attention, **heads
    )
    yield Pair(
        name="flash attention: certainty beside plain",
        goal="3",
        ours=_certainty(attention),
        peer=attention,
        **heads,
    )
    pypto.set_vec_tile_shapes(16, 512)
    for rows, columns in ((256, 512), (1024, 1024)):
        for how, by_rows in (("in steps", softmax_by_rows), ("in one call", whole_by_rows)):
            yield square(
                name=f"softmax row by row, {how}, {rows}x{columns} beside JAX's interpret mode",
                goal="0.7",
                ours=by_rows,
                peer=_interpreted(rows, columns),
                inputs=partial(_numbers, rows, columns),
            )
    for name, kernel, inputs in (
        ("softmax", softmax, lambda: _numbers(_SIDE, _SIDE)),
        ("rms_norm", rms_norm, lambda: _numbers(_SIDE, _SIDE)),
        ("swiglu", swiglu, gates),
    ):
        yield square(
            name=f"{name}: two threads beside one",
            goal="0.59 (1.7 times)",
            ours=kernel,
            peer=kernel,
            inputs=inputs,
            threads=(2, 1),
        )


_COLUMNS: Final = tuple(
    f"{memory}, {manner}" for memory in ("used", "fresh") for manner in ("in turn", "repeated")
)


def measured(pair: Pair, rounds: int) -> Row:
    """One row: the headline and the four columns."""
    if isinstance(pair.peer, str):
        blank = dict.fromkeys((*_COLUMNS, "rounds", "ms"), "")
        return {"work": pair.name, "goal": pair.goal, "worst": pair.peer, **blank}
    inputs, known = pair.inputs(), pair.peer
    found: dict[str, float] = {}
    pair.ours(*inputs, *pair.outputs(inputs))  # loads what it needs
    start = time.perf_counter()
    pair.ours(*inputs, *pair.outputs(inputs))
    is_slow = time.perf_counter() - start > _SLOW_SECONDS
    manners = ((1, "in turn"), (_REPEATS, "repeated"))[: 1 if is_slow else 2]
    rounds = min(rounds, _SLOW_ROUNDS) if is_slow else rounds
    milliseconds = 0.0
    for memory in ("used", "fresh"):
        peer = known if memory == "used" or pair.fresh is None else pair.fresh
        sides = ((pair.ours, pair.threads[0]), (peer, pair.threads[1]))
        kept = [pair.outputs(inputs) for _ in sides]
        for calls, manner in manners:
            times: list[list[float]] = [[], []]
            for turn in range(rounds + 1):
                for k, (run, threads) in enumerate(sides):
                    torch.set_num_threads(threads)
                    for call in range(calls):
                        if memory == "fresh":
                            pypto.release_memory()
                        outputs = kept[k] if memory == "used" else pair.outputs(inputs)
                        with pypto.options(threads=threads):
                            start = time.perf_counter()
                            result = run(*inputs, *outputs)
                            spent = time.perf_counter() - start
                        del result
                        if turn and call == calls - 1:
                            times[k].append(spent)
            ours, theirs = map(statistics.median, times)
            found[f"{memory}, {manner}"] = round(ours / theirs, 2)
            milliseconds = max(milliseconds, 1e3 * ours)
    gc.collect()
    return {
        "work": pair.name,
        "goal": pair.goal,
        "worst": max(found.values()),
        **{column: found.get(column, "") for column in _COLUMNS},
        "rounds": rounds,
        "ms": round(milliseconds, 1),
    }


_MEMORY_OF: Final = """
import pathlib, re, numpy, pypto_cast as pypto
from benchmarks.kernel_speed import softmax
def peak():  # this program's alone; that of getrusage is its parent's where that is greater
    return int(re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
x = numpy.ones(({side}, {side}), numpy.float32)
out = numpy.ones_like(x)
pypto.set_vec_tile_shapes(16, 512)
small = x[:64, :64].copy(), out[:64, :64].copy()
run = softmax.certainty if {certainty} else softmax
run(*small)
before = peak()
found = run(x, out)
after = peak()
given = x.nbytes + out.nbytes
print(1 + (after - before) * 1024 / given)
"""


def peak_memory(*, certainty: bool) -> float:
    """The most memory of a softmax, in units of its input and output, which count as 1."""
    text = _MEMORY_OF.format(side=_SIDE, certainty=certainty)
    ran = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    return round(float(ran.stdout), 2)


def instruction_level(rounds: int) -> Iterator[Row]:
    """Elements of the input in a second of processor time, executed under the machine's guards."""
    x = _numbers(1024, 1024)[0]
    runs = {
        "cast FP32 to FP16": ("40", partial(pypto.cast, pypto.from_torch(x), pypto.DT_FP16)),
        "softmax": ("5", partial(softmax, x, x.clone())),
        "add": ("", partial(add, x, x, x.clone())),
    }
    with pypto.options(fidelity="instructions", strict=True):
        for name, (goal, run) in runs.items():
            seconds = best_seconds({name: run}, rounds, clock=time.process_time)[name]
            yield {"executed": name, "goal": goal, "Melem/s": round(x.numel() / seconds / 1e6, 1)}


def small_operations(rounds: int) -> Iterator[Row]:
    """An operation on 64 elements, of its processor time, in microseconds."""
    x = pypto.from_torch(_numbers(1, 64)[0])
    runs = {"add": partial(pypto.add, x, x), "exp": partial(pypto.exp, x)}
    for name, seconds in best_seconds(runs, rounds, clock=time.process_time).items():
        yield {"operation on 64 elements": name, "goal": "15", "us": round(1e6 * seconds, 1)}


_EMPTY_TEST: Final = "def test_nothing():\n    assert True\n"


def plugin_ratio(rounds: int) -> float:
    """The processor time of a pytest session with the plugin over that without, best of each."""
    best = [math.inf, math.inf]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_nothing.py").write_text(_EMPTY_TEST)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder]
        for _, k in itertools.product(range(rounds), range(2)):
            without = ["-p", "no:pypto_cast.pytest_plugin"] * k
            before = os.times()
            subprocess.run([*command, *without], check=True, capture_output=True, cwd=folder)
            after = os.times()
            spent = after.children_user + after.children_system
            best[k] = min(best[k], spent - before.children_user - before.children_system)
    return round(best[0] / best[1], 2)


def _beside() -> str:
    """The machine's load by other work."""
    if not hasattr(os, "getloadavg"):
        return ""
    load, cores = os.getloadavg()[2], os.cpu_count()
    return (
        f"The load of the last 15 minutes was {load:.1f} on {cores} cores: above 1 the machine was "
        "not idle, and ratios alone, of sides in turn, say anything."
    )


_HEAD: Final = "## The whole table\n"


def written(text: str, table: str) -> str:
    """The text of the page with another table at its end."""
    return f"{text.split(_HEAD)[0].rstrip()}\n\n{_HEAD}\n{table.strip()}\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_speed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="of each column; 9 or more")
    parser.add_argument("--only", default="", help="rows whose names contain this")
    parser.add_argument("--write", action="store_true", help="into kernel_speed.md")
    given = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        parser.error("set OPENBLAS_NUM_THREADS=1 before: numpy's BLAS takes all cores else")
    if importlib.util.find_spec("pytest") is None:
        parser.error("install pytest before: the last figure is of its sessions")
    pypto.set_vec_tile_shapes(16, 512)
    pypto.set_cube_tile_shapes([128, 128], [128, 512], [128, 128])
    table = []
    for pair in pairs():
        if given.only in pair.name:
            table.append(measured(pair, given.rounds))
            print(table[-1], file=sys.stderr, flush=True)
    day, revision = date_and_revision()
    parts = [
        f"`python -m benchmarks.kernel_speed --rounds {given.rounds}` on {day} at {revision}, "
        f"numpy {np.__version__}, torch {torch.__version__}. {_beside()} The probes show what the "
        "machine gives where a goal is not reached."
    ]
    if table:
        parts.append(markdown(table))
    if given.only in "instruction level":
        pypto.set_vec_tile_shapes(32, 256)
        parts.append(markdown(list(instruction_level(given.rounds))))
        pypto.set_vec_tile_shapes(16, 512)
    if given.only in "small operations":
        parts.append(markdown(list(small_operations(given.rounds))))
    if given.only in "casts":
        parts.append(markdown(list(casts(given.rounds))))
    if given.only in "probes":
        parts += [markdown(list(each(given.rounds))) for each in PROBES]
    if given.only in "peak memory":
        plain, certain = (peak_memory(certainty=each) for each in (False, True))
        parts.append(
            f"Peak memory of softmax, of inputs and outputs: {plain} plain (goal 1.3), {certain} "
            "certainty (goal 3)."
        )
    if given.only in "plugin":
        parts.append(
            "A pytest session with the plugin over one without: "
            f"{plugin_ratio(given.rounds)} (goal 1.05)."
        )
    text = "\n\n".join(parts)
    print(text)
    if given.write:
        page = Path(__file__).with_suffix(".md")
        page.write_text(written(page.read_text(), text))


if __name__ == "__main__":
    main()
