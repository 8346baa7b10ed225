"""The kernels that ask a device what it does: their table, and how they are run."""
