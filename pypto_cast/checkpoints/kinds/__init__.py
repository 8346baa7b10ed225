"""The kinds of checkpoint files: headers, and elements a block at a time."""
