"""Products of matrices as the cube core gives them."""

from simulator.arithmetic.cube.fixpipe import dequantised, scale_of
from simulator.arithmetic.cube.matrix_product import matmul

__all__ = ["dequantised", "matmul", "scale_of"]
