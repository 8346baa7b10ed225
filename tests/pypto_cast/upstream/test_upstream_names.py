"""Names of upstream's that change no bit: hints, enums, scalars; and those that are missing."""

from __future__ import annotations

import copy
import importlib
import math
import pickle
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.options.context import current
from pypto_cast.options.hints import GROUPS, merged
from pypto_cast.tensors.symbolic import RuntimeScalar, SymbolicScalar
from pypto_cast.upstream import setters

ANY: Any = pypto.Tensor[[], pypto.DT_FP32]
PASS_DEFAULTS = {
    "vec_nbuffer_setting": {},
    "cube_l1_reuse_setting": {},
    "cube_nbuffer_setting": {-1: 1},
    "sg_set_scope": (-1, False, False),
    "auto_mix_partition": 0,
    "sg_set_ooo_scope": -1,
    "ooo_sched_mode": "",
    "sg_set_tunevf_mode": 0,
    "enable_slice": False,
}


@pytest.fixture(autouse=True)
def _clean(pypto_sim: Any) -> None:
    """No hint outlives a test."""


# --- Set and read back ---------------------------------------------------------------------------


def test_defaults_are_upstreams() -> None:
    assert pypto.get_pass_options() == PASS_DEFAULTS
    assert pypto.experimental.get_operation_options() == {"combine_axis": True}
    codegen = pypto.get_codegen_options()
    assert codegen["soc_version"] == ""
    assert codegen["support_dynamic_aligned"] is False
    assert pypto.get_host_options() == {
        "compile_stage": 0,
        "compile_monitor_enable": 1,
        "compile_timeout": 600,
        "compile_timeout_stage": 0,
        "compile_monitor_print_interval": 60,
    }
    assert pypto.get_verify_options()["pass_verify_error_tol"] == [1e-3, 1e-3]
    assert pypto.get_cube_tile_shapes() == ([], [], [], False)
    assert pypto.get_current_scope().get_matrix_size() == []


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"vec_nbuffer_setting": {-1: 4}}, {-1: 4}),
        ({"vec_nbuffer_setting": {"func1_0": 4, "MM1": 2}}, {"func1_0": 4, "MM1": 2}),
        ({"cube_l1_reuse_setting": {0: (2, "left"), 1: 3}}, {0: (2, "left"), 1: 3}),
        ({"sg_set_scope": 3}, (3, False, False)),
        ({"sg_set_scope": [3, True, False]}, (3, True, False)),
        ({"sg_set_ooo_scope": -1}, -1),
        ({"ooo_sched_mode": "HLF"}, "HLF"),
        ({"sg_set_tunevf_mode": 2}, 2),
        ({"enable_slice": True}, True),
    ],
    ids=str,
)
def test_pass_options_are_kept(given: dict[str, Any], read: Any) -> None:
    (name,) = given
    pypto.set_pass_options(**given)
    assert pypto.get_pass_options() == {**PASS_DEFAULTS, name: read}
    pypto.reset_options()
    assert pypto.get_pass_options() == PASS_DEFAULTS


def test_what_is_not_named_keeps_its_value() -> None:
    pypto.set_codegen_options(soc_version="KirinX90")
    pypto.set_codegen_options(support_dynamic_aligned=True, soc_version=None)
    found = pypto.get_codegen_options()
    assert (found["soc_version"], found["support_dynamic_aligned"]) == ("KirinX90", True)


def test_what_a_getter_gives_is_the_callers() -> None:
    given = {-1: 4}
    pypto.set_pass_options(vec_nbuffer_setting=given)
    given[0] = 1
    pypto.get_pass_options()["vec_nbuffer_setting"][7] = 7
    assert pypto.get_pass_options()["vec_nbuffer_setting"] == {-1: 4}


