"""The stubs that type checkers and editors read: `python -m docs.generators.operation_stubs`.

The names of `pypto_cast.operations` and the methods of a tensor are made of the rows when the
package is loaded; the stubs list them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pypto_cast import operations
from pypto_cast.operations.operation_rows import NO_METHOD_HAS, ROWS
from pypto_cast.tensors import operation_methods

_HEAD: Final = '"""{}; docs.generators.operation_stubs wrote it of the rows."""\n\n'
_DOTTED: Final = re.compile(r"\b((?:[a-z_]+\.)+)([A-Z]\w*)")
"""A class and its module."""


def _names() -> str:
    homes = (f"from {ROWS[n].function.__module__} import {n}\n" for n in operations.__all__)
    listed = (f'    "{name}",\n' for name in operations.__all__)
    title = _HEAD.format("The operations, by name")
    return "".join((title, *sorted(homes), "\n__all__ = [\n", *listed, "]\n"))


def _methods() -> str:
    methods = (ROWS[name].function for name in operations.__all__ if ROWS[name].is_method)
    body = "".join(map(_method, methods)).replace("pypto_cast.tensors.tensor.Tensor", "_Tensor")
    homes = {f"from {module[:-1]} import {name}\n" for module, name in _DOTTED.findall(body)}
    title = _HEAD.format("The operations that are methods of a tensor")
    return "".join(
        (
            *(title, *sorted(homes), "from typing import TypeVar\n\n"),
            *(
                '_Tensor = TypeVar("_Tensor", bound="OperationMethods")\n\n',
                "class OperationMethods:\n",
            ),
            _DOTTED.sub(r"\2", body),
        )
    )


def _method(function: Callable[..., object]) -> str:
    signature = inspect.signature(function, eval_str=True)
    first, *others = (each for n, each in signature.parameters.items() if n not in NO_METHOD_HAS)
    shown = signature.replace(parameters=[first.replace(name="self"), *others])
    return f'    def {function.__name__}{shown}:\n        """See `pypto.{function.__name__}`."""\n'


STUBS: Final = MappingProxyType[Path, Callable[[], str]](
    {
        Path(operations.__file__).with_suffix(".pyi"): _names,
        Path(operation_methods.__file__).with_suffix(".pyi"): _methods,
    }
)
"""The text of each stub."""

if __name__ == "__main__":
    for path, text in STUBS.items():
        path.write_text(text(), encoding="utf-8")
