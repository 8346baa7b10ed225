"""A leaf's order, buffers, addresses, spills and flags."""
