"""The native executor among foreign environments, signals, threads, forks; without a library."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.arithmetic.native_executor import Array, at, same_codes
from support.environment.signals import heard
from support.numbers.codes import SEED
from support.numbers.float_environments import ENVIRONMENTS, foreign

from simulator.arithmetic import OPERATIONS, Enclosure, evaluate, reduce
from simulator.arithmetic.native import executor_library, node_program
from simulator.arithmetic.native.executor_library import Executor
from simulator.arithmetic.native.node_program import Node, compute_all
from simulator.arithmetic.native.operation_nodes import row_node
from simulator.arithmetic.trust import EXACT
from simulator.numbers import engines
from simulator.numbers.engines import Engine, EngineWarning
from simulator.numbers.formats import FP32
from simulator.numbers.native import library as casts


def numbers(rows: int = 64, columns: int = 300) -> Array:
    codes = np.random.default_rng(SEED).integers(0, 1 << 32, (rows, columns), np.uint64)
    return codes.astype(np.uint32).view(np.float32)


def softmax(executor: Executor, x: Array, threads: int = 1) -> Node:
    """Subnormal numbers, overflow and NaN arise in between."""

    def node(name: str, *operands: Node | Array) -> Node:
        return Node(executor, name, operands, x.shape, x.dtype, threads=threads)

    powers = node("exp", node("sub", x, row_node(executor, "amax", x, None, threads)))
    return node("div", powers, row_node(executor, "sum", powers, None, threads))


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_foreign_environments_change_nothing(environment: str) -> None:
    executor, x = at("baseline"), numbers()
    for given in (x, np.ldexp(x, -120).astype(np.float32)):
        expected = softmax(executor, given).computed()
        for level in executor.levels:
            with foreign(environment):
                found = softmax(replace(executor, level=level), given).computed()
            same_codes(found, expected, level)


_TRAPPING = """
import ctypes
import numpy as np
from simulator.arithmetic import OPERATIONS, Enclosure, evaluate, reduce
from simulator.arithmetic.trust import EXACT
from simulator.numbers.formats import FP16, FP32

library = ctypes.CDLL("libm.so.6")
library.feenableexcept(0x1D)
x = (np.arange(1 << 16, dtype=np.uint32) * 65537).view(np.float32).reshape(256, 256)
for fmt, values in ((FP32, x), (FP16, np.arange(1 << 16, dtype=np.uint16).view(np.float16))):
    given = Enclosure(values=values)
    for name in ("add", "div", "exp", "log", "sqrt", "mul"):
        row = OPERATIONS[name]
        evaluate(row, [given, given][: row.operands], fmt, trust=EXACT, threads=2)
reduce(OPERATIONS["sum"], Enclosure(values=x), FP32, axis=-1, trust=EXACT)
assert library.fegetexcept() == 0x1D
"""


@pytest.mark.skipif(sys.platform != "linux", reason="traps are set by functions of GNU's C library")
def test_traps_do_not_end_the_process() -> None:
    at("baseline")
    done = subprocess.run([sys.executable, "-c", _TRAPPING], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


class Counted:
    """A library whose calls are counted."""

    def __init__(self, library: Any) -> None:
        self._library, self.calls = library, 0

    def pypto_cast_arithmetic_scratch(self, *arguments: Any) -> int:
        return int(self._library.pypto_cast_arithmetic_scratch(*arguments))

    def pypto_cast_arithmetic_run(self, *arguments: Any) -> int:
        self.calls += 1
        return int(self._library.pypto_cast_arithmetic_run(*arguments))


class Interrupted(Counted):
    """A library whose second call is interrupted from the keyboard."""

    def pypto_cast_arithmetic_run(self, *arguments: Any) -> int:
        if self.calls == 1:
            self.calls += 1
            signal.raise_signal(signal.SIGINT)
        return super().pypto_cast_arithmetic_run(*arguments)


def test_an_interrupt_ends_a_program_between_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    executor, x = at("baseline"), numbers(512)
    monkeypatch.setattr(node_program, "_CALL_ELEMS", 1 << 12)
    monkeypatch.setattr(node_program, "_THREAD_ELEMS", 1 << 14)
    before = x.copy()
    interrupted: Any = Interrupted(executor.library)
    node = softmax(replace(executor, library=interrupted), x, threads=1)
    with heard(), pytest.raises(KeyboardInterrupt):
        node.computed()
    assert interrupted.calls == 2
    assert node.array is None
    same_codes(x, before, "the operand")
    same_codes(node.computed(), softmax(executor, before).computed(), "computed again")


class Starved(Counted):
    """A library whose programs take more memory than there is."""

    def pypto_cast_arithmetic_scratch(self, *arguments: Any) -> int:
        return 1 << 62


def test_all_memory_is_there_before_the_first_element_is_written() -> None:
    executor, x = at("baseline"), numbers(512)
    out = x.copy()
    starved: Any = Starved(executor.library)
    node = softmax(replace(executor, library=starved), x, threads=2)
    with pytest.raises((MemoryError, ValueError)):
        compute_all([node], {id(node): out})
    assert starved.calls == 0
    same_codes(out, x, "the output")


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_outputs_of_several_programs_are_written_by_the_last(
    fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of them finds no memory, no output is changed."""
    executor = at("baseline")
    calls = []

    class Sometimes(Counted):
        def pypto_cast_arithmetic_scratch(self, *arguments: Any) -> int:
            calls.append(arguments)
            if len(calls) == fails_at:
                return 1 << 62
            return super().pypto_cast_arithmetic_scratch(*arguments)

    library: Any = Sometimes(executor.library)
    mine = replace(executor, library=library)
    given = [numbers(rows, 300) for rows in (64, 512, 128)]
    homes = [np.zeros_like(x) for x in given]
    expected = [softmax(executor, x).computed() for x in given]
    nodes = [softmax(mine, x) for x in given]
    memory = {id(node): home for node, home in zip(nodes, homes, strict=True)}
    with pytest.raises((MemoryError, ValueError)):
        compute_all(nodes, memory)
    assert not any(home.any() for home in homes)
    compute_all(nodes, memory)
    assert nodes[1].array is homes[1]
    for node, values in zip(nodes, expected, strict=True):
        same_codes(node.computed(), values, "again")