def test_cube_tiles_matrix_sizes_and_labels() -> None:
    pypto.set_cube_tile_shapes([16, 16], [32, 64], [16, 32])
    assert pypto.get_cube_tile_shapes() == ([16, 16], [32, 64, 64], [16, 32], False)
    pypto.set_cube_tile_shapes([1, 2], [3, 4, 5], n=[6, 7], enable_split_k=True)
    assert pypto.get_cube_tile_shapes() == ([1, 2], [3, 4, 5], [6, 7], True)
    pypto.set_matrix_size([128, 64, 32])
    assert pypto.get_current_scope().get_matrix_size() == [128, 64, 32]
    pypto.set_semantic_label("Query_Linear")
    pypto.set_host_options(compile_monitor_enable=True)  # of 0.2.0; an int in later releases
    assert pypto.get_host_options()["compile_monitor_enable"] is True
    pypto.set_host_options(compile_stage=pypto.CompStage.EXECUTE_GRAPH, compile_timeout=9)
    found = pypto.get_host_options()
    assert found["compile_monitor_enable"] is True
    assert (found["compile_stage"], found["compile_timeout"]) == (3, 9)
    assert pypto.get_current_scope().get_options("host") == pypto.get_host_options()
    pypto.experimental.set_operation_options(combine_axis=False)
    assert pypto.experimental.get_operation_options() == {"combine_axis": False}


@pytest.mark.parametrize(
    ("name", "values", "named", "error", "text"),
    [
        ("set_pass_options", (), {"enable_slice": 1}, TypeError, "enable_slice must be True or"),
        ("set_pass_options", (), {"sg_set_scope": "a"}, TypeError, r"an int or \(int, bool"),
        ("set_pass_options", (), {"sg_set_scope": (1, 2, 3)}, TypeError, "Expected bool"),
        ("set_pass_options", (), {"sg_set_scope": ("1", True, True)}, TypeError, "Expected int"),
        (
            "set_pass_options",
            (),
            {"sg_set_scope": (1, True)},
            TypeError,
            "Expected 3 values, got 2",
        ),
        ("set_pass_options", (), {"ooo_sched_mode": "X"}, ValueError, "'GAPMIN' or 'HLF', not 'X'"),
        ("set_pass_options", (), {"auto_mix_partition": True}, TypeError, "an int, not True"),
        (
            "set_pass_options",
            (),
            {"vec_nbuffer_setting": {0: 1, "func1_0": 2}},
            ValueError,
            "cannot mix",
        ),
        ("set_pass_options", (), {"vec_nbuffer_setting": {0: "a"}}, TypeError, "a dict of ints"),
        (
            "set_pass_options",
            (),
            {"cube_l1_reuse_setting": {0: (1, "up")}},
            ValueError,
            "'left' . 'right'",
        ),
        ("set_pass_options", (), {"speed": 1}, TypeError, "takes vec_nbuffer_setting, .*'speed'"),
        ("set_pass_options", (1,), {}, TypeError, "by name; it got 1 values by position"),
        ("set_codegen_options", (), {"soc_version": 3}, TypeError, "a str, not 3"),
        ("set_host_options", (), {"compile_stage": "all"}, TypeError, "CompStage, not 'all'"),
        ("set_cube_tile_shapes", ([1], [1, 2], [1, 2]), {}, ValueError, r"m must be .* not \[1\]"),
        ("set_cube_tile_shapes", ([1, 2], [1], [1, 2]), {}, ValueError, "k must be .* 2 or 3 ints"),
        ("set_cube_tile_shapes", ([1, 2], 3, [1, 2]), {}, TypeError, "k must be .*, not 3"),
        ("set_cube_tile_shapes", ([1, 2],), {}, TypeError, "takes m, k, n, enable_split_k"),
        ("set_cube_tile_shapes", ([1, 2],), {"m": [1, 2]}, TypeError, "takes m, k, n"),
        ("set_matrix_size", ([1, 2, "3"],), {}, TypeError, "a list of 3 ints"),
        ("set_semantic_label", ("func1_0",), {}, ValueError, "conflicts with function-granularity"),
        ("set_semantic_label", (3,), {}, TypeError, "a str"),
        ("set_operation_options", (), {"combine_axis": "yes"}, TypeError, "True or False"),
    ],
    ids=str,
)
def test_what_upstream_does_not_take(
    name: str, values: tuple[Any, ...], named: dict[str, Any], error: type[Exception], text: str
) -> None:
    before = current()
    with pytest.raises(error, match=text):
        getattr(setters, name)(*values, **named)
    assert current() == before


OF_A_TYPE: dict[str, tuple[Any, Any]] = {
    "True or False": (True, 1),
    "an int": (1, 1.5),
    "a str": ("x", 1),
    "a list of str": (["x"], ["x", 1]),
    "a list of floats": ([0.1, 2], [0.1, "x"]),
}


