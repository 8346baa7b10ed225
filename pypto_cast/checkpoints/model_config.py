"""A model's config.json after its weights changed: their dtype, and how codes become weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pypto_cast.checkpoints.casting import Job
from pypto_cast.checkpoints.channels.compressed_layout import quantization_config
from pypto_cast.checkpoints.channels.scales import Quantizing

_TORCH_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
)
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
    """A document in which what names the weights' dtype names this one, in nested configs too."""

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
