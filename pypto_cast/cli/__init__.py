"""The `pypto-cast` command: one module a command, with its options, its text and its JSON."""
