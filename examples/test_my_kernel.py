"""Tests a kernel of one's own with the fixture and the checks of the package.

python -m pytest examples/test_my_kernel.py
"""

import numpy as np
import pytest
from cast_with_tails import cast_with_tails
from hello_cast import hello_cast

import pypto_cast as pypto
from pypto_cast.pytest_plugin import PyptoSim
from pypto_cast.testing import assert_bits_equal, boundary_values, special_values


def test_rounds_as_numpy_does(pypto_sim: PyptoSim) -> None:
    x = boundary_values(pypto.DT_FP32, pypto.DT_FP16)[: 1000 * 64].reshape(-1, 64)
    out = np.empty(x.shape, np.float16)
    hello_cast(x, out)
    with np.errstate(over="ignore"):
        assert_bits_equal(out, x.astype(np.float16), nans="class")


@pytest.mark.pypto(fidelity="instructions")
@pytest.mark.parametrize("rows", [1, 31, 32, 33, 70])
def test_a_tail_leaves_nothing_out(pypto_sim: PyptoSim, rows: int) -> None:
    x = np.resize(special_values(pypto.DT_FP32), (rows, 64))
    out = np.zeros(x.shape, "bfloat16")
    cast_with_tails(x, out)
    with np.errstate(over="ignore"):
        assert_bits_equal(out, x.astype("bfloat16"), nans="class")
