"""Code that upstream refuses: a warning, an error under strict, and no word about other code."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pypto_cast.experimental import gather_in_l1, gather_in_ub

import pypto_cast as pypto
from pypto_cast import DynamicOperandWarning, UpstreamRefusalError, UpstreamRefusalWarning
from pypto_cast.kernel.kernel_source import reassigned, refused_statements

ROWS: Any = pypto.Tensor[[pypto.DYNAMIC, 32], pypto.DT_FP32]
FIXED: Any = pypto.Tensor[[16, 32], pypto.DT_FP32]
WHOLE = np.arange(1024, dtype=np.float32).reshape(32, 32)
Body = Callable[[Any, Any, Any], object]


def run(body: Body, x: np.ndarray = WHOLE) -> np.ndarray:
    """Runs a body over a dynamic tensor, one of [16, 32], and a dynamic output."""

    @pypto.frontend.jit
    def kernel(x: ROWS, fixed: FIXED, out: ROWS):
        pypto.set_vec_tile_shapes(16, 32)
        pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])
        body(x, fixed, out)

    out = np.zeros(x.shape, np.float32)
    kernel(x, np.ones((16, 32), np.float32), out)
    return out


def refuses(text: str, call: Callable[[], object], category: Any = UpstreamRefusalWarning) -> None:
    """Checks that a call warns, and raises instead under strict."""
    with pytest.warns(category, match=text) as caught:
        call()
    assert {Path(w.filename).name for w in caught if w.category is category} == {
        "test_tolerance.py"
    }
    with pypto.options(strict=True), pytest.raises(UpstreamRefusalError, match=text):
        call()


# --- Dynamic dimensions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        lambda x, fixed, out: pypto.cast(x, pypto.DT_FP16),
        lambda x, fixed, out: x + 1.0,
        lambda x, fixed, out: -x,
        lambda x, fixed, out: x[0:16] * fixed + pypto.sum(x, 0, True),
        lambda x, fixed, out: pypto.where(x > 0.0, x, 1.0),
        lambda x, fixed, out: pypto.softmax(x, -1),
        lambda x, fixed, out: pypto.concat([fixed, x], 0),
        lambda x, fixed, out: pypto.transpose(x, 0, 1),
        lambda x, fixed, out: pypto.topk(x, 8),
        lambda x, fixed, out: pypto.matmul(fixed, x, pypto.DT_FP32),
        lambda x, fixed, out: pypto.clone(x),
        lambda x, fixed, out: pypto.reshape(x, [16, 64]),
        lambda x, fixed, out: x[:, 0:16],
        lambda x, fixed, out: x[5:],
        lambda x, fixed, out: x[0:-16],
        lambda x, fixed, out: x[..., 0:16],
        lambda x, fixed, out: moved(x) + 1.0,
        lambda x, fixed, out: pypto.scatter_update(fixed, -2, rows(2, x.shape[0] // 2), x),
        lambda x, fixed, out: pypto.index_put_(out, (rows(x.shape[0]),), x),
    ],
)
def test_an_operation_on_a_dynamic_dimension(body: Body) -> None:
    text = r"dimension 0 of .* is DYNAMIC.*pypto\.loop\(x\.shape\[0\] // 16\).*\[i \* 16, 0\]"
    refuses(text, lambda: run(body), DynamicOperandWarning)


@pytest.mark.parametrize(
    "body",
    [
        lambda x, fixed, out: x + 1.0,
        lambda x, fixed, out: x * x,
        lambda x, fixed, out: pypto.softmax(x, -1),
        lambda x, fixed, out: pypto.where(x > 0.0, x, 1.0),
        lambda x, fixed, out: pypto.concat([x, x], 0),
        lambda x, fixed, out: pypto.var(x, -1),
        lambda x, fixed, out: [pypto.cast(x, pypto.DT_FP16) for _ in pypto.loop(3)],
    ],
)
def test_an_operation_warns_once_at_its_place(body: Body) -> None:
    for _ in range(2):  # each run of a kernel says it again
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(body)
        assert [w.category for w in caught] == [DynamicOperandWarning]


def test_a_dynamic_tensor_is_assembled_by_the_wheel_alone() -> None:
    def body(x: Any, fixed: Any, out: Any) -> None:
        pypto.assemble(x, [0, 0], out)

    text = "Assemble: shape of src tensor requires integer"
    refuses(text, lambda: run(body), DynamicOperandWarning)
    with pypto.options(release="0.2.0"), warnings.catch_warnings():
        warnings.simplefilter("error")
        run(body)


def test_each_place_and_each_tensor_warns() -> None:
    def body(x: Any, fixed: Any, out: Any) -> None:
        pypto.maximum(x, out)
        x + 1.0

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(body)
    first = body.__code__.co_firstlineno
    assert [w.lineno - first for w in caught] == [1, 1, 2]


def rows(*shape: int) -> Any:
    return pypto.full(shape, 3, pypto.DT_INT32)


def moved(x: Any) -> Any:
    local = pypto.tensor([16, 32], pypto.DT_FP32, "x")
    local[:] = x
    return local


@pytest.mark.parametrize(
    "body",
    [
        lambda x, fixed, out: out.move(x),
        lambda x, fixed, out: pypto.assemble(pypto.view(x, [16, 32], [16, 0]) + 1.0, [0, 0], out),
        lambda x, fixed, out: out[0:16].add(x[:16]),
        lambda x, fixed, out: x[-4:] + x[4:8, :] + x[-8:-4] + x[3],
        lambda x, fixed, out: pypto.reshape(x, [16, 64], inplace=True),
        lambda x, fixed, out: pypto.atomic_add(fixed, [0, 0], out),
        lambda x, fixed, out: pypto.scatter_update(x, -2, rows(2, 8), fixed),
        lambda x, fixed, out: pypto.index_put_(out, (rows(16),), fixed),
        lambda x, fixed, out: gather_in_ub(x, rows(1, 16), rows(1, 4), 4, -2),
        lambda x, fixed, out: gather_in_l1(x, rows(1, 16), rows(1, 4), 4, 16, False, False),
        lambda x, fixed, out: [
            x.shape[1] == 32,
            x.shape[0] > 3,
            x.shape[1:] == [32],
            -1 in x.shape,
            list(x.shape) == [],
        ],
        lambda x, fixed, out: pypto.cast(x, pypto.DT_FP32),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_upstream_takes_of_a_dynamic_dimension(body: Body) -> None:
    with pypto.options(strict=True):
        run(body)


def test_nothing_is_written_where_strict_refuses() -> None:
    out = np.zeros((32, 32), np.float32)

    @pypto.frontend.jit
    def kernel(x: ROWS, out: ROWS):
        pypto.set_vec_tile_shapes(16, 32)
        out[0:16] = x[0:16]
        out[:] = x * 2.0

    with pypto.options(strict=True), pytest.raises(UpstreamRefusalError):
        kernel(WHOLE, out)
    assert not out.any()


@pytest.mark.parametrize("shape", [[-1, 32], [32, 32], (1, 2)])
def test_shapes_with_dynamic_dimensions_are_compared(shape: Any) -> None:
    refuses("compares no shape", lambda: run(lambda x, fixed, out: x.shape == shape))
    refuses("compares no shape", lambda: run(lambda x, fixed, out: x.shape != shape))
    refuses("compares no shape", lambda: pypto.tensor([-1, 32]).shape == shape)
    refuses("compares no shape", lambda: run(lambda x, fixed, out: x.shape[:1] == shape))
    refuses("compares no shape", lambda: pypto.tensor([-1, 32]).shape[:1] == shape)


@pytest.mark.filterwarnings("error")
def test_a_kernel_that_another_calls_knows_lengths_that_are_known_there() -> None:
    @pypto.frontend.jit
    def inner(x: ROWS, out: ROWS):
        out[:] = x + pypto.view(x, [x.shape[0], 32], [0, 0])

    @pypto.frontend.jit
    def outer(x: ROWS, out: FIXED):
        pypto.set_vec_tile_shapes(16, 32)
        inner(pypto.view(x, [16, 32], [16, 0]), out)

    out = np.zeros((16, 32), np.float32)
    outer(WHOLE, out)
    assert (out == WHOLE[16:] * 2).all()


# --- Statements ----------------------------------------------------------------------------------


def add(a: FIXED, b: FIXED, c: FIXED) -> None:
    c = a + b
    pypto.abs(c)


def add_in_a_loop(a: FIXED, b: FIXED, c: FIXED) -> None:
    for _ in pypto.loop(2):
        d, b = c, a
        pypto.abs(d + b)


def add_up(a: FIXED, b: FIXED, c: FIXED) -> None:
    if True:
        c += a


def kept_by_a_closure(a: FIXED, b: FIXED, c: FIXED) -> None:
    c = a

    def reads() -> object:
        return c

    reads()


@pytest.mark.parametrize(
    ("function", "name", "line"),
    [(add, "c", 1), (add_in_a_loop, "b", 2), (add_up, "c", 2), (kept_by_a_closure, "c", 1)],
)
def test_a_parameter_is_not_assigned_to(function: Any, name: str, line: int) -> None:
    kernel = pypto.frontend.jit(function)
    c = np.zeros((16, 32), np.float32)
    at = function.__code__.co_firstlineno + line
    text = rf"line {at} of .*test_tolerance.py assigns to the parameter {name}.*{name}\[:\] = "
    for call in (kernel, kernel.certainty, kernel.program):
        with pytest.raises(UpstreamRefusalError, match=text):
            call(WHOLE[:16], WHOLE[:16], c)
    with pypto.options(release="0.2.0"):
        kernel(WHOLE[:16], WHOLE[:16], c)  # whose parser gives the name to the new tensor


def test_it_is_found_without_source() -> None:
    space: dict[str, Any] = {}
    exec("def kernel(a, c):\n    a.x = c[:] = 1\n    del a\n    c = 2", space)
    assert reassigned(space["kernel"], ("a", "c")) == ("c", ("<string>", 4))
    assert refused_statements(space["kernel"]) == ()
    assert reassigned(print, ("a",)) is None


def test_other_variables_are_assigned_to() -> None:
    def kernel(a: Any, c: Any) -> None:
        whole = [c + 1 for c in range(3)]
        for a in whole:
            d = a
        d, c[0:2] = 1, 2
        c.name = d

    assert reassigned(kernel, ("a", "c")) is None


def statements() -> None:
    for i in pypto.loop(3):
        if i == 1:
            break
        for j in range(3):
            if j:
                continue
        else:
            pass
        continue
    with pypto.options():
        i = 3
    try:
        pass
    finally:
        i = 4
    while True:
        import math

        break

    def inner() -> int:
        return 1

    assert math.pi > inner()
    return


def test_statements_that_upstream_refuses() -> None:
    first = statements.__code__.co_firstlineno
    found = [
        (line - first, text)
        for (_, line), text, parsers in refused_statements(statements)
        if "head" in parsers
    ]
    expected = [
        (3, "break", "Break is not supported by the PTO parser"),
        (4, "for j in range(3):", "An else of a loop is not supported by the PTO parser"),
        (9, "continue", "Continue is not supported by the PTO parser"),
        (10, "with pypto.options():", "With is not supported by the PTO parser"),
        (12, "try:", "Try is not supported by the PTO parser"),
        (17, "import math", "Import is not supported by the PTO parser"),
        (25, "return", "Return statements are not allowed"),
    ]
    assert found == [
        (line, f"upstream refuses `{text}` in a kernel: {why}") for line, text, why in expected
    ]


@pytest.mark.parametrize("new_ir", [None, True, False])
def test_what_the_parser_before_the_new_ir_refuses(new_ir: bool | None) -> None:
    @pypto.frontend.jit(new_ir=new_ir)
    def kernel(x: pypto.Tensor[[16, 32], pypto.DT_FP32], out: pypto.Tensor[[16, 32]]) -> None:
        half: float = 0.5
        for _ in range(2):
            break
        out[:] = x * half

    with pypto.options(strict=True):
        if new_ir is not False:
            kernel(WHOLE[:16], np.zeros((16, 32), np.float32))
            return
        with pytest.raises(pypto.error.ParserError, match="Break is not") as refused:
            kernel(WHOLE[:16], np.zeros((16, 32), np.float32))
        assert isinstance(refused.value, UpstreamRefusalError)


@pytest.mark.parametrize("refused", ["while", "break", "continue", "annotation", "def"])
def test_statements_that_the_wheel_alone_refuses(refused: str) -> None:
    @pypto.frontend.jit
    def kernel(x: FIXED, out: FIXED):
        pypto.set_vec_tile_shapes(16, 32)
        if refused == "while":
            while out is None:
                pass
        for i in range(2):
            if refused == "break" and i == 1:
                break
            if refused == "continue":
                continue
        half: float = 0.5

        def scaled(of: Any) -> Any:
            return of * half

        out[:] = scaled(x)

    texts = {
        "while": "while out is None:",
        "annotation": "half: float = 0.5",
        "def": r"def scaled\(of: Any\) -> Any:",
    }

    def call() -> None:
        kernel(WHOLE[:16], np.zeros((16, 32), np.float32))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call()
    with pypto.options(release="0.2.0"):
        with pytest.warns(UpstreamRefusalWarning, match=texts.get(refused, f"`{refused}`")):
            call()
        with pypto.options(strict=True), pytest.raises(UpstreamRefusalError, match="`while out"):
            call()


lp = pypto.loop


def seven(count: int) -> Iterator[Any]:
    yield from (i + 0 for i in pypto.loop(count))


@pytest.mark.parametrize("way", range(5))
def test_a_loop_is_one_by_whatever_name(way: int) -> None:
    @pypto.frontend.jit
    def by_name(x: FIXED, out: FIXED):
        for i in lp(7):
            if i == 2:
                break

    @pypto.frontend.jit
    def counted(x: FIXED, out: FIXED):
        for i, _ in enumerate(
            pypto.loop(7),
        ):
            if i == 2:
                break

    @pypto.frontend.jit
    def handed_on(x: FIXED, out: FIXED):
        for _ in seven(7):
            break

    @pypto.frontend.jit
    def held(x: FIXED, out: FIXED):
        indices = pypto.loop_unroll(7)
        for i, _ in indices:
            if i != 2:
                continue

    @pypto.frontend.jit
    def others(x: FIXED, out: FIXED):
        for i in pypto.loop(2):
            for j in [*lp(3), *range(3)]:
                if i + j == 2:
                    break
        for k in range(3):
            next(lp(3))
            if k:
                break
        with pytest.raises(ZeroDivisionError):
            outside()

    def outside() -> None:
        for _ in lp(3):
            raise ZeroDivisionError

    kernel = (by_name, counted, handed_on, held, others)[way]
    out = np.zeros((16, 32), np.float32)
    if kernel is others:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kernel(WHOLE[:16], out)
        assert ["with pytest" in str(each.message) for each in caught] == [True]
        return
    refuses("upstream refuses `.*(break|continue).*` in a kernel", lambda: kernel(WHOLE[:16], out))


@pytest.mark.parametrize("names", [{}, {"__name__": None}, {"__name__": "some"}], ids=str)
def test_a_module_without_a_name_is_warned(names: dict[str, Any]) -> None:
    space = {"pypto": pypto, "ROWS": ROWS, **names}
    source = "def kernel(x: ROWS, out: ROWS):\n    pypto.set_vec_tile_shapes(16, 32)\n    x + 1.0"
    exec(compile(source, "made.py", "exec"), space)
    kernel = pypto.jit(space["kernel"])
    with pytest.warns(DynamicOperandWarning) as caught:
        kernel(WHOLE, np.zeros_like(WHOLE))
    assert [(each.filename, each.lineno) for each in caught] == [("made.py", 3)]


def test_a_kernel_with_such_a_statement() -> None:
    @pypto.frontend.jit
    def kernel(x: FIXED, out: FIXED):
        pypto.set_vec_tile_shapes(16, 32)
        for i in pypto.loop(16):
            if i == 2:
                break
            out[i : i + 1] = x[i : i + 1]

    out = np.zeros((16, 32), np.float32)
    refuses("kernel: upstream refuses `break` in a kernel", lambda: kernel(WHOLE[:16], out))
    assert np.count_nonzero(out.any(axis=1)) == 2


# --- Arguments and options -----------------------------------------------------------------------


def test_tensors_that_are_not_contiguous() -> None:
    torch = pytest.importorskip("torch")
    wide = np.zeros((32, 64), np.float32)
    strided = r"kernel: x is not contiguous \(strides \[256, 8\] B\), which upstream refuses"
    refuses(strided, lambda: run(lambda x, fixed, out: None, wide[:, ::2]))
    refuses("tensor 't' is not contiguous", lambda: pypto.from_torch(torch.ones(4, 8).T, "t"))
    with pypto.options(strict=True):
        run(lambda x, fixed, out: None, wide[:, :32].copy())
        run(lambda x, fixed, out: None, wide[3:4, :32])


@pytest.mark.parametrize(
    ("group", "name", "wrong", "right", "text"),
    [
        ("host_options", "compile_stage", 6, pypto.CompStage.TENSOR_GRAPH, "0 to 5, not 6"),
        ("host_options", "compile_timeout", -1, 0, "0 to 2147483647, not -1"),
        ("debug_options", "compile_debug_mode", 3, 2, "0 to 2, not 3"),
        ("debug_options", "runtime_debug_mode", 5, 4, "0 to 4, not 5"),
        ("pass_options", "vec_nbuffer_setting", {-3: 1}, {-2: 1}, "-2 to 2147483647, not -3"),
        ("pass_options", "vec_nbuffer_setting", {0: 1, 1: -1}, {"func1_0": 0}, "not -1"),
        ("pass_options", "cube_nbuffer_setting", {0: 0}, {-1: 1}, "1 to 2147483647, not 0"),
        ("pass_options", "cube_l1_reuse_setting", {0: (-1, "left")}, {0: (1, "left")}, "not -1"),
        ("pass_options", "sg_set_scope", -2, (3, True, False), "-1 to 2147483647, not -2"),
        ("pass_options", "auto_mix_partition", 2, 1, "0 to 1, not 2"),
        ("pass_options", "auto_mix_partition", np.int64(2), np.int64(1), "0 to 1, not 2"),
        ("pass_options", "sg_set_ooo_scope", 0, -1, "-1 or 1 to 100000, not 0"),
        ("pass_options", "sg_set_ooo_scope", 100001, 100000, "1 to 100000, not 100001"),
        ("pass_options", "sg_set_tunevf_mode", 3, 2, "0 to 2, not 3"),
        ("runtime_options", "device_sched_mode", 4, 3, "0 to 3, not 4"),
        ("runtime_options", "stitch_function_max_num", 0, 1024, "1 to 1024, not 0"),
    ],
)
def test_numbers_out_of_range(group: str, name: str, wrong: Any, right: Any, text: str) -> None:
    def with_options(value: Any) -> None:
        with pypto.options(**{group: {name: value}}):
            pass

    def as_kernel(value: Any) -> None:
        @pypto.frontend.jit(**{group: {name: value}})
        def kernel(x: ROWS):
            pass

        kernel(WHOLE)

    for call in (with_options, as_kernel):
        refuses(f"{group}: {name}: upstream takes .*{text}", lambda call=call: call(wrong))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", pypto.IgnoredSettingWarning)
            call(right)
    if group != "runtime_options":
        with pypto.options():
            refuses(text, lambda: getattr(pypto, f"set_{group}")(**{name: wrong}))


@pytest.mark.parametrize(
    ("key", "outside"),
    [
        (np.s_[:8], r"\[:8\] of axis 0 is assigned to: upstream puts it at 8 - 16 = -8"),
        (np.s_[:-8], r"\[:8\] of axis 0 .* 8 - 16 = -8, before the tensor begins; write \[0:8\]"),
        (np.s_[8:, :24], r"\[:24\] of axis 1 .* 24 - 32 = -8"),
        (np.s_[..., :24], r"\[:24\] of axis 1 "),
        *((each, "") for each in (np.s_[0:8], np.s_[8:], np.s_[:16], np.s_[-8:, 0:24], np.s_[3])),
        (np.s_[..., :32], ""),
    ],
)
def test_a_slice_without_a_start_is_assigned_to_elsewhere_upstream(key: Any, outside: str) -> None:
    """Without a start, offset = stop - length (python/pypto/tensor.py:506 of r0.2.0)."""

    @pypto.frontend.jit
    def kernel(x: FIXED, c: FIXED) -> None:
        c[key] = x[key]

    x, c = (np.full((16, 32), each, np.float32) for each in (2, 1))
    expected = c.copy()
    expected[key] = x[key]
    if outside:
        refuses(outside, lambda: kernel(x, c))
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UpstreamRefusalWarning)
            kernel(x, c)
    np.testing.assert_array_equal(c, expected)


def test_no_value_fits_a_slice_that_ends_behind_the_tensor() -> None:
    """Upstream would put it at 24 - 16 = 8, which is not before the tensor."""

    @pypto.frontend.jit
    def kernel(x: FIXED, c: FIXED) -> None:
        c[:24] = x

    x = np.zeros((16, 32), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UpstreamRefusalWarning)
        with pytest.raises(ValueError, match=r"the index takes \[24, 32\] of tensor 'c'"):
            kernel(x, x.copy())