@pytest.mark.parametrize("columns", [1, 5, 64, 700, 5000, 20_000])
def test_scratch_memory_is_as_large_as_said(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call writes no byte behind it, whatever part of the rows or columns it takes."""
    executor, x = at("baseline"), numbers(40, columns)
    fence = np.full(256, 0xA5, np.uint8)
    sizes = []

    class Fenced(Counted):
        def pypto_cast_arithmetic_scratch(self, *arguments: Any) -> int:
            sizes.append(super().pypto_cast_arithmetic_scratch(*arguments))
            return sizes[-1] + fence.size

        def pypto_cast_arithmetic_run(self, *arguments: Any) -> int:
            behind = arguments[-1] + sizes[-1]
            ctypes.memmove(behind, fence.ctypes.data, fence.size)
            status = int(self._library.pypto_cast_arithmetic_run(*arguments))
            assert ctypes.string_at(behind, fence.size) == fence.tobytes()
            return status

    monkeypatch.setattr(node_program, "_CALL_ELEMS", 1 << 12)
    monkeypatch.setattr(node_program, "_THREAD_ELEMS", 1 << 10)
    fenced: Any = Fenced(executor.library)
    mine = replace(executor, library=fenced)
    for threads in (1, 3):
        same_codes(
            softmax(mine, x, threads=threads).computed(), softmax(executor, x).computed(), columns
        )
        chain = [Node(mine, "exp", [x[:2]], (2, columns), x.dtype, threads=threads)]
        for name in ("neg", "abs", "exp", "sqrt"):
            chain.append(Node(mine, name, chain[-1:], (2, columns), x.dtype, threads=threads))
        chain[-1].computed()
    assert sizes


@pytest.mark.parametrize("shape", [(500, 300), (2, 70_000), (1, 150_000), (150_000,)], ids=str)
def test_threads_share_rows_or_columns(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, x = at("baseline"), numbers(1, 150_000)[:, : np.prod(shape)].reshape(shape)
    alone = softmax(executor, x).computed(), Node(executor, "exp", [x], shape, x.dtype).computed()
    monkeypatch.setattr(node_program, "_CALL_ELEMS", 1 << 13)
    monkeypatch.setattr(node_program, "_THREAD_ELEMS", 1 << 14)
    same_codes(softmax(executor, x, threads=3).computed(), alone[0], shape)
    found = Node(executor, "exp", [x], shape, x.dtype, threads=3).computed()
    same_codes(found, alone[1], shape)


def test_calls_from_several_threads_and_a_forked_process(monkeypatch: pytest.MonkeyPatch) -> None:
    executor, x = at("baseline"), numbers(512)
    monkeypatch.setattr(node_program, "_THREAD_ELEMS", 1 << 14)
    expected = softmax(executor, x).computed()
    shared = softmax(executor, x, threads=2)
    with ThreadPoolExecutor(4) as pool:
        of_one = [pool.submit(shared.computed) for _ in range(4)]
        own = [pool.submit(softmax(executor, x, threads=2).computed) for _ in range(8)]
        for each in (*of_one, *own):
            same_codes(each.result(), expected, "a thread")
    if hasattr(os, "fork"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads beside a fork
            child = os.fork()
        if child == 0:
            found = softmax(executor, x, threads=2).computed()
            os._exit(0 if found.tobytes() == expected.tobytes() else 1)
        assert os.waitpid(child, 0)[1] == 0


@pytest.fixture
def unfound(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A process that has looked for no library yet."""
    monkeypatch.setattr(engines, "_WARNED", {})
    executor_library.find.cache_clear()
    yield monkeypatch
    executor_library.find.cache_clear()


def test_without_a_library_numpy_goes_on(unfound: pytest.MonkeyPatch) -> None:
    unfound.setenv(casts.LIBRARY_VARIABLE, "/nonexistent")
    given = Enclosure(values=numbers())

    def results(engine: Engine) -> list[Array]:
        return [
            evaluate(OPERATIONS["exp"], [given], FP32, trust=EXACT, engine=engine).values,
            reduce(OPERATIONS["sum"], given, FP32, axis=-1, trust=EXACT, engine=engine).values,
        ]

    expected = results("numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = results("auto")
    with pytest.warns(EngineWarning, match="cannot run operations, 'numpy' goes on") as caught:
        found += results("native")
    assert len(caught) == 1
    assert executor_library.in_use().name == "numpy"
    assert executor_library.in_use().reason == str(executor_library.find())
    for one, other in zip(found, expected * 2, strict=True):
        same_codes(one, other, "numpy")


def test_a_library_of_other_sources_is_refused(unfound: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / f"{executor_library.NAME}.so").write_bytes(at("baseline").path.read_bytes()[:-4000])
    executor_library.find.cache_clear()
    unfound.setattr(executor_library, "digest", lambda: "0" * 64)
    unfound.setenv(casts.LIBRARY_VARIABLE, str(tmp_path / f"{casts.NAME}.so"))
    assert "was not built from these sources" in str(executor_library.find())
    with pytest.warns(EngineWarning, match="was not built from these sources"):
        assert executor_library.executor_for("auto") is None
    assert executor_library.executor_for("auto") is None  # told once
