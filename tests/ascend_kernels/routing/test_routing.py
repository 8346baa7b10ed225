"""Chains of native casts and their verdicts, against an oracle in exact fractions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.numbers.codes import source_codes
from support.numbers.oracle import FORMATS as ORACLE_FORMATS
from support.numbers.oracle import rounded_once
from support.programs.route_oracle import along, by_oracle, once

from ascend_kernels.matrix import MATRIX, Operand
from ascend_kernels.routing.chain_check import (
    Evidence,
    Question,
    Verdict,
    all_values,
    between_thresholds,
    enumerated,
    question_between,
)
from ascend_kernels.routing.chain_ranking import chain_of_text, chain_verdict, lookup, ranked_chains
from ascend_kernels.routing.chains import (
    ROUTE_FORMATS,
    Chain,
    all_chains,
    chain_named,
    function_of,
    resolution_of,
    route_formats,
    single_rounding,
)
from ascend_kernels.routing.make_table import questions, table_row
from ascend_kernels.routing.routes_document import PAGE, page
from ascend_kernels.routing.value_ranks import (
    code_pieces,
    codes_at,
    is_nan,
    last_rank,
    nan_codes,
    ranks_of,
    result_ranks,
)
from ascend_kernels.routing.vector_rows import STORAGE_FORMATS, storage_format
from ascend_kernels.routing.verdict_table import recorded_rows
from simulator.numbers import formats as f
from simulator.numbers.formats import FORMATS, Format
from simulator.numbers.literals import number_of
from simulator.numbers.rounding import RoundMode
from tiling.chips import A2_A3, ASCEND_950

MODES = [mode.name for mode in RoundMode]
SMALL = [fmt for fmt in ROUTE_FORMATS if fmt.bits <= 16]
every_format = pytest.mark.parametrize(
    "fmt", dict.fromkeys((*ROUTE_FORMATS, *route_formats(ASCEND_950))), ids=str
)


def chain(text: str) -> Chain:
    return chain_of_text(text)


def verdict(text: str, mode: str, question: Question | None = None) -> Verdict:
    one = chain(text)
    found = chain_verdict(question or all_values(one.src, one.dst), one, RoundMode[mode])
    assert found is not None
    return found


def differing(codes: np.ndarray, one: Chain, mode: str) -> list[int]:
    """The source codes on which a chain is not one rounding, by the oracle."""
    src, dst = one.src.name, one.dst.name
    given = codes.tolist()
    return [
        code
        for code, found in zip(given, along(given, one), strict=True)
        if found != once(code, src, dst, mode)
    ]


def agrees(found: Verdict, ask: Question, one: Chain, mode: str) -> None:
    """Compares a verdict with the oracle on every code that it is about."""
    codes = codes_at(np.arange(ask.low, ask.high + 1, dtype=np.uint64), one.src)
    if ask.has_nan:
        codes = np.arange(1 << one.src.bits, dtype=one.src.code_dtype)
    wrong = differing(np.sort(codes), one, mode)
    assert (found.codes, found.differing) == (codes.size, len(wrong))
    assert [d.code for d in found.first] == wrong[:3]
    for first in found.first:
        assert first.found == by_oracle(first.code, one)
        assert first.wanted == rounded_once(first.code, one.src.name, one.dst.name, mode)


# --- The order of codes ------------------------------------------------------------------------


@pytest.mark.slow
@every_format
def test_ranks_are_the_order_of_values(fmt: Format) -> None:
    last = last_rank(fmt)
    ends = np.array([0, 1, last // 2, last // 2 + 1, last - 1, last], np.uint64)
    ranks = np.arange(last + 1, dtype=np.uint64) if fmt.bits <= 16 else ends
    codes = codes_at(ranks, fmt)
    np.testing.assert_array_equal(ranks_of(codes, fmt), ranks)
    assert not is_nan(codes, fmt).any()
    if fmt.bits > 16:
        return
    pieces = [part for _, part in code_pieces(0, last, fmt, 1000)]
    np.testing.assert_array_equal(np.concatenate(pieces), codes)
    nans = [code for codes in nan_codes(fmt) for code in codes]
    assert sorted([*codes.tolist(), *nans]) == list(range(1 << fmt.bits))
    if fmt.bits > 4:
        numbers = [number_of(code, fmt) for code in codes.tolist()]
        finite = [number.fraction for number in numbers if not number.special]
        assert finite == sorted(finite)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("family", "pair"),
    [(family, pair) for family, rules in MATRIX.items() for pair in rules],
    ids=lambda value: value if isinstance(value, str) else f"{value[0]}-{value[1]}".lower(),
)
def test_a_native_cast_never_decreases(family: str, pair: tuple[Format, Format]) -> None:
    src, dst = pair
    codes = all_values(src, dst).boundaries()
    codes = codes_at(np.sort(ranks_of(codes[~is_nan(codes, src)], src)), src)
    for mode in MATRIX[family][pair].modes or (None,):
        named = chain_named(pair, (f"CAST_{mode}" if mode else "",), family)
        ranks = result_ranks(function_of(named.conversions), ranks_of(codes, src), src, dst)
        assert (ranks[1:] >= ranks[:-1]).all()


# --- Verdicts ----------------------------------------------------------------------------------

SMALL_CASES = [
    ("BF16 -> FP32 -> FP16 CAST_RINT", "RINT"),
    ("BF16 -> INT32 CAST_TRUNC -> FP16 CAST_RINT -> INT8 CAST_RINT", "RINT"),
    ("FP16 -> FP32 -> BF16 CAST_FLOOR", "FLOOR"),
    ("FP16 -> INT16 CAST_CEIL -> FP32 -> BF16 CAST_RINT", "RINT"),
    ("INT16 -> FP16 CAST_RINT -> INT8 CAST_TRUNC", "TRUNC"),
    ("UINT8 -> FP16 -> INT4 CAST_ROUND", "ROUND"),
]


@pytest.mark.parametrize(("text", "mode"), SMALL_CASES)
def test_verdicts_are_the_oracles_on_ranges(text: str, mode: str) -> None:
    one = chain(text)
    last = last_rank(one.src)
    width = min(last, 600)
    for low in (0, last // 3, last // 2 - width // 2, last - width):
        ask = Question(src=one.src, dst=one.dst, low=low, high=low + width, has_nan=False)
        agrees(verdict(text, mode, ask), ask, one, mode)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("text", "mode"), SMALL_CASES)
def test_verdicts_are_the_oracles(text: str, mode: str) -> None:
    one = chain(text)
    ask = all_values(one.src, one.dst)
    found = verdict(text, mode)
    assert found.standing in (Evidence.SHOWN, Evidence.DIFFERS)
    agrees(found, ask, one, mode)


@pytest.mark.parametrize(
    ("text", "mode", "count"),
    [
        ("FP32 -> FP16 CAST_RINT -> INT8 CAST_RINT", "RINT", 1_044_480),
        ("FP32 -> INT32 CAST_RINT -> FP16 CAST_RINT -> INT8 CAST_RINT", "RINT", 0),
        *((f"FP32 -> FP16 CAST_ODD -> INT8 CAST_{mode}", mode, 0) for mode in MODES[:5]),
        ("INT32 -> FP32 CAST_RINT -> BF16 CAST_RINT", "RINT", 32_512),
        ("INT32 -> FP32 CAST_TRUNC -> BF16 CAST_ROUND", "ROUND", 0),
        ("INT64 -> INT32 -> FP16 CAST_RINT", "RINT", 0),
        ("INT64 -> FP32 CAST_TRUNC -> BF16 CAST_ROUND", "ROUND", 0),
    ],
)
def test_wide_sources_agree_with_the_oracle_where_it_looks(
    text: str, mode: str, count: int
) -> None:
    one, found = chain(text), verdict(text, mode)
    assert (found.differing, found.is_exact) == (count, count == 0)
    codes = source_codes(one.src.name, one.dst.name)
    codes = codes[:: -(-codes.size // 500)]
    wrong = differing(codes, one, mode)
    if not count:
        assert wrong == []
        return
    assert found.exact_range is not None
    low, high = (ranks_of(np.array([c], one.src.code_dtype), one.src) for c in found.exact_range)
    ranks = ranks_of(np.array(wrong, one.src.code_dtype), one.src)
    assert not ((low <= ranks) & (ranks <= high)).any()
    firsts = [d.code for d in found.first]
    assert differing(np.array(firsts), one, mode) == firsts
    assert not differing(np.arange(firsts[0] - 300, firsts[0]), one, mode)


@pytest.mark.slow
def test_thresholds_count_what_enumeration_counts() -> None:
    for src in SMALL:
        for dst in SMALL:
            for one in list(all_chains(src, dst, 3))[::211]:
                for mode in (RoundMode.RINT, RoundMode.FLOOR):
                    if src is dst:
                        continue
                    ask = all_values(src, dst)
                    functions = [
                        function_of(conversions)
                        for conversions in (one.conversions, (single_rounding(src, dst, mode),))
                    ]
                    fast, slow = between_thresholds(ask, *functions), enumerated(ask, *functions)
                    for name in ("codes", "differing", "first", "largest_error", "exact_range"):
                        assert getattr(fast, name) == getattr(slow, name), f"{one} {name}"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("FP32 -> FP16 CAST_RINT -> INT8 CAST_RINT", "RINT"),
        ("INT32 -> FP32 CAST_RINT -> BF16 CAST_RINT", "RINT"),
    ],
)
def test_thresholds_count_what_all_codes_of_32_bits_count(text: str, mode: str) -> None:
    one = chain(text)
    ask = all_values(one.src, one.dst)
    functions = [
        function_of(conversions)
        for conversions in (
            one.conversions,
            (single_rounding(one.src, one.dst, RoundMode[mode]),),
        )
    ]
    fast, slow = between_thresholds(ask, *functions), enumerated(ask, *functions)
    for name in ("codes", "differing", "first", "largest_error", "exact_range"):
        assert getattr(fast, name) == getattr(slow, name), name


def test_a_planted_wrong_step_changes_the_verdict() -> None:
    right = verdict("FP32 -> FP16 CAST_ODD -> INT8 CAST_RINT", "RINT")
    for wrong in ("RINT", "ROUND", "FLOOR", "CEIL", "TRUNC"):
        planted = verdict(f"FP32 -> FP16 CAST_{wrong} -> INT8 CAST_RINT", "RINT")
        assert right.is_exact
        assert planted.standing is Evidence.DIFFERS
        assert planted.differing > 10**6


def test_values_narrow_the_question() -> None:
    text = "FP32 -> FP16 CAST_RINT -> INT8 CAST_RINT"
    inside = verdict(text, "RINT", question_between(f.FP32, f.INT8, (-0.5, 0.5)))
    assert (inside.standing, inside.codes) == (Evidence.PROVED, 2 * 0x3F000001)
    over = verdict(text, "RINT", question_between(f.FP32, f.INT8, (-0.5, 0.5 + 2**-24)))
    assert over.differing == 1
    assert [d.code for d in over.first] == [0x3F000001]
    assert verdict(text, "RINT").exact_range == inside.exact_range == (0xBF000000, 0x3F000000)


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ((-np.inf, np.inf), 2 * 0x7C01),
        ((-65504, 65504), 2 * 0x7C00),
        ((65504, np.inf), 2),
        ((65505, np.inf), 1),
        ((-np.inf, -65505), 1),
        ((-np.inf, -65504.0), 2),
    ],
)
def test_infinities_are_the_ends_of_the_values(values: tuple[float, float], codes: int) -> None:
    assert question_between(f.FP16, f.INT8, values).codes == codes


def test_a_verdict_names_the_rule_that_it_rests_on() -> None:
    for mode in ("FLOOR", "CEIL"):
        (words,) = verdict(f"FP32 -> FP16 CAST_ODD -> INT8 CAST_{mode}", mode).rests_on
        assert "CAST_ODD below the smallest subnormal number" in words
        assert "864,026,623 codes would differ" in words
    for mode in ("RINT", "ROUND", "TRUNC"):
        assert verdict(f"FP32 -> FP16 CAST_ODD -> INT8 CAST_{mode}", mode).rests_on == ()


def test_overflow_that_does_not_matter_is_not_rested_on() -> None:
    assert verdict("INT32 -> FP16 CAST_RINT -> INT8 CAST_RINT", "RINT").rests_on == ()


# --- Candidates and their buffers --------------------------------------------------------------


def test_all_chains_are_rows_in_their_modes() -> None:
    found = list(all_chains(f.FP32, f.INT8, 3))
    assert len(set(found)) == len(found)
    assert {str(one) for one in found if len(one.casts) == 2} == {
        f"FP32 -> FP16 CAST_{first} -> INT8 CAST_{second}"
        for first in MODES
        for second in MODES[:5]
    }
    assert all(pair in MATRIX[A2_A3] for one in found for pair in itertools.pairwise(one.formats))


@every_format
@pytest.mark.sampled(3)
def test_results_between_casts_lie_where_there_is_room(fmt: Format) -> None:
    for dst in ROUTE_FORMATS:
        for one in list(all_chains(fmt, dst, 3))[::53]:
            resolution = resolution_of(one)
            room = {Operand.IN: storage_format(fmt).bits, Operand.OUT: storage_format(dst).bits}
            room[Operand.TMP] = resolution.tmp_bits
            assert resolution.steps[0].source is Operand.IN
            assert resolution.steps[-1].target is Operand.OUT
            for before, after in itertools.pairwise(resolution.steps):
                assert before.target is after.source
            for cast in resolution.casts:
                assert cast.dst.bits <= room[cast.target]
                assert cast.source is not cast.target or cast.dst.bits <= cast.src.bits


# --- The committed table -----------------------------------------------------------------------

ROWS = [(src.name, dst.name, mode.name) for src, dst, mode in questions()]


def test_the_table_has_a_row_for_every_pair_and_mode() -> None:
    assert list(recorded_rows()) == ROWS
    assert len(ROWS) == (13 * 12 + 1) * 6
    assert all(recorded_rows().values())


@pytest.mark.parametrize(
    "key", [row for row in ROWS if FORMATS[row[0]].bits <= 8][::17], ids=lambda key: "-".join(key)
)
def test_samples_of_the_table_are_computed_again(key: tuple[str, str, str]) -> None:
    src, dst, mode = key
    row = table_row(FORMATS[src], FORMATS[dst], RoundMode[mode])
    recorded = [{"route": one.route, **one.verdict} for one in recorded_rows()[key]]
    again = [
        {name: list(value) if isinstance(value, tuple) else value for name, value in one.items()}
        for one in row["routes"]
    ]
    assert again == recorded


@pytest.mark.slow
@pytest.mark.parametrize(
    ("src", "dst", "mode"), [("FP32", "INT8", "RINT"), ("INT32", "BF16", "RINT")]
)
def test_samples_of_wide_sources_are_computed_again(src: str, dst: str, mode: str) -> None:
    ask = all_values(FORMATS[src], FORMATS[dst])
    again = ranked_chains(ask, RoundMode[mode], 3)[:4]
    recorded = lookup(ask, RoundMode[mode], 3)
    assert [(one.chain, one.verdict.differing) for one in again] == [
        (one.chain, one.verdict.differing) for one in recorded
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "key",
    [
        row
        for row in ROWS
        if FORMATS[row[0]].bits <= 16 and not {*row[:2]} & {*map(str, STORAGE_FORMATS)}
    ],
    ids=lambda key: "-".join(key),
)
def test_rows_of_small_sources_are_the_oracles(key: tuple[str, str, str]) -> None:
    src, dst, mode = key
    ask = all_values(FORMATS[src], FORMATS[dst])
    for one in lookup(ask, RoundMode[mode], 3):
        agrees(one.verdict, ask, one.chain, mode)


def test_every_route_of_the_table_is_a_chain_and_exact_ones_come_first() -> None:
    for (src, dst, _), routes in recorded_rows().items():
        for one in routes:
            found = chain(one.route)
            assert (found.src.name, found.dst.name, str(found)) == (src, dst, one.route)
            assert sum(bool(cast.work) for cast in found.casts) <= 3
        exact = [one.differing == 0 for one in routes]
        assert exact == sorted(exact, reverse=True)


def test_exact_routes_from_32_bits_were_shown_on_every_code() -> None:
    for (src, _, _), (best, *_) in recorded_rows().items():
        if ORACLE_FORMATS[src].bits == 32 and best.differing == 0:
            shown = best.verdict["standing"] == "SHOWN"
            assert shown or best.verdict["basis"] == "one native cast is the single rounding"


WITHOUT_A_ROUTE = [key for key, (best, *_) in recorded_rows().items() if best.differing]


@pytest.mark.exhaustive
@pytest.mark.parametrize("key", WITHOUT_A_ROUTE, ids=lambda key: "-".join(key))
def test_where_no_route_is_exact_every_chain_differs_on_a_boundary_code(
    key: tuple[str, str, str],
) -> None:
    src, dst, mode = FORMATS[key[0]], FORMATS[key[1]], RoundMode[key[2]]
    codes = all_values(src, dst).boundaries()
    wanted = function_of((single_rounding(src, dst, mode),))(codes)
    for one in all_chains(src, dst, 3):
        assert (function_of(one.conversions)(codes) != wanted).any(), str(one)


PROVED_OF_64_BITS = [
    (key, routes[0].route)
    for key, routes in recorded_rows().items()
    if FORMATS[key[0]].bits == 64 and not routes[0].differing and "-> " in routes[0].route
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("key", "route"), PROVED_OF_64_BITS, ids=["-".join(key) for key, _ in PROVED_OF_64_BITS]
)
def test_proofs_of_64_bits_hold_on_boundaries_and_10_8_random_codes(
    key: tuple[str, str, str], route: str
) -> None:
    one = chain(route)
    single = function_of((single_rounding(one.src, one.dst, RoundMode[key[2]]),))
    step_by_step = function_of(one.conversions)
    boundaries = all_values(one.src, one.dst).boundaries()
    np.testing.assert_array_equal(step_by_step(boundaries), single(boundaries))
    rng = np.random.default_rng([20251117, *"".join(key).encode()])
    for _ in range(100):
        numbers = rng.integers(-(2**63), 2**63, 10**6)
        codes = (numbers >> rng.integers(0, 64, numbers.size)).view(np.uint64)
        np.testing.assert_array_equal(step_by_step(codes), single(codes))


@pytest.mark.slow
def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()
