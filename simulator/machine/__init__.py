"""The machine that executes tile programs, instruction by instruction, and checks each."""