@pytest.mark.parametrize(
    ("group", "name"),
    [
        (group, name)
        for group, made in GROUPS.items()
        for name, hint in made.hints.items()
        if hint.expected in OF_A_TYPE
    ],
)
def test_every_hint_takes_its_type_and_refuses_another(group: str, name: str) -> None:
    expected = GROUPS[group].hints[name].expected
    right, wrong = OF_A_TYPE[expected]
    assert merged({}, group, {name: right})[group][name] == right
    with pytest.raises(TypeError, match=f"{name} must be {expected}, not "):
        merged({}, group, {name: wrong})


def test_every_group_has_a_setter() -> None:
    assert {group for group in GROUPS if hasattr(setters, f"set_{group}")} == GROUPS.keys() - {
        "runtime_options"
    }
    assert setters.set_pass_options.__name__ == "set_pass_options"
    assert "enable_slice" in (setters.set_pass_options.__doc__ or "")


# --- As long as a tile shape ---------------------------------------------------------------------


def test_hints_end_with_options() -> None:
    with pypto.options(
        pass_options={"enable_slice": True},
        operation_options={"combine_axis": False},
        cube_tile_shapes=[[1, 2], [3, 4], [5, 6]],
        matrix_size=[1, 2, 3],
    ):
        assert pypto.get_pass_options()["enable_slice"] is True
        assert pypto.get_cube_tile_shapes() == ([1, 2], [3, 4, 4], [5, 6], False)
        pypto.set_pass_options(sg_set_scope=4)
        assert pypto.get_pass_options()["sg_set_scope"] == (4, False, False)
    assert pypto.get_pass_options() == PASS_DEFAULTS
    assert pypto.get_cube_tile_shapes() == ([], [], [], False)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"pass_options": {"enable_slice": "yes"}}, "enable_slice must be True or False"),
        ({"pass_options": [("enable_slice", True)]}, "upstream's options are dicts"),
        ({"cube_tile_shapes": [1, 2]}, "a list of m, k, n, enable_split_k"),
        ({"matrix_size": 3}, "size must be a list of 3 ints"),
    ],
    ids=str,
)
def test_options_check_hints(given: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text), pypto.options(**given):
        pass
    with pytest.raises(TypeError, match=r"enable_slice|run_mode|must be a dict"):
        pypto.jit(pass_options={"enable_slice": "yes"})


def test_what_the_table_lacks_is_kept_in_a_dict() -> None:
    with pypto.options(runtime_options={"stitch_function_max_num": 128}):
        assert current().hints["runtime_options"] == {"stitch_function_max_num": 128}


def test_hints_end_with_the_kernel_and_with_each_iteration() -> None:
    seen = []

    @pypto.jit(pass_options={"enable_slice": True})
    def kernel(x: ANY, out: ANY) -> None:
        seen.append(pypto.get_pass_options()["enable_slice"])
        for _ in pypto.loop(2):
            seen.append(pypto.get_pass_options()["sg_set_scope"][0])
            pypto.set_pass_options(sg_set_scope=5)
            pypto.set_semantic_label("body")
        out[:] = x

    kernel(np.ones(8, np.float32), np.zeros(8, np.float32))
    assert seen == [True, -1, -1]
    assert pypto.get_pass_options() == PASS_DEFAULTS


def test_threads_do_not_see_each_others_hints() -> None:
    pypto.set_pass_options(enable_slice=True)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(pypto.get_pass_options()["enable_slice"]))
    thread.start()
    thread.join()
    assert seen == [False]


def test_options_with_hints_are_copied_and_pickled() -> None:
    pypto.set_pass_options(vec_nbuffer_setting={-1: 4})
    found = current()
    assert copy.deepcopy(found) == pickle.loads(pickle.dumps(found)) == found
    hash(found)


# --- Enums, Element, op_wrapper, platform --------------------------------------------------------


def test_enums_are_upstreams() -> None:
    assert [member.name for member in pypto.PrecisionType] == ["INTRINSIC", "HIGH_PRECISION"]
    assert pypto.PrecisionType.HIGH_PRECISION.value == 1
    assert [member.name for member in pypto.ReLuType] == ["NO_RELU", "RELU"]
    assert [member.name for member in pypto.OpType] == ["EQ", "NE", "LT", "LE", "GT", "GE"]


