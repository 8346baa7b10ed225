"""The device check: a device's behaviour beside what this package assumes of it."""
