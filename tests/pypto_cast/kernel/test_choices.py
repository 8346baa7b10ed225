"""Certain by documents, certain given named choices, and which choices."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from support.programs.bodies import Body, certainty_of, kernel_of, result_of

import pypto_cast as pypto
from pypto_cast.kernel.certainty import Certainty, CertaintyCounts
from pypto_cast.recording.tally import counting
from pypto_cast.testing import UndecidedError, assert_certain, load_bounds, save_bounds
from simulator.arithmetic.trust import ASSUME_RNE, ASSUMPTIONS, CHOICES, NAMED_CHOICES

TINY = 2.0**-126  # the least normal FP32 number


def floats(*values: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array([values]).astype(dtype)


def to(dtype: pypto.DataType, mode: pypto.CastMode = pypto.CAST_RINT) -> Body:
    return lambda x: pypto.cast(x, dtype, mode)


# By the choice: a kernel, and inputs of which all but the first column pass it by.
CASES: list[tuple[str, Body, np.ndarray]] = [
    ("ASSUME_RNE", lambda x: x + 1.0, floats(0.1, 3.0, 0.0, 2.0**-23)),
    ("ASSUME_RNE", lambda x: x * x, floats(1.1, 3.0, 0.5, 1 + 2.0**-11)),
    ("ASSUME_GRADUAL_UNDERFLOW", lambda x: x * 0.5, floats(TINY, 2 * TINY, 0.0)),
    ("ASSUME_GRADUAL_UNDERFLOW", lambda x: x * 4.0, floats(TINY / 2, TINY)),
    ("ASSUME_IEEE_OVERFLOW", to(pypto.DT_FP16), floats(65520, 65519, -65504)),
    ("ASSUME_IEEE_OVERFLOW", to(pypto.DT_FP16, pypto.CAST_TRUNC), floats(65536, 65535)),
    ("ASSUME_IEEE_OVERFLOW", to(pypto.DT_FP16, pypto.CAST_CEIL), floats(65505, -65505)),
    ("ASSUME_IEEE_OVERFLOW", to(pypto.DT_BF16), floats(3.3961776e38, 3.3e38)),
    ("ASSUME_NAN_PATTERN", to(pypto.DT_FP32), floats(np.nan, 1, np.inf, dtype=np.float16)),
    ("ASSUME_NAN_PATTERN", lambda x: x - x, floats(np.inf, 7)),
    ("ASSUME_NAN_PATTERN", pypto.abs, floats(np.nan, -7)),
    ("ASSUME_GRADUAL_CASTS", to(pypto.DT_FP16), floats(2.0**-15, 2.0**-14, 0.0, -0.0)),
    ("ASSUME_GRADUAL_CASTS", to(pypto.DT_FP32), floats(2.0**-15, 2.0**-14, dtype=np.float16)),
    ("ASSUME_GRADUAL_CASTS", to(pypto.DT_INT32, pypto.CAST_CEIL), floats(TINY / 2, TINY)),
    ("ASSUME_GRADUAL_CASTS", pypto.ceil, floats(TINY / 2, TINY, -TINY / 2)),
    ("ASSUME_SIGN_OF_ZERO", to(pypto.DT_FP32), floats(-0.0, 0.0, -1, dtype=np.float16)),
    ("ASSUME_ODD_UNDERFLOW", to(pypto.DT_FP16, pypto.CAST_ODD), floats(2.0**-30, 2.0**-14)),
    ("ASSUME_INF_NAN_MODE", to(pypto.DT_FP16), floats(np.inf, 65504, -2)),
    ("ASSUME_INF_NAN_MODE", lambda x: x + x, np.array([[2**30, 2**30 - 1, -(2**30)]], np.int32)),
]


@pytest.mark.parametrize(
    ("name", "body", "x"), CASES, ids=lambda x: x if isinstance(x, str) else ""
)
def test_what_passes_a_choice_is_counted_under_it(name: str, body: Body, x: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pypto.TileShapeWarning)
        found = certainty_of(body, x)[0]
        with pypto.options(trust="documented"):
            documented = certainty_of(body, x)[0]
    assert found.certain.all()
    assert found.by_documents.tolist() == [[False] + [True] * (x.size - 1)]
    assert found.counts == CertaintyCounts(by_documents=x.size - 1, by_choices=1)
    by_choice = {choice.name: count for choice, count in found.certain_by_choice.items()}
    assert by_choice[name] == 1
    assert documented.certain.tolist() == found.by_documents.tolist()
    assert documented.counts == CertaintyCounts(by_documents=x.size - 1, undecided=1)


def test_sums_are_counted_under_their_order_unless_nothing_is_rounded() -> None:
    whole = [1, 2, 3, -4, 5, 6, 7, 8]
    x = np.float32([[1, 2.0**-24] * 4, whole, [TINY, -TINY / 2] * 4, [-0.0] * 8])
    found = certainty_of(lambda x: pypto.sum(x, -1, keepdim=True), x)[0]
    assert found.by_documents.tolist() == [[False], [True], [False], [False]]
    assert {choice.name for choice in found.certain_by_choice} == {
        "ASSUME_SUM_ORDER",
        "ASSUME_RNE",
        "ASSUME_GRADUAL_UNDERFLOW",
    }


def test_equal_elements_are_counted_under_the_stable_sort() -> None:
    x = floats(3, 1, 3, 2, dtype=np.float32)
    found = certainty_of(lambda x: pypto.argsort(x, -1, True), x)[0]
    assert found.by_documents.tolist() == [[False, False, True, True]]
    assert [choice.name for choice in found.certain_by_choice] == ["ASSUME_STABLE_SORT"]


def test_sorted_nans_have_open_bits() -> None:
    x = floats(np.inf, np.inf, np.inf, np.inf)

    def body(x: pypto.Tensor) -> pypto.Tensor:
        return pypto.topk(x - x, 4)[0]

    found = certainty_of(body, x)[0]
    assert found.certain.all()
    assert (found.low.view(np.uint32) == found.values.view(np.uint32)).all()
    assert [choice.name for choice in found.certain_by_choice] == ["ASSUME_NAN_PATTERN"]
    with pypto.options(trust="documented"):
        assert not certainty_of(body, x)[0].certain.any()


def test_a_quotient_is_counted_under_correct_rounding_where_that_is_trusted() -> None:
    x = floats(1, np.inf, 0)
    with pypto.options(trust="ieee"):
        found = certainty_of(lambda x: x / 3.0, x)[0]
    assert found.by_documents.tolist() == [[False, True, True]]
    assert [choice.name for choice in found.certain_by_choice] == ["ASSUME_CORRECT_ROUNDING"]
    assert certainty_of(lambda x: x / 3.0, x)[0].counts.by_choices == 0


def test_a_choice_that_is_assumed_besides_is_counted() -> None:
    """Operands of 24 bits, cut to 11 by the cube: values that nothing else gives."""
    a, b = floats(1 + 2.0**-20, dtype=np.float32), floats(2, dtype=np.float32)

    def product(a: pypto.Tensor, b: pypto.Tensor) -> pypto.Tensor:
        pypto.set_cube_tile_shapes([16, 16], [16, 16], [16, 16])
        return pypto.matmul(a, b, pypto.DT_FP32)

    with pypto.options(assume=["ASSUME_CUBE_HF32"]):
        found = certainty_of(product, a, b)[0]
    assert found.values.tolist() == [[2]]
    if found.counts.certain:
        assert "ASSUME_CUBE_HF32" in {choice.name for choice in found.certain_by_choice}


def test_several_choices_meet_in_one_result_and_a_result_forgets_what_cannot_matter() -> None:
    x = floats(np.inf, 0.1, 70000.1, 7)
    found = certainty_of(lambda x: pypto.cast(x * 1.1, pypto.DT_FP16), x)[0]
    rounded, both = (
        {choice.name for k, choice in enumerate(found.named_choices) if bits >> k & 1}
        for bits in found.choices[0, [1, 2]].tolist()
    )
    assert rounded == set()  # FP16 is too coarse for one last place of FP32
    assert both == {"ASSUME_RNE", "ASSUME_IEEE_OVERFLOW", "ASSUME_INF_NAN_MODE"}
    truth = certainty_of(lambda x: pypto.where(x * 1.1 > 5.0, x, x + 0.0), x)[0]
    assert truth.by_documents.all()


def test_a_saturating_kernel_and_a_measured_choice_are_not_in_doubt() -> None:
    x = floats(np.inf, 65504)
    with pypto.options(inf_nan_mode=False):
        assert certainty_of(to(pypto.DT_FP16), x)[0].by_documents.all()


def test_every_choice_has_a_bit_a_source_and_a_case() -> None:
    assert len(NAMED_CHOICES) == len(set(NAMED_CHOICES)) <= 16
    assert ASSUMPTIONS | set(CHOICES.values()) <= set(NAMED_CHOICES)
    assert all(choice.statement and choice.source for choice in NAMED_CHOICES)
    tried = {name for name, _, _ in CASES} | {"ASSUME_SUM_ORDER", "ASSUME_STABLE_SORT"}
    assert tried == {choice.name for choice in ASSUMPTIONS}


# --- A kernel that goes by a choice --------------------------------------------------------------


def test_what_steers_a_kernel_by_a_choice_is_counted() -> None:
    x = floats(0.1, 0.2)

    def body(x: pypto.Tensor) -> pypto.Tensor:
        added = pypto.cast(x + 1e-9, pypto.DT_FP32, pypto.CAST_CEIL)
        index = pypto.cast(added * 1.1, pypto.DT_INT32, pypto.CAST_CEIL)
        return x if index[0, 0] > 1 else x + x

    # The number read is the same for every device, whatever its rounding.
    assert certainty_of(body, x, out=x)[0].by_documents.all()
    edge = floats(1.0 / 1.1, 0.2)

    def at_edge(x: pypto.Tensor) -> pypto.Tensor:
        index = pypto.cast(x * 1.1, pypto.DT_INT32, pypto.CAST_FLOOR)
        return x if index[0, 0] > 0 else x + x

    found = certainty_of(at_edge, edge, out=edge)[0]
    assert found.certain.all()
    assert not found.by_documents.any()
    assert ASSUME_RNE in found.certain_by_choice


def test_elements_that_nobody_wrote_on_another_way_rest_on_every_choice() -> None:
    def body(x: pypto.Tensor) -> pypto.Tensor:
        part = pypto.tensor(tuple(x.shape), pypto.DT_FP32, "part")
        part[0:1, 0:1] = x[0:1, 0:1] * 1.0
        return pypto.where(x * 1.1 > x * 1.1 + 0.0, part, x)

    x = floats(0.7, 0.2)
    found = certainty_of(body, x, out=x)[0]
    assert found.certain.all()
    assert not found.by_documents.any()
    assert set(found.certain_by_choice) == ASSUMPTIONS


def chain(x: pypto.Tensor) -> pypto.Tensor:
    return x * 2 + 1 - 0.5


def test_the_release_is_a_choice_of_what_the_other_one_changes() -> None:
    x = np.random.default_rng(5).standard_normal((4, 256)).astype(np.float16)
    found = certainty_of(chain, x)
    other = found.other_release
    assert other is not None
    assert 100 < other.count < x.size
    assert found.choices[other.choice] == other.count
    assert found[0].certain.all()
    assert not found[0].by_documents[other.changed[0]].any()
    exact = np.array([[0, 1, 2, -3]], np.float16)
    assert certainty_of(chain, exact)[0].by_documents.all()


def test_by_documents_either_release_may_hold() -> None:
    x = np.random.default_rng(5).standard_normal((4, 256)).astype(np.float16)
    changed = certainty_of(chain, x).other_release.changed[0]
    with pypto.options(trust="documented"):
        found = certainty_of(chain, x)[0]
        with pypto.options(release="0.2.0"):
            older = certainty_of(chain, x)[0].values
    assert found.counts.by_choices == 0
    assert not found.certain[changed].any()
    assert found.contains(older).all()


@pytest.mark.parametrize("release", ["0.2.0", "head"])
@pytest.mark.parametrize("body", [lambda x: x + 0.1, chain, lambda x: -x])
def test_what_both_releases_give_rests_on_what_either_chooses(release: Any, body: Body) -> None:
    """Head rounds an FP16 sum by a cast, which is documented, 0.2.0 by an instruction."""
    x = np.random.default_rng(6).standard_normal((4, 256)).astype(np.float16)
    with pypto.options(release=release):
        found = certainty_of(body, x)[0]
        with pypto.options(trust="documented"):
            documented = certainty_of(body, x)[0]
    assert found.certain.all()
    assert (found.by_documents == documented.certain).all()


def test_a_result_that_the_other_release_writes_elsewhere_rests_on_the_release() -> None:
    """0.5 + 2048 - 2048 is 0.5 in FP32 and 0 in FP16."""

    @pypto.jit
    def kernel(
        x: pypto.Tensor[[1, 16], pypto.DT_FP16],
        out: pypto.Tensor[[1, 16], pypto.DT_FP16],
        third: pypto.Tensor[[1, 16], pypto.DT_FP16],
    ) -> None:
        pypto.set_vec_tile_shapes(1, 16)
        kept = pypto.cast(x + 2048.0 - 2048.0, pypto.DT_INT32, pypto.CAST_CEIL)
        if kept[0, 0] == 1:
            out[:] = x
        else:
            third[:] = x

    x = np.full((1, 16), 0.5, np.float16)
    found = kernel.certainty(x, np.zeros_like(x), np.zeros_like(x))
    assert list(found) == ["out"]
    assert found.other_release is not None
    assert found.other_release.refusal == ""
    assert found.choices[found.other_release.choice] == x.size
    assert not found[0].by_documents.any()
    assert found.other_release.count == 2 * x.size  # of `third` too, which it alone writes
    third = np.full_like(x, -1)
    with pypto.options(trust="documented"):
        either = kernel.certainty(x, np.zeros_like(x), third)
        with counting() as tally:
            kernel(x, np.zeros_like(x), third)
    assert list(either) == ["out", "third"]
    assert not either["out"].certain.any()
    assert not either["third"].certain.any()
    assert (either["third"].low <= -1).all()
    assert either["third"].contains(x).all()
    assert tally.undecided.total() == 2 * x.size
    with pypto.options(trust="documented", release="0.2.0"):
        assert list(kernel.certainty(x, np.zeros_like(x), third)) == ["out", "third"]


def test_what_only_the_other_release_writes_is_an_output_of_a_kernel_without_others() -> None:
    @pypto.jit
    def kernel(
        x: pypto.Tensor[[1, 16], pypto.DT_FP16], out: pypto.Tensor[[1, 16], pypto.DT_FP16]
    ) -> None:
        pypto.set_vec_tile_shapes(1, 16)
        if pypto.cast(x + 2048.0 - 2048.0, pypto.DT_INT32, pypto.CAST_CEIL)[0, 0] == 0:
            out[0:1] = x

    x = np.full((1, 16), 0.5, np.float16)
    assert list(kernel.certainty(x, np.zeros_like(x))) == []
    with pypto.options(trust="documented"):
        assert list(kernel.certainty(x, np.zeros_like(x))) == ["out"]
        with counting() as tally:
            kernel(x, np.zeros_like(x))
    assert tally.undecided.total() == x.size


@pytest.mark.parametrize("is_declared", [False, True], ids=["at_once", "declared"])
@pytest.mark.parametrize(
    ("trust", "choices", "undecided"), [("default", 16, 0), ("documented", 0, 16)]
)
@pytest.mark.parametrize("release", ["0.2.0", "head"])
def test_a_function_counts_what_rests_on_the_release(
    release: Any, trust: Any, choices: int, undecided: int, is_declared: bool
) -> None:
    """An exact chain of FP16: no rounding is in doubt, the format that it runs in is."""
    x, out = np.ones((1, 16), np.float16), np.zeros((1, 16), np.float16)
    given = pypto.from_numpy(x), pypto.from_numpy(out)
    over = [pypto.tensor(x.shape, pypto.DT_FP16) for _ in given] if is_declared else given
    with counting() as tally:
        with (
            pypto.options(release=release, trust=trust, vec_tile_shapes=(1, 16)),
            pypto.function("chained", *over),
        ):
            over[1][:] = over[0] + 2048.0 - 2048.0
        if is_declared:  # under the default release and trust
            pypto.runtime._device_run_once_data_from_host(*given)
    assert out.tolist() == [[0.0 if release == "0.2.0" else 1.0] * 16]
    assert (tally.by_choices.total(), tally.undecided.total()) == (choices, undecided)
    assert tally.certain.total() == 16 - undecided


def test_a_function_that_an_undecided_number_steers_may_write_all_that_it_is_given() -> None:
    x, out, third = (pypto.from_numpy(np.full((1, 8), k, np.float32)) for k in (3, 0, 0))
    with (
        pypto.options(vec_tile_shapes=(1, 8)),
        counting() as tally,
        pypto.function("steered", x, out, third),
    ):
        number = pypto.cast(pypto.div(x, x + 0.0), pypto.DT_INT32)[0, 0]
        (out if number == 1 else third)[:] = x
    assert (tally.certain.total(), tally.undecided.total()) == (0, 24)


def test_a_plain_call_runs_once_and_warns_once() -> None:
    x, runs = floats(0.1), []

    def body(x: pypto.Tensor) -> pypto.Tensor:
        runs.append(1)
        return pypto.cast(x, pypto.DT_FP16, satmode=pypto.SaturationMode.OFF)

    with pytest.warns(pypto.SaturationModeWarning):
        out = result_of(body, x)
    kernel = kernel_of(body, x, out)
    runs.clear()
    with pytest.warns(pypto.SaturationModeWarning) as caught:
        kernel(x, out)
    assert len(runs) == 1
    with pytest.warns(pypto.SaturationModeWarning) as again:
        kernel.certainty(x, out)
    assert len(runs) == 3
    assert len(again) == len(caught)


# --- What counts, prints and keeps them ----------------------------------------------------------


@pytest.fixture
def mixed() -> Certainty:
    """One result by documents, two given a choice, one undecided."""
    return certainty_of(lambda x: pypto.where(x > 5.0, x / 3.0, x + 1.0), floats(1, 0.1, 0.2, 7))


def test_shares_are_asked_for_by_kind(mixed: Certainty) -> None:
    assert mixed.counts == CertaintyCounts(by_documents=1, by_choices=2, undecided=1)
    assert mixed.choices == {ASSUME_RNE: 2}
    assert mixed.by_documents[0].tolist() == [[True, False, False, False]]
    assert_certain(mixed, 0.75)
    assert_certain(mixed, 0.25, by="documents")
    with pytest.raises(UndecidedError, match=r"less than 0.3 certain by documents: out\n"):
        assert_certain(mixed, 0.3, by="documents")
    with pytest.raises(ValueError, match=r"by is one of choices, documents; got 'device'"):
        assert_certain(mixed, by=cast(Any, "device"))
    text = str(mixed)
    assert "75% certain, 2 of them given named choices, 1 of 4 undecided" in text
    assert "  2 rest on ASSUME_RNE" in text
    page = mixed._repr_html_()
    assert ASSUME_RNE.statement in page


def test_files_of_bounds_keep_the_choices(mixed: Certainty, tmp_path: Path) -> None:
    save_bounds(mixed, tmp_path / "bounds.npz")
    held = load_bounds(tmp_path / "bounds.npz")
    assert held.counts == mixed.counts
    assert held.choices == mixed.choices
    mixed.html(tmp_path / "page.html")
    assert "ASSUME_RNE" in (tmp_path / "page.html").read_text()


def test_a_tally_counts_them() -> None:
    x, out = floats(1, 0.1), floats(0, 0)
    with counting() as tally:
        kernel_of(lambda x: x + 1.0, x, out)(x, out)
    assert (tally.certain.total(), tally.by_choices.total(), tally.undecided.total()) == (2, 1, 0)
    assert str(tally).endswith("2 results certain (1 given named choices), 0 undecided")
