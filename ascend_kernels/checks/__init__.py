"""The kernels that ask a device for its behaviour: their table, and their launch."""
