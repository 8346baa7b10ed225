"""Checkpoint files: their form, and casting one tensor by tensor."""
