"""Routes: chains of native casts between number formats, and how each compares with one rounding.

Knows formats and the rows of the matrix; no names of pypto.
"""
