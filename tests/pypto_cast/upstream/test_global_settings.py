"""Settings that nothing here reads: kept, read back, and never swallowed; upstream's errors."""

from __future__ import annotations

import inspect
import pickle
import warnings
from typing import Any

import pytest

import pypto_cast as pypto
from pypto_cast import error
from pypto_cast.error import error_of

DUMP = pypto.PassConfigKey.KEY_DUMP_GRAPH


@pytest.fixture(autouse=True)
def _clean(pypto_sim: Any) -> None:
    """No setting outlives a test."""


# --- Set and read back ---------------------------------------------------------------------------


def test_a_global_setting_is_kept_and_says_that_it_does_nothing() -> None:
    assert pypto.get_global_config("simulation.accuracy_level") == 1
    with pytest.warns(pypto.IgnoredSettingWarning, match="changes nothing here") as told:
        pypto.set_global_config("simulation.accuracy_level", 2)
    assert told[0].filename == __file__
    pypto.reset_options()  # upstream's leaves it too
    assert pypto.get_global_config("simulation.accuracy_level") == 2


def test_a_list_is_the_callers() -> None:
    pypto.get_global_config("simulation.args").append("x")
    assert "x" not in pypto.get_global_config("simulation.args")


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("simulation.acuracy_level", 2, KeyError),
        ("simulation.accuracy_level", "2", TypeError),
        ("simulation.accuracy_level", True, TypeError),
        ("platform.enable_cost_model", 1, TypeError),
    ],
)
def test_what_is_no_global_setting(key: str, value: Any, kind: type[Exception]) -> None:
    for expected in (kind, error.FeError):
        with pytest.raises(expected):
            pypto.set_global_config(key, value)


def test_the_defaults_of_a_process_outlive_a_reset() -> None:
    pypto.pypto_impl.SetGlobalConfig({"pass.enable_slice": True})
    pypto.set_pass_options(enable_slice=False)
    assert pypto.get_pass_options()["enable_slice"] is False
    pypto.reset_options()
    assert pypto.get_pass_options()["enable_slice"] is True
    for name, kind in (("pass.enable_slic", KeyError), ("nothing", KeyError)):
        with pytest.raises(kind, match="does not exist"):
            pypto.pypto_impl.SetGlobalConfig({name: True})


def test_settings_of_passes() -> None:
    assert pypto.get_pass_default_config(DUMP, True) is False
    assert pypto.get_pass_config("PVC2_OOO", "ExpandFunction", DUMP, True) is True
    with pytest.warns(pypto.IgnoredSettingWarning, match="no pass"):
        pypto.set_pass_default_config(DUMP, True)
    assert pypto.get_pass_configs("PVC2_OOO", "ExpandFunction").dumpGraph is True
    with pytest.warns(pypto.IgnoredSettingWarning, match="no pass"):
        pypto.set_pass_config("PVC2_OOO", "ExpandFunction", DUMP, False)
    configs = pypto.get_pass_configs("PVC2_OOO", "ExpandFunction")
    assert (configs.dumpGraph, configs.dumpPassTimeCost) == (False, True)
    assert pypto.get_pass_config("PVC2_OOO", "ExpandFunction", DUMP, True) is False
    wrong: Any = 1
    for expected in (error.PassError, TypeError):
        with pytest.raises(expected, match="Expected boolean type"):
            pypto.set_pass_config("PVC2_OOO", "ExpandFunction", DUMP, wrong)
    with pytest.raises(error.PassError, match="PassConfigKey"):
        pypto.get_pass_default_config(wrong, True)


def test_several_groups_at_once() -> None:
    pypto.set_options(pass_options={"enable_slice": True}, vec_tile_shapes=[8, 64])
    assert pypto.get_pass_options()["enable_slice"] is True
    assert pypto.get_vec_tile_shapes() == [8, 64]
    assert "pass.enable_slice: True" in pypto.get_options_tree()
    scope = pypto.get_current_scope()
    assert scope.get_options_prefix("pass.enable_slice") is True
    assert scope.has("pass.enable_slice")
    with pytest.raises(error.FeError, match="Option not found"):
        scope.get_options_prefix("pass.enable_slic")


