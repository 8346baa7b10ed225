"""Chinese text without the spaces that a browser makes of ends of lines."""

from __future__ import annotations

import re
from typing import Final

_BREAK: Final = re.compile(
    r"(?<=[\u3000-\u9fff\uff00-\uffef])\n *(?=[\u3000-\u9fff\uff00-\uffef])",
)


def joined(markdown: str) -> str:
    """The text with each line that ends within a Chinese sentence joined to the next one."""
    return _BREAK.sub("", markdown)
