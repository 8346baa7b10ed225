"""Kernels: jit and loop, their schedules, costs and certainty."""
