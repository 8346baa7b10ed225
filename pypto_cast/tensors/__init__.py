"""Tensor and all that it is made of."""
