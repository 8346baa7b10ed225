"""A model's config.json after its weights changed: their dtype, and how codes become weights.

Codes have the layouts of the package compressed-tensors, which `code_formats` names. Beside the
codes `X.weight` stand `X.weight_scale`, [rows, 1] for a scale a row, and with zero points
`X.weight_zero_point` of the same shape; the weight is (code - zero point) * scale. Two codes of
FP4 share a byte of `X.weight_packed`, the first in the low bits; the scales of MX are bytes, the
exponent with 127 added. `quantization_config` says which modules have them. Of the scales of
channels its convention knows those of rows alone; others are written likewise, without that entry.

Source: compressed-tensors, `compressors` and `quantization` (QuantizationConfig, QuantizationArgs).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pypto_cast.checkpoints.casting import Job
from pypto_cast.checkpoints.code_formats import BLOCK_ELEMS
from pypto_cast.checkpoints.scales import Quantizing
from pypto_cast.dtypes.data_types import ROWS
from simulator.numbers.formats import FloatFormat

_WEIGHT: Final = ".weight"


def quantization_config(jobs: Iterable[Job], quantizing: Quantizing) -> dict[str, Any]:
    """The entry of a model's config.json; its targets name the modules, one by one."""
    modules = [job.stored.name.removesuffix(_WEIGHT) for job in jobs if job.quantizing is not None]
    weights = {
        **quantizing.codes.arguments,
        "symmetric": quantizing.symmetric,
        "strategy": quantizing.strategy,
        "dynamic": False,
    }
    if quantizing.is_by_blocks:
        weights["block_structure"] = [BLOCK_ELEMS, BLOCK_ELEMS]
    layout = quantizing.codes.layout
    return {
        "quant_method": "compressed-tensors",
        "format": layout,
        "quantization_status": "compressed",
        "config_groups": {"group_0": {"targets": modules, "weights": weights, "format": layout}},
        "ignore": [],
    }


_TORCH_NAMES: Final[Mapping[str, str]] = {
    row.safetensors: row.torch
    for row in reversed(ROWS)
    if row.safetensors and row.torch and isinstance(row.format, FloatFormat) and row.bits > 8
}
"""torch's names of the dtypes that weights are computed in, the widest first."""
_KEYS: Final = ("torch_dtype", "dtype")
"""transformers wrote the first, and from 4.56 on the second."""
_QUANTIZATION: Final = "quantization_config"


def weights_dtype(jobs: Iterable[Job]) -> str:
    """torch's name of the dtype of weights, of several the one of the most elements.

    transformers writes that of the first floating parameter of a model (get_parameter_dtype), an
    order that a checkpoint does not keep; it is the embedding in most models, whose dtype most
    weights share. Codes with scales do not count; it is empty if there are no other floats.
    """
    elems: Counter[str] = Counter()
    for job in jobs:
        if job.result.dtype in _TORCH_NAMES:
            elems[job.result.dtype] += job.result.elems
    # Of equally many elements the wider dtype, which stands first.
    most = max(_TORCH_NAMES, key=lambda name: elems[name])
    return _TORCH_NAMES[most] if elems[most] else ""


def with_dtype(document: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    """A document whose entries for the weights' dtype name this one, in nested configs too."""

    def changed(key: str, value: Any) -> Any:
        if key in _KEYS and isinstance(value, str) and dtype:
            return dtype
        if key != _QUANTIZATION and isinstance(value, dict):
            return with_dtype(value, dtype)
        return value

    return {key: changed(key, value) for key, value in document.items()}


def updated_config(
    document: Mapping[str, Any], jobs: Iterable[Job], scaled: Quantizing | None
) -> dict[str, Any]:
    """A config as it is after a cast.

    Args:
        document: as it was, empty if there was none.
        jobs: of all tensors.
        scaled: the rule of scales, if there are some and the layout knows them.
    """
    jobs = tuple(jobs)
    updated = with_dtype(document, weights_dtype(jobs))
    if scaled is not None:
        updated[_QUANTIZATION] = quantization_config(jobs, scaled)
    return updated
