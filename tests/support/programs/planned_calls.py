"""Arguments of kernels whose calls are planned."""

from __future__ import annotations

import numpy as np


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    drawn = np.random.default_rng(3)
    return [drawn.standard_normal(shape, np.float32) for shape in shapes]
