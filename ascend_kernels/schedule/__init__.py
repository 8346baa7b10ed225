"""A kernel's whole tile program: its type and its lowering; `reader` and `planner` make it."""
