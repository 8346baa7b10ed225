"""The commands, a file each: options, text and JSON."""
