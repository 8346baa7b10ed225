"""The dialects that `compare` lays side by side: a name, and a rule for every pair of formats.

Nothing here imports a framework; the tests hold every rule against the installed one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pypto_cast.dialects.rules.graphs import (
    fake,
    faked,
    faked_by_plugin,
    onnx,
    openvino,
    opset_acts,
    saturate_acts,
)
from pypto_cast.dialects.rules.libraries import numpy, torch
from pypto_cast.dialects.rules.paddle import paddle
from pypto_cast.dialects.rules.pypto import pypto
from pypto_cast.dialects.rules.rule import DialectRule
from simulator.numbers.formats import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A framework, or a setting of one.

    Attributes:
        name: for tables and arguments.
        rule: the rule of a pair under a round mode, which only pypto has.
        applies: whether it has a row of its own for a pair of source and destination: a setting of
            a framework only where it acts, an operation only where it takes the pair.
    """

    name: str
    rule: DialectRule
    applies: Callable[[Format, Format], bool] = lambda src, dst: True

    def __str__(self) -> str:
        return self.name


DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            Dialect(name="pypto", rule=pypto(saturate=True)),
            Dialect(name="pypto-off", rule=pypto(saturate=False)),
            Dialect(name="torch", rule=torch),
            Dialect(name="onnx", rule=onnx()),
            Dialect(name="onnx-off", rule=onnx(saturate=False), applies=saturate_acts),
            Dialect(name="onnx-19", rule=onnx(opset=19), applies=opset_acts),
            Dialect(name="openvino", rule=openvino),
            Dialect(name="fake-reference", rule=fake("reference"), applies=faked),
            Dialect(name="fake-plugin", rule=fake("plugin"), applies=faked_by_plugin),
            Dialect(name="fake-rne", rule=fake("rne"), applies=faked),
            Dialect(name="paddle", rule=paddle),
            Dialect(name="numpy", rule=numpy),
        )
    }
)
"""By name: "pypto" is SaturationMode.ON, "pypto-off" OFF; "onnx" is Cast-25 with saturate=1,
"onnx-off" with saturate=0, "onnx-19" Cast-19; "fake-" the numerics of OpenVINO's FakeConvert."""
