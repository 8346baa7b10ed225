"""ConvertPromoteTypes against the installed openvino: every type, error and value."""

from __future__ import annotations

import itertools
import re
from functools import cache

import numpy as np
import pytest
from support.environment import openvino_nodes as peer
from support.numbers.codes import SEED

from pypto_cast.dialects import openvino
from pypto_cast.dialects.openvino.convert import convert
from pypto_cast.dialects.openvino.element_types import ELEMENT_TYPES, OTHER_TYPES, known_name
from simulator.numbers.formats import FloatFormat, IntFormat
from simulator.numbers.rounding import boundary_codes

TYPES = tuple(ELEMENT_TYPES)
ALL_TYPES = (*TYPES, *OTHER_TYPES)
SHAPES: dict[int | None, tuple[int, ...] | None] = {None: None, 0: (), 1: (1,), 3: (2, 1, 3)}
FLAGS = tuple(itertools.product([False, True], repeat=2))


def runtime_type(
    types: tuple[str, str],
    ranks: tuple[int | None, int | None],
    unsafe: bool,
    pytorch: bool,
    target: str = "f32",
) -> str:
    """The name of the output type, or the last line of the error."""
    inputs = [peer.parameter(name, SHAPES[rank]) for name, rank in zip(types, ranks, strict=True)]
    try:
        node = peer.opset14.convert_promote_types(*inputs, unsafe, pytorch, target)
    except RuntimeError as error:
        check, *_, sentence = str(error).strip().splitlines()
        return sentence if "While validating" not in sentence else check.split(" at ")[0]
    outputs = {node.get_output_element_type(place).to_string() for place in range(2)}
    assert len(outputs) == 1
    return str(outputs.pop())


def our_type(
    types: tuple[str, str],
    ranks: tuple[int | None, int | None],
    unsafe: bool,
    pytorch: bool,
    target: str = "f32",
) -> str:
    try:
        return openvino.promoted_type(
            *types,
            rank0=ranks[0],
            rank1=ranks[1],
            promote_unsafe=unsafe,
            pytorch_scalar_promotion=pytorch,
            u64_integer_promotion_target=target,
        )
    except openvino.PromotionError as error:
        return re.split(r" Asked for |: ", str(error))[0]


def test_there_are_no_other_types() -> None:
    assert set(ALL_TYPES) == {
        name for name in dir(peer.ov.Type) if isinstance(getattr(peer.ov.Type, name), peer.ov.Type)
    }


@pytest.mark.parametrize("type0", ALL_TYPES)
def test_every_pair_flag_and_rank(type0: str) -> None:
    for type1 in ALL_TYPES:
        for ranks in itertools.product(SHAPES, repeat=2):
            for flags in FLAGS:
                case = ((type0, type1), ranks, *flags)
                assert our_type(*case) == runtime_type(*case), case


@pytest.mark.parametrize("target", ALL_TYPES)
def test_every_target(target: str) -> None:
    unsigned = [name for name in TYPES if name[0] == "u"]
    for types in itertools.product(unsigned, TYPES):
        for pair in (types, types[::-1]):
            for flags in FLAGS:
                for ranks in ((1, 1), (0, 1), (None, 1)):
                    case = (pair, ranks, *flags, target)
                    assert our_type(*case) == runtime_type(*case), case


@pytest.mark.parametrize("name", ["F32", "Bf16", "BOOLEAN", "f33", "int", ""])
def test_spelling_of_types(name: str) -> None:
    inputs = [peer.parameter("u64", (1,)), peer.parameter("i8", (1,))]
    try:
        node = peer.opset14.convert_promote_types(*inputs, True, False, name)
    except RuntimeError as error:
        sentence = str(error).strip().splitlines()[-1]
        with pytest.raises(openvino.OpenVINOError, match=re.escape(sentence)):
            known_name(name)
    else:
        assert known_name(name) == node.get_output_element_type(0).to_string()


# --- Values -------------------------------------------------------------------------------------

