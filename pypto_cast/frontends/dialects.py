"""The dialects that `explain` lays side by side: a name, and a rule for every pair of formats.

Nothing here imports a framework; the tests hold every rule against the installed one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pypto_cast.dtypes import CastMode
from pypto_cast.frontends.rules.graphs import onnx, openvino
from pypto_cast.frontends.rules.libraries import numpy, torch
from pypto_cast.frontends.rules.pypto import pypto
from pypto_cast.frontends.rules.rule import Rule
from simulator.formats import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A framework, or a setting of one.

    Attributes:
        name: for tables and arguments.
        rule: the rule of a pair under a round mode, which only pypto has.
    """

    name: str
    rule: Callable[[Format, Format, CastMode], Rule]

    def __str__(self) -> str:
        return self.name


DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            Dialect(name="pypto", rule=pypto(saturate=True)),
            Dialect(name="pypto-off", rule=pypto(saturate=False)),
            Dialect(name="torch", rule=torch),
            Dialect(name="onnx", rule=onnx),
            Dialect(name="openvino", rule=openvino),
            Dialect(name="numpy", rule=numpy),
        )
    }
)
"""By name; "pypto" is SaturationMode.ON, "pypto-off" is OFF."""
