"""pypto's operations on matrices, which the cube cores carry out."""
