"""Products of matrices as the cube core gives them."""

from simulator.arithmetic.cube.matrix_product import dequantised, matmul, scale_of

__all__ = ["dequantised", "matmul", "scale_of"]
