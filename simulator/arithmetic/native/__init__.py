"""The native executor of tile operations."""
