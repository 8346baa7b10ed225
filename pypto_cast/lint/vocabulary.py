"""The functions of the kernel languages that the reader of Python knows, by their effect.

A name that is not listed has an unknown result.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from simulator.numbers.formats import E4M3FN, E5M2, Format
from simulator.numbers.rounding import RoundMode

ROOTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pypto": "pypto",
        "pypto_cast": "pypto_cast",
        "triton.language": "triton",
        "tilelang.language": "tilelang",
        "torch": "torch",
        "numpy": "numpy",
    }
)
"""The module of each language, and its short name here."""
PYPTO: Final = ("pypto", "pypto_cast")
DECORATORS: Final[Mapping[str, str]] = MappingProxyType(
    {"tilelang.jit": "tilelang", "tilelang.language.prim_func": "tilelang", "triton.jit": "triton"}
)
"""The language of a function by its decorator: a dtype that is a text in it is the language's."""
FLOAT8_NAMES: Final[Mapping[str, Format]] = MappingProxyType(
    {
        "float8e4nv": E4M3FN,
        "float8e5": E5M2,
        "float8_e4m3": E4M3FN,
        "e4m3_float8": E4M3FN,
        "e5m2_float8": E5M2,
    }
)
"""Names of eight-bit floats that triton and tilelang alone have."""


class Effect(enum.Enum):
    """The relation of a result to the operands."""

    CAST = "converts"
    CAST_TO = "converts, and the dtype comes first"
    CAST_INTO = "converts into a buffer"
    COPY = "copies, and converts where dtypes differ"
    PART = "elements of the operand in another shape"
    ELEMENTWISE = "the operand's format and shape"
    FLOAT = "a float of the operand's format"
    INTEGRAL = "rounds to integers, in the operand's format"
    FLOOR = "limits from below"
    CAP = "limits from above"
    CLAMP = "limits on both sides"
    TRUTH = "compares"
    SUM = "sums"
    CREATE = "makes a tensor of a shape and a dtype"
    MULTIPLY = "the format that out_dtype names"
    TILE = "sets the vector tile shape"
    LOOP = "loops"
    INTEGERS = "makes integers"


def _all(effect: Effect, names: str) -> dict[str, Effect]:
    return dict.fromkeys(names.split(), effect)


_COMMON: Final = (
    _all(Effect.INTEGRAL, "floor ceil trunc round rint nearbyint")
    | _all(Effect.CLAMP, "clip clamp")
    | _all(Effect.FLOOR, "maximum clamp_min")
    | _all(Effect.CAP, "minimum clamp_max")
    | _all(Effect.TRUTH, "eq ne lt le gt ge equal not_equal isclose allclose array_equal")
    | _all(Effect.TRUTH, "assert_close assert_allclose assert_array_equal assert_equal")
    | _all(Effect.PART, "reshape transpose permute squeeze unsqueeze concat cat clone flatten")
    | _all(Effect.PART, "expand broadcast_to contiguous expand_dims trans ravel")
    | _all(Effect.ELEMENTWISE, "add sub mul neg abs exp log sqrt rsqrt sigmoid relu pow where")
    | _all(Effect.ELEMENTWISE, "tanh sin cos div sum_accumulate select negative absolute")
    | _all(Effect.SUM, "sum")
)
EFFECTS: Final[Mapping[str, Mapping[str, Effect]]] = MappingProxyType(
    {
        "pypto": _COMMON
        | {"cast": Effect.CAST, "matmul": Effect.MULTIPLY, "view": Effect.PART}
        | {"set_vec_tile_shapes": Effect.TILE}
        | _all(Effect.LOOP, "loop loop_unroll")
        | _all(Effect.CREATE, "tensor Tensor zeros ones full")
        | _all(Effect.PART, "expand_clone assemble gather index_select"),
        "triton": _COMMON
        | {"cast": Effect.CAST, "math.rint": Effect.INTEGRAL, "math.floor": Effect.INTEGRAL}
        | _all(Effect.INTEGRAL, "math.ceil extra.libdevice.rint extra.cuda.libdevice.rint")
        | _all(Effect.CREATE, "zeros full")
        | _all(Effect.INTEGERS, "arange program_id num_programs cdiv"),
        "tilelang": {
            "cast": Effect.CAST,
            "Cast": Effect.CAST_TO,
            "tile.cast": Effect.CAST_INTO,
            "npuir_cast": Effect.CAST_INTO,
            "copy": Effect.COPY,
            "floor": Effect.INTEGRAL,
            "ceil": Effect.INTEGRAL,
            "round": Effect.INTEGRAL,
            "trunc": Effect.INTEGRAL,
            "nearbyint": Effect.INTEGRAL,
            "clamp": Effect.CLAMP,
            "min": Effect.CAP,
            "max": Effect.FLOOR,
        }
        | _all(Effect.CREATE, "Tensor Buffer alloc_ub alloc_shared alloc_fragment alloc_L1")
        | _all(Effect.CREATE, "alloc_L0A alloc_L0B alloc_L0C alloc_local alloc_var")
        | _all(Effect.ELEMENTWISE, "exp log sqrt abs"),
        "torch": _COMMON | _all(Effect.TRUTH, "testing.assert_close"),
        "numpy": _COMMON
        | _all(Effect.TRUTH, "testing.assert_array_equal testing.assert_equal")
        | _all(Effect.TRUTH, "testing.assert_allclose testing.assert_array_almost_equal"),
    }
)
"""By the short name of a language; pypto_cast has those of pypto."""
METHODS: Final[Mapping[str, Effect]] = MappingProxyType(
    {**_COMMON, **_all(Effect.CAST, "to cast astype")}
)
"""Methods of tensors. `x.view` takes a shape or a dtype, and is left out."""

MODES: Final[Mapping[str, RoundMode | None]] = MappingProxyType(
    {f"CAST_{mode.name}": mode for mode in RoundMode}
    | {mode.name.lower(): mode for mode in RoundMode}
    | {"CAST_NONE": None, "rtne": RoundMode.RINT, "rtz": RoundMode.TRUNC}
)
"""Round modes by their names in the languages; None: the default."""
SATURATIONS: Final[Mapping[str, bool]] = MappingProxyType(
    {"ON": True, "OFF": False, "saturate": True, "trunc": False, "SAT": True, "NO_SAT": False}
)
