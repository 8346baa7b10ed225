"""The operations that are methods of a tensor.

A short file because type checkers and editors read the generated stub beside it instead:
`python -m docs.generators.operation_stubs`.
"""


class OperationMethods:
    """`x.exp()` and the like; `operators.register_methods` gives it the functions."""

    __slots__ = ()
