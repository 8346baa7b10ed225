"""The device check: a device's behaviour beside this package's assumptions."""
