"""The choice of a tile shape: one, many at once, as a report."""
