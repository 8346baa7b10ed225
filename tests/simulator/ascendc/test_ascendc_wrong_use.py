"""AscendC's objects in Python: wrong use is refused at the call."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.programs.ascendc_kernels import (
    RINT,
    TRUNC,
    flagged,
    queued,
    zeros,
)

from simulator import ascendc as asc
from tiling.chips import CHIPS


class Bench:
    """The tensors and queues that the wrong uses work on."""

    def __init__(self, x: asc.GlobalAddress) -> None:
        self.address = x
        self.x_gm = asc.GlobalTensor()
        self.x_gm.set_global_buffer(x)
        self.x_gm16 = asc.GlobalTensor()
        self.x_gm16.set_global_buffer(dataclasses.replace(x, dtype=asc.int16))
        self.pipe = asc.TPipe()
        self.que = asc.TQue(asc.TPosition.VECIN, 1)
        self.out = asc.TQue(asc.TPosition.VECOUT, 2)
        self.buf = asc.TBuf(asc.TPosition.VECCALC)
        que = self.que
        self.pipe.init_buffer(que, 2, 256)

    def taken(self, dtype: asc.DataType = asc.float32) -> asc.LocalTensor:
        return self.que.alloc_tensor(dtype)


def used_after_free(b: Bench) -> None:
    tensor = b.taken()
    b.que.free_tensor(tensor)
    asc.data_copy(tensor, b.x_gm, 8)


def slice_used_after_enque(b: Bench) -> None:
    tensor = b.taken()
    part = tensor[8:]
    b.que.enque(tensor)
    asc.data_copy(part, b.x_gm, 8)


def freed_twice(b: Bench) -> None:
    tensor = b.taken()
    b.que.free_tensor(tensor)
    b.que.free_tensor(tensor)


def queue_too_full(b: Bench) -> None:
    b.que.enque(b.taken())
    b.que.enque(b.taken())


def other_dtype_dequeued(b: Bench) -> None:
    b.que.enque(b.taken())
    b.que.deque(asc.int32)


def foreign_tensor(b: Bench) -> None:
    b.pipe.init_buffer(b.out, 1, 256)
    b.out.enque(b.taken())


def too_many_buffers(b: Bench) -> None:
    for _ in range(4):
        b.pipe.init_buffer(asc.TQue(asc.TPosition.VECIN, 1), 2, 32)


def sharing_with_tpipe(b: Bench) -> None:
    asc.LocalTensor(asc.int8, asc.TPosition.VECCALC, 256, 300)


def overlapping_tpipe(b: Bench) -> None:
    asc.LocalTensor(asc.int8, asc.TPosition.VECCALC, 512, 300)
    b.pipe.init_buffer(b.buf, 32)


def never_set() -> asc.GlobalTensor:
    return asc.GlobalTensor()


def int4_at_odd(b: Bench) -> None:
    asc.LocalTensor(asc.int4b_t, asc.TPosition.VECCALC, 512, 64)[3:]


def scratch(b: Bench, dtype: asc.DataType = asc.int16) -> asc.LocalTensor:
    return asc.LocalTensor(dtype, asc.TPosition.VECCALC, 1024, 64)


BLOCKS = asc.DataCopyExtParams(1, 32)
WRONG: list[tuple[str, Callable[[Bench], object], str]] = [
    ("deque-empty", lambda b: b.que.deque(asc.half), "que is empty: enque a tensor before deque"),
    (
        "no-free-buffer",
        lambda b: [b.taken() for _ in range(3)],
        "que has no free buffer: all 2 are in use",
    ),
    ("queue-full", queue_too_full, "que is full: its depth is 1"),
    ("no-buffers", lambda b: b.out.alloc_tensor(asc.half), "a VECOUT queue has no buffers yet"),
    ("buffers-twice", lambda b: b.pipe.init_buffer(b.que, 2, 256), "has its buffers already"),
    (
        "beyond-ub",
        lambda b: b.pipe.init_buffer(b.out, 2, 98304),
        "of 98304 B does not fit UB: 98816 of 196608 B are taken",
    ),
    ("no-bytes", lambda b: b.pipe.init_buffer(b.buf, 0), "must have at least one byte, not 0"),
    ("no-len", lambda b: b.pipe.init_buffer(b.out, 2), "takes at least one buffer"),
    ("buf-num-len", lambda b: b.pipe.init_buffer(b.buf, 2, 32), "a TBuf is one buffer"),
    ("flags", too_many_buffers, "has no flag left: V_MTE2 has 8"),
    ("not-a-queue", lambda b: b.pipe.init_buffer(b.x_gm, 1), "takes a TQue or a TBuf"),
    ("second-pipe", lambda b: asc.TPipe(), "a kernel has one TPipe"),
    ("queue-position", lambda b: asc.TQue(asc.TPosition.VECCALC, 1), "scratch is a TBuf"),
    ("queue-depth", lambda b: asc.TQue(asc.TPosition.VECIN, 0), "at least 1, not 0"),
    ("buf-not-given", lambda b: b.buf.get(asc.half), "the TBuf has no buffer yet"),
    (
        "buf-too-long",
        lambda b: (b.pipe.init_buffer(b.buf, 64), b.buf.get(asc.half, 33)),
        "holds 1 to 32 elements of float16, not 33",
    ),
    ("used-after-free", used_after_free, "tensor of que0 is used after free_tensor"),
    ("used-after-enque", slice_used_after_enque, "used after enque; take the tensor that que."),
    ("freed-twice", freed_twice, "used after free_tensor"),
    ("foreign", foreign_tensor, "the tensor of que0 is none of"),
    ("enque-gm", lambda b: b.que.enque(b.x_gm), "enque takes a LocalTensor, not GlobalTensor"),
    ("left-in-queue", lambda b: b.que.enque(b.taken()), "ends with a tensor in que, allocated in"),
    (
        "not-freed",
        lambda b: b.taken(),
        "ends before free_tensor of que0, taken in test_ascendc_wrong_use.py",
    ),
    ("deque-dtype", other_dtype_dequeued, "deque(int32) of a tensor that was queued as float32"),
    ("dtype", lambda b: b.que.alloc_tensor(np.float32), "unknown dtype <class 'numpy.float32'>"),
    ("local-dtype", lambda b: asc.LocalTensor("half", tile_size=1), "unknown dtype 'half'; asc"),
    ("local-empty", lambda b: asc.LocalTensor(asc.half), "has at least one element, not 0"),
    (
        "local-unaligned",
        lambda b: asc.LocalTensor(asc.half, asc.TPosition.VECIN, 520, 8),
        "VECIN@520: UB addresses are multiples of 32 B",
    ),
    (
        "local-beyond-ub",
        lambda b: asc.LocalTensor(asc.half, asc.TPosition.VECIN, 196576, 17),
        "ends at ub+196640, beyond the 196608 B of UB",
    ),
    ("local-in-tpipe", sharing_with_tpipe, "VECCALC@256 (ub+256..576) and que1 (ub+256..512)"),
    ("tpipe-in-local", overlapping_tpipe, "TPipe and tensors placed by hand"),
    ("gm-not-set", lambda b: never_set()[1:], "set_global_buffer first"),
    (
        "gm-of-an-array",
        lambda b: never_set().set_global_buffer(np.zeros(3)),
        "takes a GlobalAddress, a kernel's array parameter, not ndarray",
    ),
    (
        "gm-count",
        lambda b: asc.data_copy(b.taken(), b.x_gm[96:], 33),
        "count 33 is beyond the 32 elements of gm.x[96:]",
    ),
    (
        "ub-count",
        lambda b: asc.data_copy(b.taken()[60:], b.x_gm, 8),
        "count 8 is beyond the 4 elements of tensor of que0",
    ),
    (
        "cast-count",
        lambda b: asc.cast(scratch(b), scratch(b, asc.float32), TRUNC, 65),
        "count 65 is beyond the 64 elements of tensor of VECCALC@1024",
    ),
    ("negative", lambda b: asc.data_copy(b.taken(), b.x_gm, -1), "must not be negative, is -1"),
    ("not-int", lambda b: asc.data_copy(b.taken(), b.x_gm, 1.5), "must be an integer, not 1.5"),
    ("index", lambda b: b.x_gm[129:], "index 129 is beyond the 128 elements of gm.x[0:]"),
    ("slice", lambda b: b.x_gm[1:2], "sliced as [i:], without stop and step"),
    ("int4-index", int4_at_odd, "is in the middle of a byte"),
    (
        "copy-dtype",
        lambda b: asc.data_copy(b.taken(asc.int32), b.x_gm, 8),
        "data_copy of float32 to int32: it copies, cast converts",
    ),
    (
        "copy-within-ub",
        lambda b: asc.data_copy(b.taken(), b.taken(), 8),
        "between a GlobalTensor and a LocalTensor, not LocalTensor to LocalTensor",
    ),
    (
        "pad-missing",
        lambda b: asc.data_copy_pad(b.taken(), b.x_gm, BLOCKS),
        "data_copy_pad to UB takes a DataCopyPadExtParams",
    ),
    (
        "pad-to-gm",
        lambda b: asc.data_copy_pad(
            b.x_gm, b.taken(), BLOCKS, asc.DataCopyPadExtParams(asc.float32)
        ),
        "data_copy_pad to GM takes no padding",
    ),
    (
        "pad-dtype",
        lambda b: asc.data_copy_pad(b.taken(), b.x_gm, BLOCKS, asc.DataCopyPadExtParams(asc.half)),
        "padding of float16 for a copy of float32",
    ),
    (
        "pad-value",
        lambda b: asc.data_copy_pad(
            b.taken(asc.int16),
            b.x_gm16,
            BLOCKS,
            asc.DataCopyPadExtParams(asc.int16, True, 0, 1, 70000),
        ),
        "padding_value 70000 is no number of int16",
    ),
    (
        "duplicate-half",
        lambda b: asc.duplicate(b.taken(asc.int16), 1.5, 8),
        "duplicate fills int16 with an integer, not 1.5",
    ),
    (
        "rsv",
        lambda b: asc.data_copy_pad(b.x_gm, b.taken(), asc.DataCopyExtParams(1, 32, rsv=1)),
        "rsv is reserved and must be 0, is 1",
    ),
    ("cast-gm", lambda b: asc.cast(b.x_gm, b.taken(), RINT, 8), "cast works on LocalTensors"),
    (
        "cast-mode",
        lambda b: asc.cast(scratch(b), b.taken(), "RINT", 8),
        "cast takes a RoundMode, not 'RINT'",
    ),
    (
        "cast-mask-words",
        lambda b: asc.cast(scratch(b), b.taken(), TRUNC, [1], 1, asc.UnaryRepeatParams()),
        "a mask is a number of lanes or two words of 64 bits, not [1]",
    ),
    (
        "cast-mask-register",
        lambda b: asc.cast(scratch(b), b.taken(), TRUNC, 64, 1, asc.UnaryRepeatParams(), False),
        "the mask register is not simulated",
    ),
    ("and-dtype", lambda b: asc.duplicate(b.taken(), 1, 8), "simulated for int16, not float32"),
    ("event", lambda b: asc.set_flag("MTE2_V", 0), "a flag takes a HardEvent, not 'MTE2_V'"),
    ("barrier", lambda b: asc.pipe_barrier("V"), "pipe_barrier takes a PipeID, not 'V'"),
    (
        "saturation",
        lambda b: asc.set_saturation_flag(True, True),
        "set_saturation_flag takes a SaturationMode, not True",
    ),
    ("nested", lambda b: flagged[1](), "a kernel cannot launch another"),
]


@pytest.mark.parametrize(("body", "text"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_wrong_use_is_refused_at_the_call(body: Callable[[Bench], object], text: str) -> None:
    @asc.jit
    def kernel(x: asc.GlobalAddress) -> None:
        body(Bench(x))

    with pytest.raises(asc.KernelError, match=re.escape(text)):
        kernel[1](zeros("FP32", 128))


@pytest.mark.parametrize(
    "call",
    [
        asc.get_block_idx,
        asc.TPipe,
        lambda: asc.TQue(asc.TPosition.VECIN, 1),
        lambda: asc.LocalTensor(asc.half, asc.TPosition.VECIN, 0, 16),
        lambda: asc.pipe_barrier(asc.PipeID.PIPE_V),
        queued,
    ],
    ids=["get_block_idx", "TPipe", "TQue", "LocalTensor", "pipe_barrier", "kernel"],
)
def test_nothing_works_outside_a_kernel(call: Callable[[], object]) -> None:
    with pytest.raises(asc.KernelError, match="outside a kernel"):
        call()


def test_a_kernel_that_failed_leaves_none_running() -> None:
    with pytest.raises(asc.KernelError):
        queued[1](zeros("FP32", 8), zeros("FP16", 8), 8, 8, "RINT")
    with pytest.raises(asc.KernelError, match="outside a kernel"):
        asc.get_block_num()


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        (zeros("FP32", 16)[::2], zeros("FP16", 8), "x is not contiguous"),
        (np.zeros(8), zeros("FP16", 8), "unknown dtype float64"),
        (np.zeros(8, ">f4"), zeros("FP16", 8), "unknown dtype >f4"),
        (zeros("FP16", 9), zeros("INT4", 9), "y has 9 elements of int4b_t: two share a byte"),
    ],
    ids=["strided", "fp64", "big-endian", "odd-int4"],
)
def test_arrays_that_are_no_global_memory(x: np.ndarray, y: np.ndarray, text: str) -> None:
    with pytest.raises(asc.KernelError, match=re.escape(text)):
        queued[1](x, y, 8, 8, RINT)


def test_one_array_is_one_parameter() -> None:
    x = zeros("FP32", 16)
    with pytest.raises(asc.KernelError, match="x and y share memory"):
        queued[1](x, x[8:], 8, 8, RINT)


@pytest.mark.parametrize("cores", [0, 41, -1, 2.0, (8, None)])
def test_only_the_cores_of_the_chip(cores: Any) -> None:
    with pytest.raises(asc.KernelError, match=r"1 to 40, the vector cores of Asc|without a stream"):
        queued[cores]


def test_options_make_another_kernel() -> None:
    kernel = queued.options(chip=CHIPS["Ascend910_9392"], copy_completion="earliest")
    assert (kernel.launch_options.chip.name, kernel.launch_options.copy_completion) == (
        "Ascend910_9392",
        "earliest",
    )
    assert kernel.options(exact=True).launch_options.chip.name == "Ascend910_9392"
    with pytest.warns(DeprecationWarning, match=r"options\(copy_completion=\)") as warned:
        former = queued.options(landing="earliest")
    assert former.launch_options.copy_completion == "earliest"
    assert warned[0].filename == __file__
    assert queued.launch_options == asc.LaunchOptions()
    assert kernel[np.int64(48)].core_num == 48
    with pytest.raises(ValueError, match="copy_completion must be one of"):
        queued.options(copy_completion="sometimes")
    with pytest.raises(ValueError, match="unknown chip 'Ascend310'"):
        queued.options(chip="Ascend310")


def test_dtypes_know_their_size() -> None:
    assert asc.float32.sizeof() == 4
    assert asc.half is asc.float16
    with pytest.raises(ValueError, match="two elements of int4b_t share a byte"):
        asc.int4b_t.sizeof()
