"""Testing kernels: values worth casting, and a comparison of bits that says where they differ.

`strategies` draws tensors with hypothesis; the fixture `pypto_sim` comes with pytest by itself.
"""

from pypto_cast.testing.bits import BitsDifferError, Difference, assert_bits_equal, differences
from pypto_cast.testing.values import boundary_values, special_values

__all__ = [
    "BitsDifferError",
    "Difference",
    "assert_bits_equal",
    "boundary_values",
    "differences",
    "special_values",
]
