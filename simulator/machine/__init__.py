"""The machine that executes tile programs, instruction by instruction, and forgives nothing."""