@pytest.mark.parametrize(
    ("dtype", "data", "value"),
    [
        (pypto.DT_FP32, 1, 1.0),
        (pypto.DT_BF16, 0.1, 0.1),
        (pypto.DT_INT8, 2.9, 2),
        (pypto.DT_INT32, True, 1),
        (pypto.DT_BOOL, 1, 1),
    ],
)
def test_elements(dtype: pypto.DataType, data: float, value: float) -> None:
    element = pypto.Element(dtype, data)
    assert (element.dtype, element.value) == (dtype, value)
    assert type(element.value) is type(value)
    assert element.base().value == value
    assert pypto.element is pypto.pypto_impl.Element is pypto.Element


def test_elements_hold_numbers() -> None:
    with pytest.raises(TypeError, match="an int or a float, not '1'"):
        pypto.Element(pypto.DT_FP32, "1")
    with pytest.raises(TypeError, match=r"dtype must be a pypto\.DataType"):
        pypto.Element(1, 1)
    with pytest.raises(ValueError, match="DT_INT8 cannot hold inf"):
        pypto.Element(pypto.DT_INT8, float("inf"))


def test_op_wrapper_and_platform() -> None:
    from pypto_cast.operation import op_wrapper

    @op_wrapper
    def scaled(x: int) -> int:
        return x * 2

    assert scaled(4) == 8
    assert pypto.platform.npuarch == "DAV_2201"


def test_cache_policies_and_golden_data_are_taken() -> None:
    x = pypto.tensor([4], pypto.DT_FP32)
    assert not x.get_cache_policy(pypto.CachePolicy.NONE_CACHEABLE)
    x.set_cache_policy(pypto.CachePolicy.NONE_CACHEABLE, True)
    assert x.get_cache_policy(pypto.CachePolicy.NONE_CACHEABLE)
    wrong: Any = 1
    with pytest.raises(TypeError, match=r"a pypto\.CachePolicy and True or False, not 1"):
        x.set_cache_policy(wrong, True)
    pypto.set_verify_golden_data(goldens=[None, x])
    with pytest.raises(TypeError, match="goldens must be a list"):
        pypto.set_verify_golden_data(goldens=wrong)


# --- Scalars -------------------------------------------------------------------------------------


def test_a_named_scalar_has_no_value() -> None:
    name: Any = pypto.SymbolicScalar("n")
    assert str(name + 1) == "(n+1)"
    assert str(2 * name) == "(2*n)"
    assert str((name - 3).min(8)) == "RUNTIME_Min((n-3), 8)"
    assert str(pypto.symbolic_scalar(7) + name) == "(7+n)"
    assert not name.is_concrete()
    for use in (int, bool, range, lambda n: n.concrete()):
        with pytest.raises(ValueError, match="the value of n is not known"):
            use(name)
    assert (pypto.min(3, 5), pypto.max(pypto.symbolic_scalar(3), 5)) == (3, 5)
    assert str(pypto.min(name, 4)) == "RUNTIME_Min(n, 4)"
    wrong: Any = 2.5
    with pytest.raises(TypeError, match=r"take ints and symbols, not 2\.5"):
        pypto.max(wrong, 1)
    with pytest.raises(TypeError, match=r"ints and symbols, not with 1\.5"):
        name + 1.5


def test_a_name_that_a_kernel_makes_is_0() -> None:
    seen: list[int] = []

    def kernel(x: Any) -> None:
        name: Any = pypto.SymbolicScalar("n")
        seen.append(name + 1)

    kernel.__annotations__ = {"x": pypto.Tensor[[8], pypto.DT_FP32]}
    pypto.jit(kernel)(np.ones(8, np.float32))
    assert seen == [1]
    assert isinstance(pypto.SymbolicScalar("n"), type(pypto.SymbolicScalar("m") + 1))


OPERANDS = (-7, -1, 0, 1, 2, 3, 20)


def c_quotient(a: int, b: int) -> int:
    return math.trunc(Fraction(a, b))


