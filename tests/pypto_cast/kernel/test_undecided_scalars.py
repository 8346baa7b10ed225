"""Numbers that a kernel reads of elements that are not certain: what they
place and steer, each kernel compared with every value that a number can have.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import re
import textwrap
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.environment.sources import ROOT
from support.numbers.codes import SEED

import pypto_cast as pypto
from benchmarks.undecided_kernels import check, compiled, random_kernels

F32 = pypto.Tensor[[8, 8], pypto.DT_FP32]
Form = tuple[str, int | None]

FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "adds": ("out[:] = x + n", 0),
        "subtracts": ("out[:] = pypto.concat([x[0:1], 2 - x[1:8] - (n - 1)], 0)", 8),
        "multiplies": ("out[:] = x * n  # x is 0 once", 1),
        "divides": ("out[:] = pypto.full([8, 8], (n + 4) / 2, pypto.DT_FP32)", 0),
        "divides_to_floor": ("out[:] = y + (7 * n) // 4", 0),
        "quotient_that_is_one": ("out[:] = y + (n + 8) // 4 * (n // 8)", 64),
        "remainder": ("out[:] = pypto.cast(z * (n % 3), pypto.DT_FP32) + 1.0 + n % 2", 0),
        "shifts": ("out[:] = x + ((5 << n) >> 1)", 0),
        "masks": ("out[:] = x + (n & 1) * 2 + (n | 4)", 0),
        "negates": ("out[:] = x - (-n - 1)", 0),
        "upstreams_least": ("out[:] = x + pypto.min(n, 2) + pypto.symbolic_scalar(1).max(n)", 0),
        "least_of_all": ("out[:] = x + pypto.min(n, 0) + n.max(3)", 64),
        "fills": ("out.fill_(n)", 0),
        "full_of_it": ("out[:] = pypto.full([8, 8], n, pypto.DT_FP32)", 0),
        "selects": ("out[:] = pypto.where(x > 7.0, x, pypto.where(x > 3.0, n, y))", 48),
        "clips": ("out[:] = pypto.clip(x, n - 2, 100.0)", 40),
        "compares_with_an_element": (
            "out[:] = pypto.where(x > pypto.Element(pypto.DT_FP32, n), x, y)",
            53,
        ),
        "pads": ("out[:] = pypto.pad(x[0:4], [0, 0, 0, 4], value=n)", 32),
        "scatters_it": (
            "out[:] = pypto.scatter(x, 0, pypto.full([1, 8], 2, pypto.DT_INT32), n)",
            56,
        ),
        "reads_at_it": ("out[:] = x + z[n, n + 4]", 0),
        "views_at_it": (
            """
        out[:] = x
        out[0:1] = pypto.view(x, [1, 8], [n, 0])
        out[1:2] = pypto.clip(x[4 * n - 3 * n : n + 1], 4.0, 5.0)  # 4 in all four rows
        out[2:3] = x[n + 2, 0:8].reshape([1, 8])
        """,
            48,
        ),
        "writes_at_it": ("out[n : n + 3] = x[4:7]", 16),
        "assembles_at_it": ("pypto.assemble(x[0:3, 0:3], [n, 4 - n], out)", 28),
        "adds_in_place_at_it": ("pypto.atomic_add(x[0:2], [n, 0], out)", 24),
        "writes_perhaps_outside": ("pypto.assemble(x[0:1], [n * (3 - n) + 4, 0], out)", None),
        "views_perhaps_below_0": ("out[0:1] = pypto.view(x, [1, 8], [n * n - n, 0])", None),
        "writes_at_it_and_everywhere": (
            """
        out[n : n + 1] = x[0:1]
        out[:] = x
        """,
            64,
        ),
        "decided_condition": (
            """
        if n < 4 and n + 1 > n and n != 4 and not n == -1 and n + 1:
            out[:] = x
        """,
            64,
        ),
        "branch": (
            """
        if n > 1:
            out[0:1] = x[1:2]
        """,
            None,
        ),
        "branch_by_what_is_not_0": (
            """
        if (n + 3) / 2 and -(n // 2 + 1):
            out[:] = x
        """,
            64,
        ),
        "branch_by_truth": (
            """
        if not n:
            third[0:1] = x[1:2]
        """,
            None,
        ),
        "repeated": (
            """
        while n > 0:
            out[n : n + 1] = x[1:2]
            n = n - 1
        """,
            None,
        ),
        "condition": (
            """
        if pypto.cond(n == 0):
            out[0:1] = x[0:1]
        """,
            None,
        ),
        "rounds": (
            """
        for k in pypto.loop(1, n + 1):
            pypto.assemble(x[0:1], [k, 0], third)
        """,
            None,
        ),
        "rounds_around_a_call": (
            """
        for _ in pypto.loop(n - 1):
            copied(x, third)
        """,
            None,
        ),
        "unrolled": (
            """
        for k, _ in pypto.loop_unroll(0, n + 1, 1, unroll_list=[2]):
            out[k : k + 1] = x[0:1]
        """,
            None,
        ),
        "pythons_range": (
            """
        for k in range(n):
            out[k : k + 1] = x[0:1]
        """,
            None,
        ),
        "extent": ("out[0:1] = pypto.sum(pypto.clip(x[0 : n + 1], 1.0, 1.0), 0, True)", None),
        "extent_to_the_end": ("out[0:1] = pypto.sum(pypto.clip(x[n:], 1.0, 1.0), 0, True)", None),
        "valid_extent": (
            "pypto.assemble(pypto.view(x, [4, 8], [0, 0], valid_shape=[n + 1, 8]), [0, 0], out)",
            None,
        ),
        "view_over_the_edge": (
            "out[0:1] = pypto.sum(0.0 * pypto.view(x, [4, 8], [n + 3, 0]) + 1.0, 0, True)",
            None,
        ),
        "valid_shape_of_full": (
            """
        filled = pypto.full([4, 8], 1.0, pypto.DT_FP32, valid_shape=[n + 1, 8])
        out[0:1] = pypto.sum(filled, 0, True)
        """,
            None,
        ),
        "spaced": ("out[0, :] = pypto.cast(pypto.arange(n, n + 8), pypto.DT_FP32)", None),
        "first_ones": (
            "out[:] = pypto.sum(pypto.clip(pypto.topk(x, n + 1)[0], 1.0, 1.0), 1, True) + x",
            None,
        ),
        "as_float": ("out[:] = x + float(n)", None),
        "as_int": ("out[:] = x + int(n)", None),
        "as_text": (
            'out[:] = x + int(f"{n:d}")',
            None,
        ),
        "as_key": ('out[:] = x + {"1": 3.0}.get(str(n), 1.0)', None),
        "text_of_a_list": ('out[:] = x + {"[1]": 3.0}.get(str([n]), 1.0)', None),
        "as_array": (
            "out[:] = x + float(np.arange(4)[n] + np.asarray(n))",
            None,
        ),
        "index_of_a_list": ("out[:] = x + [3.0, 1.0, 4.0, 1.5][n]", None),
        "key_of_a_dict": ("out[:] = x + {0: 3.0, 1: 1.0, 2: 4.0, 3: 1.5}[n]", None),
        "membership": ("out[:] = x + (1.0 if n in (1, 2) else 2.0)", None),
        "pythons_least": ("out[:] = x + min(n, 2)", None),
        "attribute": ("out[:] = x + n.concrete()", None),
        "math_function": ("out[:] = x + math.sqrt(n)", None),
        "tile": (
            """
        pypto.set_vec_tile_shapes(n + 1, 8)
        out[0:1] = pypto.sum(y + 0.1, 0, True)
        """,
            None,
        ),
        "writes_by_another_name": (
            """
        named = third
        if n > 1:
            named[0:1] = x[1:2]
        """,
            None,
        ),
        "writes_one_of_a_list": ("[out, other, third, third][n][:] = x", None),
        "writes_by_a_module": (
            """
        module.copied(x, out)
        if n > 1:
            module.copied(x, third)
        """,
            None,
        ),
        "writes_by_a_second_call": (
            """
        copied(x, out)
        if n > 1:
            copied(x, third)
        """,
            None,
        ),
        "writes_by_a_lambda": (
            """
        write = lambda to: pypto.assemble(x[0:1], [0, 0], to)
        if n > 1:
            write(third)
        """,
            None,
        ),
        "writes_by_another_shape": (
            """
        flat = pypto.reshape(third, [64], inplace=True)
        if n > 1:
            flat[0:8] = x[0:1].reshape([8])
        """,
            None,
        ),
        "writes_what_an_operation_returned": (
            """
        same = pypto.cast(third[:], pypto.DT_FP32)
        if n > 1:
            same[:] = x
        """,
            None,
        ),
        "writes_one_of_several": (
            """
        for each in reversed([third]):
            if n > 1:
                each[:] = x
        """,
            None,
        ),
        "writes_what_a_list_kept": (
            """
        kept = [None]
        kept[0] = third
        if n > 1:
            kept[0][:] = x
        """,
            None,
        ),
        "writes_one_of_a_sum_of_lists": (
            """
        several = [x]
        several = several + 2 * [third]
        if n > 1:
            several[1][:] = x
        """,
            None,
        ),
        "writes_by_the_name_of_a_method": (
            """
        if n > 1:
            getattr(third, "fill_")(2.0)
        """,
            None,
        ),
        "writes_by_the_class": (
            """
        if n > 1:
            pypto.Tensor.fill_(third, 2.0)
        """,
            None,
        ),
        "writes_by_text": (
            """
        if n > 1:
            eval("third.fill_(2.0)")
        """,
            None,
        ),
        "reads_alone": (
            """
        joined = pypto.concat([x[0:4], y[4:8]], 0) + pypto.add(x, y).reshape([8, 8]) * x.shape[0]
        if n > 1 and len(x.shape) == 2 and isinstance(y, pypto.Tensor):
            out[:], other[:] = joined, y
        """,
            None,
        ),
        "asks_the_platform": (
            """
        release = pypto.platform().release
        if n > 1 and release:
            out[:] = x
        """,
            None,
        ),
        "reads_under_other_names": (
            """
        kept, parts = pypto.cast(x, pypto.DT_FP32), [x[k : k + 4] for k in range(0, 8, 4)]
        total = pypto.tensor([8, 8], pypto.DT_FP32)
        total[:] = y
        for k in pypto.loop(min(z[0, 0], 2)):
            total[:] = total + pypto.view(kept, [8, 8], [k, 0]) * 0.0
        if n > 1:
            for k, part in enumerate(parts):
                out[4 * k : 4 * k + 4] = part
        """,
            None,
        ),
        "caught": (
            """
        try:
            fails_with(x, third, n)
        except ValueError:
            out[:] = x
        """,
            None,
        ),
    }
)
"""The bodies of kernels over x, y (FP32 [8, 8]), z (INT32) and a number that is 1 and may be 0 to
3, and the count of certain elements of the 64 of `out`; None: anything may depend on the number.
"""
CAUGHT = {
    "division": "6 // n",
    "remainder": "6 % (n - 2)",
    "overflow": "n * 2**62",
    "overflow_of_some": "n * n * 2**60 + n * n * 2**60",
    "power": "2 ** (n * 40)",
    "exponent": "2 ** (n - 1)",
    "shift": "1 << (n - 1)",
    "place_of_a_write": "pypto.assemble(x[0:4], [n + 3, 0], out)",
    "place_of_a_sum": "pypto.atomic_add(x[0:4], [n + 3, 0], out)",
    "place_of_a_view": "pypto.view(x, [1, 8], [n + 5, 0])",
    "index": "x[n + 5]",
    "index_below_0": "x[n - 9 :]",
    "number_that_fills": "pypto.full([8, 8], n * 100, pypto.DT_INT8)",
    "number_beside_a_tensor": "z + n * 2**30",
    "tensor_of_indices": "pypto.gather(x, 0, z * 0 + n + 5)",
    "tensor_of_indices_that_raises": "pypto.gather(x, 0, z * 0 + n + 7)",
    "read_of_what_may_be_unwritten": "counts[n + 2, 0]",
    "use_of_what_may_be_unwritten": "half[n + 2 : n + 3] + 1.0",
    "use_of_what_may_be_written": "half[n + 4 : n + 5] = x[0:1]; half[5:6] + 1.0",
    "division_in_an_operand": "x + 6 // (n - 1)",
}
"""Operations that raise for some of the values 0 to 3, by what they raise for."""
FORMS = {
    **FORMS,
    **{
        f"caught_{name}": (
            f"""
        half, counts = pypto.tensor([8, 8]), pypto.tensor([8, 8], pypto.DT_INT32)
        half[0:4], counts[0:4] = x[0:4], z[0:4]
        try:
            {source}
        except (ArithmeticError, LookupError, ValueError):
            third[:] = x
        """,
            None,
        )
        for name, source in CAUGHT.items()
    },
    "caught_by_none": (
        """
        try:
            k = 6 // (n + 1) % 7 + (n << 60) * 2 // (2 ** (n - 8) if n > 8 else 3) + n * -(2**61)
            pypto.assemble(x[0:4], [n, 0], other)
            other[:] = x[n + 4 : n + 5] * pypto.gather(x, 0, z * 0 + n + 4)
            other[:] = pypto.cast(pypto.full([8, 8], n * 40, pypto.DT_INT16), pypto.DT_FP32)
        except (ArithmeticError, LookupError, ValueError):
            third[:] = x
        other[:] = x
        """,
        64,
    ),
    "thread": ("out[:] = x + in_thread(lambda: int(n))", None),
    "condition_in_a_thread": ("out[:] = x + in_thread(lambda: 1.0 if n + 1 > 2 else 2.0)", None),
    "pool": ("out[:] = x + list(ThreadPoolExecutor(1).map(float, [n]))[0]", None),
    "element_in_a_thread": ("out[:] = x + in_thread(lambda: int((z * 0)[n + 0, 0] + n))", None),
    "place_in_a_thread": (
        "out[:] = x + in_thread(lambda: pypto.view(x, [4, 8], [n + 3, 0]).valid_shape[0])",
        None,
    ),
    "read_in_a_thread": (
        """
        open = pypto.full([1, 1], n, pypto.DT_INT32)
        out[:] = x + in_thread(lambda: int(open[0, 0]))
        """,
        None,
    ),
    "pickled": ("out[:] = x + pickle.loads(pickle.dumps(n))", None),
    "copied": ("out[:] = pypto.clip(x, copy.copy(n), copy.deepcopy([n])[0] + 100)", 32),
}
LISTED = {
    **dict.fromkeys((f"caught_{name}" for name in CAUGHT), 3),
    **dict.fromkeys(
        (
            *("branch_by_truth", "rounds", "rounds_around_a_call", "caught"),
            *("writes_by_another_name", "writes_one_of_a_list", "writes_by_a_module"),
            *("writes_by_a_second_call", "writes_by_a_lambda", "writes_by_another_shape"),
            *("writes_what_an_operation_returned", "writes_one_of_several"),
            *("writes_by_the_name_of_a_method", "writes_by_the_class"),
        ),
        3,
    ),
    "writes_what_a_list_kept": 4,  # the source of what is written to it might be kept too
    "writes_one_of_a_sum_of_lists": 4,
    "writes_by_text": 6,
}
"""The outputs of forms that may write to others than `out` and `other`."""


def copied(source: Any, to: Any) -> None:
    to[:] = source


@pypto.jit
def fails_with(source: F32, to: F32, n: int) -> None:
    if n > 0:
        raise ValueError("no")
    to[:] = source


def in_thread(asked: Callable[[], object]) -> object:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(asked()))
    thread.start()
    thread.join()
    return found[0]


NAMES = {
    "ThreadPoolExecutor": ThreadPoolExecutor,
    "copied": copied,
    "copy": copy,
    "in_thread": in_thread,
    "pickle": pickle,
    "fails_with": fails_with,
    "math": math,
    "module": SimpleNamespace(copied=copied),
    "np": np,
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.sampled(3)
def test_a_form_holds_for_every_value(name: str) -> None:
    source, certain = FORMS[name]
    lines = ["out[:], other[:] = y, x", *textwrap.dedent(source).strip().splitlines()]
    found = check(compiled("x, y, z, out, other, third, n", lines, **NAMES), [(0, 1, 3)])
    assert (found.runs, found.failed, found.false) == (4, 0, 0)
    assert found.certain == (0 if certain is None else certain + 64)
    assert found.elems == 64 * LISTED.get(name, 2)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_random_kernels_hold_for_every_value(seed: int) -> None:
    found = list(itertools.islice(random_kernels(seed), 10))
    assert [source for source, checked in found if checked.false] == []


def test_the_table_says_what_was_checked() -> None:
    page = (ROOT / "benchmarks" / "undecided_kernels.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\d{4}-\d\d-\d\d) \| (\w{9}) \| (\d+) \| ([\d,]+) \| .* \| (\d+) \|$", page, re.M
    )
    assert sum(int(kernels.replace(",", "")) for *_, kernels, _ in rows) >= 5000
    assert {false for *_, false in rows} == {"0"}
