"""The casts and operations of a run: places, steps, causes, memory."""
