"""The `pypto-cast` command; in `commands/` a file each, with its options, its text and its JSON."""
