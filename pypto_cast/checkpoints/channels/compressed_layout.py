"""The layout of the package compressed-tensors for INT8 weights, format `int-quantized`.

Beside the codes `X.weight` (INT8) stand `X.weight_scale`, [rows, 1] for a scale a row, and with
zero points `X.weight_zero_point` (INT8) of the same shape; the weight is (code - zero point) *
scale.
`quantization_config` in the model's config.json says which modules have them. Its convention knows
scales of rows alone ("channel"); others are written in the same way, without that entry.

Source: compressed-tensors, `compressors` and `quantization` (QuantizationConfig, QuantizationArgs).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pypto_cast.checkpoints.casting import Job
from pypto_cast.checkpoints.channels.scales import Quantizing

_WEIGHT: Final = ".weight"


def quantization_config(jobs: Iterable[Job], quantizing: Quantizing) -> dict[str, Any]:
    """The entry of a model's config.json; its targets name the modules, one by one."""
    modules = [job.stored.name.removesuffix(_WEIGHT) for job in jobs if job.quantizing is not None]
    weights = {
        "num_bits": 8,
        "type": "int",
        "symmetric": quantizing.symmetric,
        "strategy": "channel",
        "dynamic": False,
    }
    return {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "config_groups": {
            "group_0": {"targets": modules, "weights": weights, "format": "int-quantized"}
        },
        "ignore": [],
    }
