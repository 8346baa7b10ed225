"""Kernels: jit, loop, view and assemble, and their certainty."""