HELD = [name for name, row in ELEMENT_TYPES.items() if row.format is not None]


@cache
def numbers(name: str) -> np.ndarray:
    """Every code of up to 16 bits; of wider types those around every cut, and random ones."""
    fmt = ELEMENT_TYPES[name].format
    assert fmt is not None
    if fmt.bits <= 16:
        return np.arange(1 << fmt.bits, dtype=fmt.code_dtype).view(fmt.dtype)
    rng = np.random.default_rng([SEED, fmt.bits])
    words = rng.integers(0, 1 << fmt.bits, 100_000, dtype=fmt.code_dtype)
    if isinstance(fmt, IntFormat):
        words[::2] >>= rng.integers(0, fmt.bits, words[::2].size, dtype=fmt.code_dtype)
        chosen = [words, boundary_codes(fmt)]
    else:
        usual = rng.standard_normal(200_000) * np.exp2(rng.integers(-30, 20, 200_000))
        chosen = [words, boundary_codes(fmt), usual.astype(fmt.dtype).view(fmt.code_dtype)]
    return np.concatenate(chosen).view(fmt.dtype)


def is_asked_for(src: str, dst: str) -> bool:
    """True if promotion can lead there: from floats to other floats only."""
    floats = [isinstance(ELEMENT_TYPES[name].format, FloatFormat) for name in (src, dst)]
    return src != dst and floats != [True, False]


CONVERSIONS = [pair for pair in itertools.product(HELD, repeat=2) if is_asked_for(*pair)]


@pytest.mark.parametrize(("src", "dst"), CONVERSIONS)
def test_convert_bit_for_bit(src: str, dst: str) -> None:
    values = numbers(src)
    src_format, dst_format = ELEMENT_TYPES[src].format, ELEMENT_TYPES[dst].format
    assert src_format is not None
    assert dst_format is not None
    actual = convert(values, src_format, dst_format)
    np.testing.assert_array_equal(peer.codes_of(actual), peer.codes_of(peer.convert(values, dst)))


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("pytorch", [False, True], ids=["numpy", "pytorch"])
@pytest.mark.parametrize("left", HELD)
def test_values_of_every_accepted_pair(left: str, pytorch: bool, unsafe: bool) -> None:
    """Both outputs are Convert's; a scalar against a dimensioned input, and two dimensioned."""
    accepted = 0
    for right, scalar in itertools.product(HELD, [False, True]):
        inputs = [numbers(left)[-1] if scalar else numbers(left)[-7:], numbers(right)[:5]]
        types = (left, right)
        ranks = (0 if scalar else 1, 1)
        common = runtime_type(types, ranks, unsafe, pytorch)
        if common not in TYPES:
            with pytest.raises(openvino.PromotionError, match=re.escape(common)):
                openvino.convert_promote_types(*inputs, unsafe, pytorch)
            continue
        accepted += 1
        outputs = openvino.convert_promote_types(*inputs, unsafe, pytorch)
        for given, output in zip(inputs, outputs, strict=True):
            given = np.asarray(given)
            wanted = given if peer.NAMES[given.dtype] == common else peer.convert(given, common)
            assert output.dtype == wanted.dtype
            assert output.shape == given.shape
            np.testing.assert_array_equal(peer.codes_of(output), peer.codes_of(wanted))
    assert accepted


@pytest.mark.parametrize("value", [3, 1.5, True, np.int16(3), np.float32(2), np.True_], ids=repr)
def test_types_of_scalars(value: object) -> None:
    constant = peer.opset13.constant(np.zeros(2, np.float64))
    node = peer.opset14.convert_promote_types(value, constant, True)
    source = node.input_value(0)
    assert source.get_partial_shape() == peer.ov.PartialShape([])
    wanted = peer.NUMPY[source.get_element_type().to_string()]
    left, _ = openvino.convert_promote_types(value, value)
    assert left.shape == ()
    assert left.dtype == wanted
