"""Options: tile shapes, nesting, what they do, threads and tasks."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.options.context import Options, current
from tiling.chips import CHIPS, DEFAULT_CHIP
from tiling.plan import plan
from tiling.ub import ElementBits

FP32_FP16 = ElementBits(src=32, dst=16)


def some_tensor(elems: int = 64) -> pypto.Tensor:
    return pypto.from_numpy(np.linspace(-4, 4, elems, dtype=np.float32))


# --- Tile shapes -------------------------------------------------------------------------------


def test_no_tile_shape_is_set_at_first() -> None:
    assert pypto.get_vec_tile_shapes() == []


@pytest.mark.parametrize("tile", [(1,), (64, 128), (1, 2, 3), (1, 2, 3, 4)], ids=str)
def test_what_is_set_is_got(tile: tuple[int, ...]) -> None:
    pypto.set_vec_tile_shapes(*tile)
    assert pypto.get_vec_tile_shapes() == list(tile)


def test_numpy_ints_are_ints() -> None:
    pypto.set_vec_tile_shapes(np.int64(64), np.uint8(16))
    assert pypto.get_vec_tile_shapes() == [64, 16]
    assert [type(entry) for entry in pypto.get_vec_tile_shapes()] == [int, int]


def test_the_list_got_is_a_copy() -> None:
    pypto.set_vec_tile_shapes(64)
    pypto.get_vec_tile_shapes().append(2)
    assert pypto.get_vec_tile_shapes() == [64]


@pytest.mark.parametrize(
    ("tile", "shown"),
    [
        (([64, 128],), r"got \[64, 128\] \(list\)"),
        (((64,),), r"got \(64,\) \(tuple\)"),
        ((64, True), r"got True \(bool\)"),
        ((np.True_,), rf"got {np.True_!r} \({np.bool_.__name__}\)"),
        ((64.0,), r"got 64.0 \(float\)"),
        (("64",), r"got '64' \(str\)"),
        ((None,), r"got None \(NoneType\)"),
    ],
    ids=["list", "tuple", "bool", "numpy-bool", "float", "str", "none"],
)
def test_entries_are_ints(tile: tuple[Any, ...], shown: str) -> None:
    pypto.set_vec_tile_shapes(7)
    wanted = rf"a tile shape is 1 to 5 positive ints, as in set_vec_tile_shapes\(64, 128\); {shown}"
    with pytest.raises(TypeError, match=wanted):
        pypto.set_vec_tile_shapes(*tile)
    with pytest.raises(TypeError, match=shown), pypto.options(vec_tile_shapes=tile):
        pytest.fail("the body must not run")
    assert pypto.get_vec_tile_shapes() == [7]


@pytest.mark.parametrize("tile", [(0,), (4, 0), (-4, 8), (1,) * 6], ids=str)
def test_entries_are_positive_and_at_most_four(tile: tuple[int, ...]) -> None:
    pypto.set_vec_tile_shapes(7)
    wanted = rf"a tile shape is 1 to 5 positive ints; got \[{', '.join(map(str, tile))}\]"
    with pytest.raises(pypto.TileShapeError, match=wanted):
        pypto.set_vec_tile_shapes(*tile)
    with pytest.raises(pypto.TileShapeError, match=wanted), pypto.options(vec_tile_shapes=tile):
        pytest.fail("the body must not run")
    assert pypto.get_vec_tile_shapes() == [7]


def test_no_entry_is_no_tile() -> None:
    with pytest.raises(pypto.TileShapeError, match=r"1 to 5 positive ints; got \[\]"):
        pypto.set_vec_tile_shapes()
    with pypto.options(vec_tile_shapes=[7]), pypto.options(vec_tile_shapes=[]):
        assert pypto.get_vec_tile_shapes() == []


# --- with, nesting, decorators -----------------------------------------------------------------


def test_options_are_restored() -> None:
    before = current()
    with pypto.options(vec_tile_shapes=[2, 4], strict=True, inf_nan_mode=False) as inside:
        assert inside is current()
        assert (inside.vec_tile_shapes, inside.strict, inside.inf_nan_mode) == ((2, 4), True, False)
        assert inside.chip is before.chip
    assert current() == before


def test_a_tile_set_inside_is_restored_too() -> None:
    pypto.set_vec_tile_shapes(7)
    with pypto.options(strict=True):
        assert pypto.get_vec_tile_shapes() == [7]
        pypto.set_vec_tile_shapes(8, 8)
        assert pypto.get_vec_tile_shapes() == [8, 8]
        assert current().strict
    assert pypto.get_vec_tile_shapes() == [7]
    assert not current().strict


def test_options_are_restored_after_an_exception() -> None:
    before = current()

    @pypto.options(vec_tile_shapes=[7], strict=True)
    def fail() -> None:
        pypto.set_vec_tile_shapes(9)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert current() == before
    with pytest.raises(ZeroDivisionError), pypto.options(vec_tile_shapes=[7], strict=True):
        fail()
    assert current() == before


def test_nested_options_keep_what_they_do_not_name() -> None:
    with pypto.options(strict=True, chip="Ascend910B1"):
        with pypto.options(vec_tile_shapes=[16]):
            assert current().strict
            assert current().chip is CHIPS["Ascend910B1"]
            with pypto.options(strict=False):
                assert not current().strict
                assert pypto.get_vec_tile_shapes() == [16]
            assert current().strict
        assert pypto.get_vec_tile_shapes() == []
    assert current() == Options()


def test_options_decorate_functions() -> None:
    @pypto.options(vec_tile_shapes=[7, 8], strict=True)
    def seen(extra: int) -> tuple[list[int], bool, int]:
        tile = pypto.get_vec_tile_shapes()
        pypto.set_vec_tile_shapes(1)
        return tile, current().strict, extra

    assert seen(1) == ([7, 8], True, 1)
    assert seen(2) == ([7, 8], True, 2)
    assert current() == Options()


every_copy = pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))],
    ids=["copy", "deepcopy", "pickle"],
)


@every_copy
def test_results_with_a_chip_are_copied_and_pickled(again: Callable[[Any], Any]) -> None:
    x = pypto.tensor([16], pypto.DT_FP32, data=np.arange(16, dtype=np.float32))
    with pypto.options(vec_tile_shapes=[16]):
        result = pypto.cast(x, pypto.DT_FP16)
    tuned = pypto.tune([64, 96], pypto.DT_FP32, pypto.DT_FP16, top=2)
    assert again(tuned) == tuned
    assert again(pypto.platform()) == pypto.platform()
    assert str(again(result)) == str(result)
    assert again(tuned).parameters.sources == tuned.parameters.sources


@every_copy
def test_options_are_copied_and_pickled(again: Callable[[Options], Options]) -> None:
    with pypto.options(vec_tile_shapes=[7, 8], strict=True, chip="Ascend910B1", threads=3) as given:
        made = again(given)
    assert made == given
    assert made.chip is CHIPS["Ascend910B1"]


@pytest.mark.parametrize("name", ["strict", "inf_nan_mode", "exact"])
@pytest.mark.parametrize("flag", [1, 0, "yes", np.True_], ids=repr)
def test_flags_are_true_or_false(name: str, flag: Any) -> None:
    wanted = f"option {name} must be True or False, not "
    with pytest.raises(TypeError, match=wanted), pypto.options(**{name: flag}):
        pytest.fail("the body must not run")
    with pypto.options(**{name: True}) as inside:
        assert getattr(inside, name) is True
    assert current() == Options()


def test_an_unknown_chip_lists_the_known_ones() -> None:
    with (
        pytest.raises(ValueError, match="unknown chip 'Ascend950'; known: Ascend910B1, "),
        pypto.options(chip="Ascend950"),
    ):
        pytest.fail("the body must not run")
    assert current().chip is DEFAULT_CHIP


@pytest.mark.parametrize("fidelity", ["slow", "FAST", ""])
def test_an_unknown_fidelity(fidelity: Any) -> None:
    wanted = rf"option fidelity must be one of \('fast', 'instructions'\), not '{fidelity}'"
    with pytest.raises(ValueError, match=wanted), pypto.options(fidelity=fidelity):
        pytest.fail("the body must not run")
    with pypto.options(fidelity="instructions") as inside:
        assert inside.fidelity == "instructions"


@pytest.mark.parametrize(
    ("threads", "error", "text"),
    [
        (0, ValueError, "option threads must be 1 to 16, not 0"),
        (17, ValueError, "option threads must be 1 to 16, not 17"),
        (True, TypeError, "option threads must be an int, not True"),
        (2.0, TypeError, "option threads must be an int, not 2.0"),
    ],
    ids=["0", "17", "bool", "float"],
)
def test_threads_are_1_to_16(threads: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text), pypto.options(threads=threads):
        pytest.fail("the body must not run")
    for allowed in (1, 16):
        with pypto.options(threads=allowed) as inside:
            assert inside.threads == allowed


def test_an_unknown_option() -> None:
    with pytest.raises(TypeError, match="tile"), pypto.options(tile=[1]):
        pytest.fail("the body must not run")


# --- What they do ------------------------------------------------------------------------------


def test_the_chip_is_the_one_that_is_planned_for() -> None:
    x = some_tensor(31376)
    pypto.set_vec_tile_shapes(31376)
    with pytest.warns(pypto.TileShapeWarning, match="B of UB; Ascend910B3 has 196608 B"):
        pypto.cast(x, pypto.DT_FP16)
    with (
        pypto.options(chip="Ascend910_9362"),
        pytest.warns(pypto.TileShapeWarning, match="B of UB; Ascend910_9362 has 196608 B"),
    ):
        pypto.cast(x, pypto.DT_FP16)
    with pypto.options(chip="Ascend910B1") as inside:
        more = plan((16 * 100,), (16,), FP32_FP16, inside.chip)
    fewer = plan((16 * 100,), (16,), FP32_FP16, current().chip)
    assert (more.busy_cores, fewer.busy_cores) == (48, 40)
    assert more != fewer


def test_the_overflow_mode_reaches_the_result() -> None:
    x = pypto.from_numpy(np.resize(np.float32([1e6, -np.inf, np.nan]), 16))
    with pypto.options(vec_tile_shapes=[16]):
        plain = pypto.cast(x, pypto.DT_FP16).numpy()
        with pypto.options(inf_nan_mode=False):
            saturated = pypto.cast(x, pypto.DT_FP16).numpy()
    assert plain[:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(plain[2])
    assert saturated[:3].tolist() == [65504.0, -65504.0, 0.0]


def test_strict_refuses_what_is_otherwise_said() -> None:
    x = some_tensor(64)
    with pypto.options(vec_tile_shapes=[8]):
        with pytest.warns(
            pypto.TileShapeWarning, match="its last axis is 32 B in the input and 16 B"
        ):
            pypto.cast(x, pypto.DT_FP16)
        with (
            pypto.options(strict=True),
            pytest.raises(
                pypto.TileShapeError, match="its last axis is 32 B in the input and 16 B"
            ),
        ):
            pypto.cast(x, pypto.DT_FP16)
    with pypto.options(vec_tile_shapes=[16]):
        with pytest.warns(pypto.CastModeWarning, match="FP32 -> BF16 has no mode CAST_ODD"):
            pypto.cast(x, pypto.DT_BF16, mode=pypto.CAST_ODD)
        with (
            pypto.options(strict=True),
            pytest.raises(pypto.CastModeError, match="FP32 -> BF16 has no mode CAST_ODD"),
        ):
            pypto.cast(x, pypto.DT_BF16, mode=pypto.CAST_ODD)
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=[16], strict=True):
        warnings.simplefilter("error")
        assert pypto.cast(x, pypto.DT_BF16, mode=pypto.CAST_RINT).has_data


@pytest.mark.parametrize(
    "how",
    [{"fidelity": "instructions"}, {"exact": True}, {"threads": 3}],
    ids=["instructions", "exact", "threads"],
)
@pytest.mark.parametrize("dst", [pypto.DT_FP16, pypto.DT_INT16], ids=str)
def test_how_a_cast_is_run_changes_no_bit(how: dict[str, Any], dst: pypto.DataType) -> None:
    codes = np.arange(0, 2**32, 21911, dtype=np.uint32)
    x = pypto.from_numpy(np.resize(codes, 4 * 65536).view(np.float32))
    with pypto.options(vec_tile_shapes=[16384]):
        wanted = pypto.cast(x, dst, mode=pypto.CAST_RINT).numpy()
        with pypto.options(**how):
            actual = pypto.cast(x, dst, mode=pypto.CAST_RINT).numpy()
    np.testing.assert_array_equal(actual.view(np.uint16), wanted.view(np.uint16))
    assert np.unique(wanted.view(np.uint16)).size > 5000


@pytest.mark.parametrize("tile", [(), (1,), (16,), (17,), (64,), (10000,)], ids=str)
def test_the_tile_changes_no_bit(tile: tuple[int, ...]) -> None:
    x = some_tensor(61)
    with pypto.options(vec_tile_shapes=[16]):
        wanted = pypto.cast(x, pypto.DT_FP16, mode=pypto.CAST_CEIL).numpy()
    with warnings.catch_warnings(), pypto.options(vec_tile_shapes=tile):
        warnings.simplefilter("ignore", pypto.TileShapeWarning)
        actual = pypto.cast(x, pypto.DT_FP16, mode=pypto.CAST_CEIL).numpy()
    np.testing.assert_array_equal(actual.view(np.uint16), wanted.view(np.uint16))


# --- Threads and tasks -------------------------------------------------------------------------


def test_threads_do_not_see_each_other() -> None:
    meet = threading.Barrier(3, timeout=30)
    seen: dict[int, list[list[int]]] = {}

    def work(number: int) -> None:
        found = [pypto.get_vec_tile_shapes()]
        meet.wait()
        pypto.set_vec_tile_shapes(number)
        meet.wait()
        found.append(pypto.get_vec_tile_shapes())
        with pypto.options(vec_tile_shapes=[100 + number]):
            meet.wait()
            found.append(pypto.get_vec_tile_shapes())
            meet.wait()
        found.append(pypto.get_vec_tile_shapes())
        seen[number] = found

    pypto.set_vec_tile_shapes(7)
    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {n: [[], [n], [100 + n], [n]] for n in (1, 2, 3)}
    assert pypto.get_vec_tile_shapes() == [7]


def test_asyncio_tasks_do_not_disturb_each_other() -> None:
    async def work(number: int) -> list[list[int]]:
        found = [pypto.get_vec_tile_shapes()]
        pypto.set_vec_tile_shapes(number)
        await asyncio.sleep(0)
        found.append(pypto.get_vec_tile_shapes())
        with pypto.options(vec_tile_shapes=[100 + number]):
            await asyncio.sleep(0)
            found.append(pypto.get_vec_tile_shapes())
        await asyncio.sleep(0)
        found.append(pypto.get_vec_tile_shapes())
        return found

    async def all_at_once() -> list[list[list[int]]]:
        return await asyncio.gather(*(work(number) for number in (1, 2, 3)))

    pypto.set_vec_tile_shapes(7)
    found = asyncio.run(all_at_once())
    assert found == [[[7], [n], [100 + n], [n]] for n in (1, 2, 3)]
    assert pypto.get_vec_tile_shapes() == [7]


def test_the_former_name_of_an_option_warns_at_the_line() -> None:
    former: Any = {"landing": "earliest"}
    renamed = pytest.warns(DeprecationWarning, match="copy_completion")
    with renamed as caught, pypto.options(**former) as inside:
        assert (inside.copy_completion, inside.landing) == ("earliest", "earliest")
    assert [warning.filename for warning in caught] == [__file__]
