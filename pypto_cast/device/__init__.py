"""The device check: a device's conduct beside what this package assumes of it."""
