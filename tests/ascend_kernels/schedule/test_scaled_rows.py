"""quantize and dequantize as tile operations, unconfirmed by a wheel: release 0.2.0 lacks them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pypto_cast as pypto
from ascend_kernels.schedule.planner.tiles.tile_graph import PlanError
from pypto_cast.kernel.jit import Kernel
from simulator.machine.memory import SimulatorFault

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
SHAPE = (30, 100)
DTYPES = {"quantize": (pypto.DT_FP32, pypto.DT_INT8), "dequantize": (pypto.DT_INT8, pypto.DT_FP32)}


def scaling(name: str, axis: int, zeros: bool = False) -> Kernel:
    dtype, given = DTYPES[name]
    given = pypto.DT_UINT8 if zeros and name == "quantize" else given
    length = SHAPE[0 if axis == -1 else 1]

    @pypto.frontend.jit
    def scaled(
        x: pypto.Tensor(list(SHAPE), dtype),
        scale: pypto.Tensor([length], pypto.DT_FP32),
        zero: pypto.Tensor([length], pypto.DT_FP32),
        y: pypto.Tensor(list(SHAPE), given),
    ) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        y[:] = getattr(pypto, name)(x, scale, given, axis, zero if zeros else None)

    return scaled


def drawn(name: str, axis: int, zeros: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(31)
    length = SHAPE[0 if axis == -1 else 1]
    x = rng.standard_normal(SHAPE).astype(np.float32) * np.float32(80)
    x[0, :9] = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e30, -1e30, 0.5, 2.5]
    given = np.dtype(np.uint8 if zeros else np.int8)
    if name == "dequantize":
        x, given = rng.integers(-128, 128, SHAPE).astype(np.int8), np.dtype(np.float32)
    scale = rng.random(length, np.float32) + np.float32(0.5)
    scale[0] = 1.0
    return [x, scale, rng.integers(0, 200, length).astype(np.float32), np.zeros(SHAPE, given)]


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("axis", [-1, -2])
@pytest.mark.parametrize("name", [*DTYPES])
def test_rows_and_columns_give_the_bits_of_the_tensor_level(
    name: str, axis: int, zeros: bool
) -> None:
    kernel, arrays = scaling(name, axis, zeros), drawn(name, axis, zeros)
    expected = [each.copy() for each in arrays]
    kernel(*expected)
    with pypto.options(fidelity="instructions", strict=True):
        kernel(*arrays)
    assert_array_equal(arrays[-1], expected[-1])
    operations = [x for leaf in kernel.schedule(*arrays).leaves for x in leaf.operations]
    opcodes = {each.opcode for each in operations} - {"SYNC_SRC", "SYNC_DST", "BAR.V"}
    end = "_ASYM" if zeros else "_SYM"
    wanted = {"COPY_IN", "COPY_OUT", name.upper() + (end if name == "quantize" else "")}
    wanted |= {"VEC_DUP"} if name == "dequantize" and not zeros else set()
    assert opcodes == wanted | ({"TRANSPOSE_VNCHWCONV"} if axis == -2 else set())


def test_scratch_is_of_the_tile_shape_and_each_row_has_a_number() -> None:
    kernel, arrays = scaling("quantize", -1), drawn("quantize", -1, zeros=False)
    plan = kernel.schedule(*arrays)
    leaf, *others = plan.leaves
    place = next(k for k, x in enumerate(leaf.operations) if x.opcode == "QUANTIZE_SYM")
    operation = leaf.operations[place]
    assert operation.outputs[1].shape == (16 * 64,)  # quantization.cpp:889
    source, scale = operation.inputs
    rows = scale.valid_shape[0]
    assert isinstance(rows, int)
    fewer = replace(operation, inputs=(source, replace(scale, valid_shape=(rows - 1,))))
    damaged = (*leaf.operations[:place], fewer, *leaf.operations[place + 1 :])
    plan = replace(plan, leaves=(replace(leaf, operations=damaged), *others))
    with pytest.raises(SimulatorFault, match=rf"has \({rows - 1},\) numbers for the rows of"):
        plan.times_written(*arrays)


def test_elements_that_another_operation_reads_are_refused() -> None:
    @pypto.frontend.jit
    def shared(
        x: pypto.Tensor([16, 64], pypto.DT_FP32),
        scale: pypto.Tensor([16], pypto.DT_FP32),
        codes: pypto.Tensor([16, 64], pypto.DT_INT8),
        y: pypto.Tensor([16, 64], pypto.DT_FP32),
    ) -> None:
        pypto.set_vec_tile_shapes(16, 64)
        wide = x * 2.0
        codes[:] = pypto.quantize(wide, scale, pypto.DT_INT8, -1)
        y[:] = wide + 1.0

    x, scale = np.ones((16, 64), np.float32), np.ones(16, np.float32)
    with pytest.raises(PlanError, match=r"QUANTIZE_SYM .* multiplies its elements where they lie"):
        shared.schedule(x, scale, np.zeros((16, 64), np.int8), x.copy())