@pytest.mark.parametrize("kind", [pypto.SymbolicScalar, RuntimeScalar])
def test_operators_on_numbers_are_upstreams(kind: type[SymbolicScalar]) -> None:
    for a in OPERANDS:
        x: Any = kind(a)
        assert [~x, -x, +x] == [int(not a), -a, a]
        assert [type(each) for each in (~x, -x, x < 2, x == 2)] == [kind] * 4
        for b in OPERANDS:
            y: Any = kind(b)
            for p, q in ((x, b), (a, y), (x, y)):
                assert [p & q, p | q] == [int(bool(a and b)), int(bool(a or b))]
                assert [~(p < q), ~(p == q), (p < q) | (p == q)] == [a >= b, a != b, a <= b]
                assert [p + q, p - q, p * q, pypto.min(p, q)] == [a + b, a - b, a * b, min(a, b)]
                if b:
                    rest = a - b * c_quotient(a, b)
                    assert [p / q, p // q, p % q] == [c_quotient(a, b)] * 2 + [rest]
    zero: Any = kind(0)
    for divide in (lambda: zero / 0, lambda: 3 // zero, lambda: zero % kind(0)):
        with pytest.raises(ZeroDivisionError):
            divide()


def test_numbers_divided_in_examples() -> None:
    ten, seven = pypto.SymbolicScalar(10), pypto.SymbolicScalar(-7)
    assert [~ten, 10 & pypto.SymbolicScalar(20), ten | 20] == [0, 1, 1]
    assert [seven // 2, seven / 2, seven % 3, -7 // pypto.SymbolicScalar(2)] == [-3, -3, -1, -3]
    assert [pypto.ceildiv(RuntimeScalar(n), 3) for n in (0, 1, 3, 4)] == [0, 1, 1, 2]
    index = next(iter(pypto.loop(2)))
    assert [~pypto.is_loop_begin(index), ~pypto.is_loop_end(index)] == [0, 1]
    name: Any = pypto.SymbolicScalar("n")
    assert str(~name & -name) == "((!n)&&(-n))"
    half: Any = 2.5
    with pytest.raises(TypeError, match=r"min\(10, 2\.5\): a number of a kernel goes with ints"):
        ten.min(half)


def test_enums_have_upstreams_values() -> None:
    modes = {name: mode.value for name, mode in pypto.AtomicRMWMode.__members__.items()}
    assert modes == {"ADD": 0, "MAX": 1, "MIN": 2}
    assert pypto.CachePolicy["NONE_CACHEABLE"].value == 1


def test_a_scalar_with_a_value_calculates() -> None:
    named: Any = pypto.SymbolicScalar
    assert named("n", 3) + 1 == 4
    assert (named(3) + 1).is_concrete()
    assert named(3).as_variable() is None
    assert named("n").as_variable() is None


def test_a_named_scalar_is_a_dimension() -> None:
    n: Any = pypto.SymbolicScalar("N")

    def copied(x: Any, out: Any) -> None:
        out[:] = x

    copied.__annotations__ = {name: pypto.Tensor[[n, 8], pypto.DT_FP32] for name in ("x", "out")}
    with pytest.raises(ValueError, match="dimension N is 4 in x and 5 in out"):
        pypto.jit(copied)(np.ones((4, 8), np.float32), np.zeros((5, 8), np.float32))


def test_loops_take_idx() -> None:
    assert list(pypto.loop(2, idx="i")) == [0, 1]
    assert list(pypto.loop_unroll(2, idx="i")) == [(0, 1), (1, 1)]
    assert pypto.cond(1, "file.py", 3)


# --- Names that are missing ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("from pypto_cast import konv", "pypto_cast has no 'konv'"),
        ("import pypto_cast.konv", "pypto_cast has no 'konv'"),
        ("from pypto_cast.experimental import shmem_load", "experimental has no 'shmem_load'"),
        ("import pypto_cast.experimental.shmem_load", "experimental has no 'shmem_load'"),
        ("from pypto_cast.pypto_impl import ScalarDivS", "pypto_impl has no 'ScalarDivS'"),
        ("from pypto_cast.frontend import parser", "frontend has no 'parser'"),
        ("from pypto_cast.operation import gcd", "operation has no 'gcd'"),
    ],
)
def test_imports_of_missing_names_end_in_our_words(statement: str, text: str) -> None:
    with pytest.raises(ImportError, match=f"{text}.* upstream pypto"):
        exec(statement, {})


@pytest.mark.parametrize("name", ["experimental", "pypto_impl", "operation", "frontend"])
def test_attributes_of_missing_names_end_in_our_words(name: str) -> None:
    module = importlib.import_module(f"pypto_cast.{name}")
    assert getattr(pypto, name) is module
    with pytest.raises(AttributeError, match=f"pypto_cast.{name} has no 'conv'"):
        getattr(module, "conv".strip())
    assert not hasattr(module, "conv")
