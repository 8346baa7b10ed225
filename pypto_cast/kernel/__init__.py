"""Kernels: jit, loop, view and assemble, and what they record."""
