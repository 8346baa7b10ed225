"""What the `pypto-cast` command does, and how it shows it."""
