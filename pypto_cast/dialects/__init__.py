"""Casts of other ecosystems, one dialect a module, each with the words of its own ecosystem.

A dialect is a table plus a call into the numerical core; none imports its framework unless asked.
`compare` and `compare_formats` show one conversion in all of them, side by side.
"""

from pypto_cast.dialects.comparison import Comparison as Comparison
from pypto_cast.dialects.comparison import DialectDifference as DialectDifference
from pypto_cast.dialects.comparison import Row as Row
from pypto_cast.dialects.comparison import compare as compare
from pypto_cast.dialects.comparison import compare_formats as compare_formats
from pypto_cast.former_names import names_of as _names_of

__getattr__ = _names_of(__name__)
