"""Casts of other ecosystems, one dialect a module, each with the words of its own ecosystem.

A dialect is a table plus a call into the numerical core; none imports its framework unless asked.
`compare` and `compare_formats` show one conversion in all of them, side by side.
"""

from pypto_cast.dialects.comparison import (
    Comparison,
    DialectDifference,
    Row,
    compare,
    compare_formats,
)
from pypto_cast.former_names import names_of

__getattr__ = names_of(__name__)
__all__ = ["Comparison", "DialectDifference", "Row", "compare", "compare_formats"]
