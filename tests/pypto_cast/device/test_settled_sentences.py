"""The table of facts and the sentences of fidelity that they settle, in both languages."""

from __future__ import annotations

from collections import Counter

import pytest
from support.environment.sources import ROOT

from docs.generators.device_tables import NAMED, SETTLED, TABLES
from pypto_cast.device.check import facts_in, reasons_in
from simulator.arithmetic.trust import BOUNDS, NAMED_CHOICES
from simulator.corrections import READINGS
from tiling.chips import A2_A3, ASCEND_950

EVERY_FACT = {n for x in (A2_A3, ASCEND_950) for names in facts_in(x).values() for n in names}
NO_FACT = {"": "No fact of the check settles these", ".zh": "以下内容没有事实可以解答"}


def test_each_fact_of_a_device_check_settles_one_sentence() -> None:
    counts = Counter(name for row in SETTLED for name in row.facts)
    assert set(counts.values()) == {1}
    assert set(counts) == EVERY_FACT


def test_each_choice_bound_and_reading_names_its_facts_or_none() -> None:
    bounds = {f"bound of {bound.name}" for bound in BOUNDS}
    assert set(NAMED) == {str(choice) for choice in NAMED_CHOICES} | bounds | set(READINGS)
    assert {name for facts in NAMED.values() for name in facts} <= EVERY_FACT
    asked = EVERY_FACT - set(reasons_in(ASCEND_950)) | set(facts_in(A2_A3)["cycles"])
    assert {name for facts in NAMED.values() for name in facts} <= asked


@pytest.mark.parametrize("page", NO_FACT)
def test_sentences_that_no_fact_settles_say_so(page: str) -> None:
    text = " ".join((ROOT / "docs" / f"fidelity{page}.md").read_text(encoding="utf-8").split())
    before, _, behind = text.partition(NO_FACT[page])
    for row in SETTLED:
        words = row.chinese if page else row.english
        assert words in (before if row.facts else behind) or set(row.facts) <= set(
            reasons_in(ASCEND_950)
        )
    for fact, words in (("routes", "routes"), ("system clock", "all cycles")):
        assert page or (fact in reasons_in(ASCEND_950) and words in behind)


@pytest.mark.parametrize("page", NO_FACT)
def test_each_row_of_casts_names_a_fact(page: str) -> None:
    lines = (ROOT / "docs" / f"fidelity{page}.md").read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if "(device.md)" in line and line[0] == "|")
    rows = [line.split(" | ")[3].rstrip(" |") for line in lines[start + 2 : start + 13]]
    assert lines[start + 13] == ""
    assert {name for row in rows for name in row.split("; ")} <= EVERY_FACT


@pytest.mark.parametrize(("page", "language"), [("", "english"), (".zh", "chinese")])
def test_the_words_stand_on_the_fidelity_page(page: str, language: str) -> None:
    text = " ".join((ROOT / "docs" / f"fidelity{page}.md").read_text(encoding="utf-8").split())
    missing = [getattr(row, language) for row in SETTLED if getattr(row, language) not in text]
    assert missing == []


@pytest.mark.parametrize(("page", "name"), [("", "settled"), (".zh", "settled_zh")])
def test_the_page_for_owners_shows_the_table(page: str, name: str) -> None:
    text = (ROOT / "docs" / f"device{page}.md").read_text(encoding="utf-8")
    assert f"<!-- table: {name} -->" in text
    rows = [line for line in TABLES[name]().splitlines() if line.startswith("|")]
    assert len(rows) == len(SETTLED) + 2