def test_convolution_tiles() -> None:
    assert pypto.get_conv_tile_shapes() == ([], [], False)
    l1 = pypto.pypto_impl.TileL1Info(4, 4, 8, 8, 16, 32, 16, 1)
    l0 = pypto.pypto_impl.TileL0Info(tileH=2, tileW=8, tileK=16, tileN=16)
    pypto.set_conv_tile_shapes(l1, l0)
    assert pypto.get_conv_tile_shapes() == (l1, l0, True)
    assert str(l0) == "TileL0Info([2, 8, 16, 16])"
    wrong: Any = [2, 8, 16, 16]
    with pytest.raises(TypeError, match="tile_l0_info must be a TileL0Info"):
        pypto.set_conv_tile_shapes(l1, wrong)
    with pytest.raises(TypeError, match="tileH must be an int"):
        pypto.pypto_impl.TileL0Info(tileH=wrong)


def test_signatures_are_those_of_upstream() -> None:
    names = tuple(inspect.signature(pypto.set_pass_options).parameters)
    assert set(names) == set(pypto.get_pass_options())
    assert str(inspect.signature(pypto.set_cube_tile_shapes)) == "(m, k, n, enable_split_k=False)"


@pytest.mark.parametrize(
    ("group", "given"),
    [
        ("verify_options", {"enable_pass_verify": True}),
        ("debug_options", {"runtime_debug_mode": 1}),
        ("debug_options", {"dump_pass_graph": ["ExpandFunction"]}),
        ("host_options", {"compile_stage": pypto.CompStage.TENSOR_GRAPH}),
        ("codegen_options", {"enable_pmu_trace": True}),
    ],
    ids=str,
)
def test_a_setting_that_would_show_something_says_that_it_does_not(
    group: str, given: dict[str, Any]
) -> None:
    with pytest.warns(pypto.IgnoredSettingWarning, match=next(iter(given))):
        getattr(pypto, f"set_{group}")(**given)
    with pytest.warns(pypto.IgnoredSettingWarning), pypto.options(**{group: given}):
        pass


def test_defaults_say_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pypto.set_debug_options(runtime_debug_mode=0, compile_debug_mode=0, dump_pass_graph=[])
        pypto.set_host_options(compile_stage=pypto.CompStage.ALL_COMPLETE)
        pypto.set_verify_options(enable_pass_verify=False)
        pypto.jit(new_ir=True, create_new_logical_tensor=False)


def test_options_of_jit_that_do_nothing_say_so() -> None:
    with pytest.warns(pypto.IgnoredSettingWarning, match="use_cache=True"):
        pypto.jit(use_cache=True)


# --- Errors --------------------------------------------------------------------------------------


def test_an_error_is_of_upstreams_class_and_of_pythons() -> None:
    found = error_of(error.FeError, ValueError, "text")
    assert isinstance(found, error.FeError)
    assert isinstance(found, ValueError)
    assert not isinstance(found, TypeError)
    again = pickle.loads(pickle.dumps(found))
    assert (type(again), str(again)) == (type(found), "text")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (ValueError("v"), "ErrCode: F00002, ValueError: v"),
        (KeyError("k"), "ErrCode: F00006, KeyError: 'k'"),
        (ArithmeticError("a"), "ErrCode: F0FFFF, ArithmeticError: a"),
        ("plain", "ErrCode: F0FFFF, plain"),
        ("ErrCode: F00003, again", "ErrCode: F00003, again"),
    ],
)
def test_the_code_follows_from_the_class(given: Any, text: str) -> None:
    assert str(error.PyptoGeneralError(given)) == text


def test_semantic_labels_and_scopes_are_refused_in_both_classes() -> None:
    wrong: Any = "aa"
    for kind in (error.FeError, ValueError):
        with pytest.raises(kind, match="conflicts with"):
            pypto.set_semantic_label("func123_0")
    for kind in (error.FeError, TypeError):
        with pytest.raises(kind, match="sg_set_scope"):
            pypto.set_pass_options(sg_set_scope=wrong)
