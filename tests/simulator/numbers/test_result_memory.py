"""The memory of large results: aligned, used again, and never while anything can read it."""

from __future__ import annotations

import gc
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pypto_cast as pypto
from pypto_cast.dialects import onnx, openvino, paddle
from simulator.numbers import result_memory
from simulator.numbers.result_memory import (
    ALIGNMENT_BYTES,
    DEFAULT_LIMIT_BYTES,
    LEAST_BYTES,
    empty,
)

pytestmark = pytest.mark.skipif(
    not result_memory._IS_PRIVATE, reason="this system has no anonymous private mappings"
)
UINT8 = np.dtype(np.uint8)
Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    pypto.release_memory()
    gc.freeze()  # a collection looks at what the test made, not at all that is there
    yield
    pypto.release_memory()


def kept() -> int:
    return len(result_memory._FREE)


def large(size_bytes: int = LEAST_BYTES) -> Array:
    return empty(size_bytes, UINT8)


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def test_large_memory_is_aligned_and_used_again() -> None:
    first = empty(LEAST_BYTES // 8 + 1, np.dtype(np.uint64))
    assert (first.dtype, first.shape) == (np.uint64, (LEAST_BYTES // 8 + 1,))
    assert first.flags.c_contiguous
    assert first.flags.writeable
    place = address(first)
    assert place % ALIGNMENT_BYTES == 0
    del first
    again = empty(LEAST_BYTES // 2, np.dtype(np.uint16))
    assert address(again) == place
    assert address(large()) != place
    again[:] = 7
    assert (again == 7).all()


def test_small_memory_is_of_numpy() -> None:
    assert large(LEAST_BYTES - 1).flags.owndata
    assert kept() == 0


VIEWS: dict[str, Callable[[Array], object]] = {
    "slice": lambda x: x[5:],
    "chain": lambda x: x[5:].view(np.int8).reshape(-1, 1).T[0, ::-1],
    "scalar-array": lambda x: x[3:4].reshape(()),
    "base": lambda x: x[5:].base,
    "last-base": lambda x: _last_base(x[5:].view(np.int8)),
    "memoryview": lambda x: memoryview(x)[7:],
    "frombuffer": lambda x: np.frombuffer(x, np.int16),
    "subclass": lambda x: x.view(np.recarray),
    "dlpack": lambda x: np.from_dlpack(x),
    "masked": lambda x: np.ma.masked_array(x, copy=False),
    "iterator": lambda x: x.flat,
    "tensor": lambda x: pypto.from_numpy(x),
}


def _last_base(array: Any) -> object:
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_every_view_keeps_the_memory(view: Callable[[Array], object]) -> None:
    array = large()
    held = view(array)
    del array
    gc.collect()
    assert kept() == 0
    del held
    gc.collect()
    assert kept() == 1


def test_a_tensor_of_torch_keeps_the_memory() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    held = torch.from_numpy(large())[3:]
    assert kept() == 0
    del held
    gc.collect()
    assert kept() == 1


def test_the_memory_cannot_be_resized_and_is_pickled_whole() -> None:
    array = large()
    array[:] = 3
    with pytest.raises(ValueError, match="does not own its data"):
        array.resize(2 * LEAST_BYTES)
    copy = pickle.loads(pickle.dumps(array, protocol=5))
    del array
    assert kept() == 1
    assert large().size == copy.size
    assert (copy == 3).all()


def test_what_is_kept_is_bounded_and_released() -> None:
    quarters = [large(DEFAULT_LIMIT_BYTES // 4) for _ in range(6)]
    quarters.clear()
    assert kept() == 4
    large(DEFAULT_LIMIT_BYTES + 1)
    assert kept() == 4
    large(DEFAULT_LIMIT_BYTES)
    assert kept() == 1
    assert pypto.release_memory() == DEFAULT_LIMIT_BYTES + ALIGNMENT_BYTES
    assert (kept(), pypto.release_memory()) == (0, 0)


def test_the_limit_is_an_option() -> None:
    with pypto.options(kept_bytes=LEAST_BYTES):
        first, second = large(), large()
    large()
    del first, second
    assert kept() == 1
    with pypto.options(kept_bytes=0):
        large()
    assert kept() == 0


@pytest.mark.parametrize(
    ("limit", "error", "text"),
    [
        (-1, ValueError, "option kept_bytes must be 0 or more, not -1"),
        (True, TypeError, "option kept_bytes must be an int, not True"),
        (1.5, TypeError, "option kept_bytes must be an int, not 1.5"),
    ],
    ids=["negative", "bool", "float"],
)
def test_a_limit_that_is_refused(limit: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text), pypto.options(kept_bytes=limit):
        pytest.fail("the body must not run")


def test_a_block_of_another_length_is_not_handed_out() -> None:
    large(3 * LEAST_BYTES)
    assert kept() == 1
    short = large()
    assert kept() == 1
    del short
    long = large(3 * LEAST_BYTES)
    assert kept() == 1
    assert len(result_memory._FREE[0]) == LEAST_BYTES + ALIGNMENT_BYTES
    assert long.size == 3 * LEAST_BYTES


class Returning:
    """Brings back, while it is collected, what the garbage around it could read."""

    saved: list[object]

    def __init__(self, held: object) -> None:
        self.held = held
        self.myself = self

    def __del__(self) -> None:
        self.saved.append((kept(), self.held))


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.base], ids=["array", "base"])
def test_garbage_that_comes_back(view: Callable[[Array], object]) -> None:
    """A cycle is collected, and a finalizer in it hands the memory on."""
    Returning.saved = []
    Returning(view(large()))
    gc.collect()
    assert [count for count, _ in Returning.saved] == [0]
    assert kept() == 0
    Returning.saved.clear()
    gc.collect()
    assert kept() == 1


def test_threads_never_share_memory() -> None:
    def work(number: int) -> bool:
        for _ in range(20):
            array = large()[:: 1 << 12]
            array[:] = number
            if not (array == number).all():
                return False
        return True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert kept() <= 8  # a thread asks for its next array while it still holds the last one


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_its_own_memory() -> None:
    held = large()
    held[:] = 1
    large()
    child = os.fork()
    if child == 0:
        held[:] = 2
        fresh = large()
        fresh[:] = 3
        os._exit(0 if kept() == 0 and (held == 2).all() else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert (held == 1).all()
    assert kept() == 1


def test_a_system_that_gives_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(length: int) -> None:
        raise OSError(12, "Cannot allocate memory")

    large()
    monkeypatch.setattr(result_memory, "_mapped", refuse)
    assert large(3 * LEAST_BYTES).flags.owndata
    assert kept() == 0


ELEMS = LEAST_BYTES // 2
CASTS: dict[str, Callable[[Array], Array]] = {
    "cast": lambda x: pypto.cast(pypto.from_numpy(x), pypto.DT_FP16).numpy(),
    "onnx": lambda x: onnx.cast(x, "FLOAT16"),
    "paddle": lambda x: paddle.cast(x, "float16"),
    "openvino": lambda x: openvino.fake_convert(x.view(np.float16)[:ELEMS], np.float16([1])),
}


@pytest.mark.parametrize("call", CASTS.values(), ids=CASTS)
def test_casts_use_memory_again(call: Callable[[Array], Array]) -> None:
    x = np.full(ELEMS, 1.5, np.float32)
    with pypto.options(vec_tile_shapes=(8192,)):
        first = call(x)
        place, before = address(first), first.copy()
        second = call(-x)
        assert address(second) != place
        np.testing.assert_array_equal(first, before)
        del first
        third = call(x)
    assert address(third) == place
    np.testing.assert_array_equal(third, before)
