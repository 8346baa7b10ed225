"""x"""

from __future__ import annotations

from typing import Final

ROWS: Final[tuple[tuple[str, str, float, float, float, int, int], ...]] = ()
