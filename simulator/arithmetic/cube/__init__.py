"""Products of matrices as the cube core gives them."""

from simulator.arithmetic.cube.matrix_product import dequantised as dequantised
from simulator.arithmetic.cube.matrix_product import matmul as matmul
from simulator.arithmetic.cube.matrix_product import quantised as quantised
from simulator.arithmetic.cube.matrix_product import scale_of as scale_of
