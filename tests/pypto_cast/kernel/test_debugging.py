"""Values inside a kernel: text, `numpy()` for inspection, dumps, an element's way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pypto_cast as pypto
from pypto_cast.kernel import value_trace
from pypto_cast.kernel.operation_dump import INDEX, dumping

ROWS = pypto.Tensor[[8, 16], pypto.DT_FP32]
HALF = pypto.Tensor[[8, 16], pypto.DT_BF16]
SQUARE = pypto.Tensor[[16, 16], pypto.DT_FP16]
TWICE = pypto.Tensor[[8, 8], pypto.DT_FP32]
ONE = pypto.Tensor[[1, 1], pypto.DT_FP32]
SUMS = pypto.Tensor[[8, 1], pypto.DT_FP32]


@pypto.jit
def soft(x: ROWS, y: ROWS, s: SUMS) -> None:
    pypto.set_vec_tile_shapes(8, 16)
    for i in pypto.loop(2):
        e = pypto.exp(x[i * 4 : i * 4 + 4])
        total = pypto.sum(e, -1, keepdim=True)
        y[i * 4 : i * 4 + 4] = e / total
        s[i * 4 : i * 4 + 4] = total


def operands() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(8, 16)
    return x, np.zeros_like(x), np.zeros((8, 1), np.float32)


# --- Text --------------------------------------------------------------------------------------


def texts_in_a_kernel() -> tuple[pypto.Kernel, list[str]]:
    texts: list[str] = []

    @pypto.jit
    def kernel(x: ROWS, y: ROWS, s: SUMS) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        local = pypto.tensor([8, 16], pypto.DT_FP32)
        e = pypto.exp(x)
        texts.extend(map(str, (x[2:3], e, local)))
        local[0:1, 0:2] = x[0:1, 0:2]
        texts.append(repr(local))
        texts.append(e._repr_html_())
        y[:] = e

    return kernel, texts


def test_the_text_of_a_tensor_shows_values() -> None:
    kernel, texts = texts_in_a_kernel()
    x, y, s = operands()
    kernel(x, y, s)
    part, e, before, after, html = texts
    assert part.endswith(f"data=[{', '.join(map(str, x[2, :6]))}, ...])")
    assert e.endswith(f"data=[{', '.join(map(str, y[0, :6]))}, ...])")
    assert before == "Tensor(shape=[8, 16], dtype=DT_FP32)"
    assert after.endswith(
        "data=[-1.0, -0.984252, unwritten, unwritten, unwritten, unwritten, ...])"
    )
    assert str(y[0, 5]) in html


def test_text_shows_intervals_where_certainty_is_asked_for() -> None:
    kernel, texts = texts_in_a_kernel()
    x, y, s = operands()
    found = kernel.certainty(x, y, s)
    low, high = found.low["y"], found.high["y"]
    shown = ", ".join(f"{a!s}..{b!s}" for a, b in zip(low[0, :6], high[0, :6], strict=True))
    assert texts[1].endswith(f"data=[{shown}, ...])")
    assert "-1.0, -0.984252" in texts[3]


def test_text_shows_nothing_where_nothing_is_computed() -> None:
    kernel, texts = texts_in_a_kernel()
    kernel.program(*operands())
    assert not any("data=" in text for text in texts)


# --- numpy() -----------------------------------------------------------------------------------


@pypto.jit
def reading(x: ROWS, y: ROWS, s: SUMS) -> None:
    pypto.set_vec_tile_shapes(8, 16)
    values = pypto.cast(x, pypto.DT_BF16).numpy()
    assert values.dtype == ml_dtypes.bfloat16
    assert not values.flags.writeable
    y[:] = x + float(values[0, 0])


def test_numpy_is_refused_without_the_option() -> None:
    with pytest.raises(TypeError, match="a kernel does not see values"):
        reading(*operands())


def test_numpy_gives_a_copy_under_the_option_and_leaves_every_output_unknown() -> None:
    x, y, s = operands()
    with pypto.options(inspect=True):
        reading(x, y, s)
        found = reading.certainty(x, y, s)
        again = soft.certainty(x, y, s)
    np.testing.assert_array_equal(y, x + np.float32(-1))
    assert not found.certain["y"].any()
    assert [cause.operation for cause in found.causes] == ["numpy"]
    assert not found.by_documents["y"].any()
    assert again.undecided == soft.certainty(x, y, s).undecided


def refused(tensor: pypto.Tensor) -> None:
    with pytest.raises(ValueError, match="holds no values here"):
        tensor.numpy()


def test_numpy_reads_what_is_written_by_then() -> None:
    seen = []

    @pypto.jit
    def kernel(x: ROWS, y: ROWS, s: SUMS) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        local = pypto.tensor([8, 16], pypto.DT_FP32)
        refused(local)
        local[:] = x + 1.0
        before = local.numpy()
        local[:] = x + 2.0
        seen.extend([before, local.numpy()])
        y[:] = local

    x, y, s = operands()
    with pypto.options(inspect=True):
        kernel(x, y, s)
    np.testing.assert_array_equal(seen[0], x + np.float32(1))
    np.testing.assert_array_equal(seen[1], x + np.float32(2))


def test_a_kernel_that_is_only_listed_has_no_values_to_inspect() -> None:
    with pypto.options(inspect=True), pytest.raises(TypeError, match="does not see values"):
        reading.program(*operands())


def test_the_option_is_a_truth_value() -> None:
    with pytest.raises(TypeError, match="inspect must be True or False"), pypto.options(inspect=1):  # type: ignore[arg-type]
        pass


# --- Upstream's prints and files ---------------------------------------------------------------


@pypto.jit(verify_options={"enable_pass_verify": True})
def verified(x: ROWS, y: ROWS, s: SUMS) -> None:
    pypto.set_vec_tile_shapes(8, 16)
    for i in pypto.loop(2):
        e = pypto.cast(pypto.exp(x), pypto.DT_BF16)
        pypto.pass_verify_print("e=", e, " i=", i, cond=(i == 1))
        pypto.pass_verify_save(e, "e_$i", i=i)
        pypto.pass_verify_save(e, "never", cond=0)
    y[:] = pypto.exp(x)


@pytest.mark.filterwarnings("ignore::pypto_cast.IgnoredSettingWarning")
def test_upstreams_prints_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x, y, s = operands()
    verified(x, y, s)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 1
    assert printed[0].startswith("e=Tensor(shape=[8, 16], dtype=DT_BF16, data=[0.3")
    assert printed[0].endswith(" i=1")
    folder = tmp_path / "output" / "tensor"
    assert sorted(each.name for each in folder.iterdir()) == [
        *("e_0.csv", "e_0.data", "e_1.csv", "e_1.data"),
    ]
    codes = np.fromfile(folder / "e_1.data", np.uint16).reshape(8, 16)
    np.testing.assert_array_equal(codes, y.astype(ml_dtypes.bfloat16).view(np.uint16))
    text = "key,value\ndtype,8\nshape,8x16\nelement_count,128\n"
    assert (folder / "e_1.csv").read_text() == text


def test_they_do_nothing_without_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    @pypto.jit
    def kernel(x: ROWS, y: ROWS, s: SUMS) -> None:
        pypto.pass_verify_print(x)
        pypto.pass_verify_save(x, "x")
        y[:] = x

    kernel(*operands())
    assert (capsys.readouterr().out, list(tmp_path.iterdir())) == ("", [])


def test_the_option_says_that_it_turns_on_these_alone() -> None:
    with pytest.warns(
        pypto.IgnoredSettingWarning, match="turns on pass_verify_print and pass_verify_save here"
    ):
        pypto.set_verify_options(enable_pass_verify=True)
    pypto.reset_options()


def test_no_condition_is_refused() -> None:
    x = pypto.tensor([4])
    none: Any = None
    for call in (pypto.pass_verify_print, pypto.pass_verify_save):
        with pytest.raises(TypeError, match="cond is 1 or 0, or a condition of the kernel, not No"):
            call(x, "x", cond=none)


def test_files_of_other_names_are_refused() -> None:
    x = pypto.tensor([4])
    with pytest.raises(pypto.error.VerifyError, match=r"'\$j' of 'x_\$j' is not among"):
        pypto.pass_verify_save(x, "x_$j", i=1)
    for name in ("../x", "a/b", "", ".", ".."):
        with pytest.raises(ValueError, match="no name of a file without folders"):
            pypto.pass_verify_save(x, name)
    with pytest.raises(TypeError, match="saves a tensor, not 3"):
        pypto.pass_verify_save(3, "x")  # type: ignore[arg-type]


# --- Dumps -------------------------------------------------------------------------------------


def test_a_dump_has_each_operation_by_its_line(tmp_path: Path) -> None:
    x, y, s = operands()
    with dumping(tmp_path / "dump"):
        soft(x, y, s)
        soft.program(x, y, s)
        pypto.exp(pypto.from_numpy(x))
    listed = [json.loads(line) for line in (tmp_path / "dump" / INDEX).read_text().splitlines()]
    assert [each["operation"] for each in listed] == ["exp", "sum", "div"] * 2
    assert [each["loops"] for each in listed[::3]] == [["loop idx=0"], ["loop idx=1"]]
    first = listed[0]["line"]
    assert [each["line"] - first for each in listed] == [0, 1, 2] * 2
    assert {each["file"] for each in listed} == {__file__}
    last = {each["role"]: each for each in listed[-1]["tensors"]}
    held = np.load(tmp_path / "dump" / last["out"]["file"])
    np.testing.assert_array_equal(held, y[4:])
    np.testing.assert_array_equal(np.load(tmp_path / "dump" / last["in1"]["file"]), s[4:])
    assert last["in0"]["shape"] == [4, 16]


def test_a_dump_has_codes_of_narrow_formats(tmp_path: Path) -> None:
    @pypto.jit
    def kernel(x: ROWS, y: HALF) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        y[:] = pypto.cast(x, pypto.DT_BF16)

    x = operands()[0]
    with dumping(tmp_path / "dump"):
        kernel(x, np.zeros((8, 16), ml_dtypes.bfloat16))
    entry = json.loads((tmp_path / "dump" / INDEX).read_text())
    held = np.load(tmp_path / "dump" / entry["tensors"][1]["file"])
    np.testing.assert_array_equal(held, x.astype(ml_dtypes.bfloat16).view(np.uint16))
    assert entry["tensors"][1]["dtype"] == "DT_BF16"


def test_a_dump_needs_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(FileExistsError, match="has files already"), dumping(tmp_path):
        pass
    with pytest.raises(FileExistsError), dumping(tmp_path / "x"):
        pass


# --- An element's way --------------------------------------------------------------------------


def test_the_way_of_an_element(capsys: pytest.CaptureFixture[str]) -> None:
    x, y, s = operands()
    trace = pypto.trace_values(soft, x, y, s, element=("y", 5, 3))
    assert capsys.readouterr().out == f"{trace}\n"
    assert [step.operation for step in trace.steps] == ["exp", "exp", "sum", "div"]
    assert {step.site.loops for step in trace.steps} == {("loop idx=1",)}
    one, other, total, div = trace.steps
    exp, row = (one, other) if one.result.count == 1 else (other, one)
    assert (row.result.box, row.result.count, row.operands[0].box) == ((1, None), 16, (1, None))
    assert (exp.operands[0].name, exp.operands[0].box, exp.operands[0].is_certain) == (
        *("x", (1, 3), True),
    )
    assert exp.operands[0].value == str(x[5, 3])
    assert (total.operands[0].box, total.operands[0].count) == ((1, None), 16)
    assert [each.box for each in div.operands] == [(1, 3), (1, 0)]
    found = soft.certainty(x, y, s)
    for element in (trace.output, div.result):
        assert element.value == str(found.values["y"][5, 3])
        assert element.low == str(found.low["y"][5, 3])
        assert element.high == str(found.high["y"][5, 3])
        assert not element.is_certain
    assert trace.output.box == (5, 3)


@pytest.mark.parametrize(("most", "is_cut"), [(2, True), (3, False)])
def test_a_long_way_is_cut_and_says_so(
    most: int, is_cut: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @pypto.jit
    def thrice(x: ROWS, y: ROWS) -> None:
        pypto.set_vec_tile_shapes(8, 16)
        y[:] = ((x + 1.0) * 2.0) - 3.0

    monkeypatch.setattr(value_trace, "_MOST", most)
    x, y, _ = operands()
    trace = pypto.trace_values(thrice, x, y, element=("y", 3, 5))
    assert [step.operation for step in trace.steps] == ["add", "mul", "sub"][-most:]
    assert trace.is_cut == is_cut
    assert ("\ncut: more than 2 operations\n" in capsys.readouterr().out) == is_cut


def test_negative_places_count_from_the_end() -> None:
    trace = pypto.trace_values(soft, *operands(), element=("s", -1, 0))
    assert trace.output.box == (7, 0)
    assert [step.operation for step in trace.steps] == ["exp", "sum"]


@pypto.jit
def multiplied(a: SQUARE, b: SQUARE, y: pypto.Tensor[[16, 16], pypto.DT_FP32]) -> None:
    pypto.set_vec_tile_shapes(8, 8)
    pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])
    left = a + 1.0
    right = b * 2.0
    y[:] = pypto.abs(pypto.matmul(left, right, pypto.DT_FP32, b_trans=True))


def test_the_way_goes_on_through_a_product_of_matrices() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((16, 16)).astype(np.float16) for _ in "ab")
    trace = pypto.trace_values(
        multiplied, a, b, np.zeros((16, 16), np.float32), element=("y", 5, 9)
    )
    boxes = {step.operation: step.result.box for step in trace.steps}
    assert boxes == {"add": (5, None), "mul": (9, None), "matmul": (5, 9), "abs": (5, 9)}
    product = next(step for step in trace.steps if step.operation == "matmul")
    assert [each.box for each in product.operands] == [(5, None), (9, None)]
    least = next(step for step in trace.steps if step.operation == "add").operands[0].value
    assert least == f"{a[5].min()!s}..{a[5].max()!s}"


@pypto.jit
def product(a: SQUARE, b: SQUARE, y: pypto.Tensor[[16, 16], pypto.DT_FP32]) -> None:
    pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])
    y[:] = pypto.matmul(a, b, pypto.DT_FP32, b_trans=True)


def test_the_way_of_a_product_that_is_an_output() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((16, 16)).astype(np.float16) for _ in "ab")
    trace = pypto.trace_values(product, a, b, np.zeros((16, 16), np.float32), element=("y", 5, 9))
    (step,) = trace.steps
    assert (step.operation, step.result.box) == ("matmul", (5, 9))
    assert [each.box for each in step.operands] == [(5, None), (9, None)]


@pypto.jit
def moved(x: TWICE, y: TWICE) -> None:
    pypto.set_vec_tile_shapes(8, 8)
    halves = pypto.tensor([8, 8], pypto.DT_FP32)
    halves[:, 0:4] = x[:, 0:4] + 1.0
    halves[:, 4:8] = x[:, 4:8] * 2.0
    total = pypto.sum(halves, 0)
    y[:] = pypto.transpose(x * 3.0, 0, 1) + total


def test_a_way_through_parts_and_its_end_at_a_move() -> None:
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    trace = pypto.trace_values(moved, x, np.zeros_like(x), element=("y", 2, 5))
    found = [(step.operation, step.result.box) for step in trace.steps]
    assert found == [("mul", (None, 1)), ("sum", (5,)), ("transpose", (2, 5)), ("add", (2, 5))]
    assert trace.steps[0].operands[0].box == (None, 1)
    assert trace.steps[2].operands[0].box == ()
    whole = pypto.trace_values(summed_up, x, np.zeros((1, 1), np.float32), element=("y", 0, 0))
    found = [(step.operation, step.result.box) for step in whole.steps]
    assert sorted(found, key=str) == [
        *(("add", (None, None)), ("mul", (None, None))),
        *(("sum", (0, 0)), ("sum", (None, 0))),
    ]


@pypto.jit
def summed_up(x: TWICE, y: ONE) -> None:
    pypto.set_vec_tile_shapes(8, 8)
    halves = pypto.tensor([8, 8], pypto.DT_FP32)
    halves[:, 0:4] = x[:, 0:4] + 1.0
    halves[:, 4:8] = x[:, 4:8] * 2.0
    y[:] = pypto.sum(pypto.sum(halves, -1, True), 0, True)


@pytest.mark.parametrize(
    ("element", "error", "text"),
    [
        (("z", 1, 1), ValueError, "writes y, s, not 'z'"),
        ((), ValueError, "writes y, s, not ''"),
        (("y", 1), ValueError, r"shape \[8, 16\], and no element \[1\]"),
        (("y", 8, 0), ValueError, r"no element \[8, 0\]"),
        (("y", 1, 0.5), TypeError, "an index is ints"),
        (("y", 1, True), TypeError, "an index is ints"),
    ],
)
def test_elements_that_are_not_there(
    element: tuple[object, ...], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        pypto.trace_values(soft, *operands(), element=element)


def test_a_function_has_no_way() -> None:
    with pytest.raises(TypeError, match="takes a kernel of"):
        pypto.trace_values(print, element=("y", 0))  # type: ignore[arg-type]
