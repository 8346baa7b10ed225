"""pypto's operations on matrices, which the cube cores carry out."""

from pypto_cast.operations.cube.matrix_functions import matmul, transposed_batchmatmul

__all__ = ["matmul", "transposed_batchmatmul"]
