"""The table of facts and the sentences of fidelity that they settle, in both languages."""

from __future__ import annotations

from collections import Counter

import pytest
from support.environment.sources import ROOT

from docs.generators.device_tables import SETTLED, TABLES
from pypto_cast.device.check import facts_in
from tiling.chips import A2_A3, ASCEND_950


def test_each_fact_of_a_device_check_settles_one_sentence() -> None:
    counts = Counter(name for row in SETTLED for name in row.facts)
    assert set(counts.values()) == {1}
    both = (*facts_in(A2_A3).values(), *facts_in(ASCEND_950).values())
    assert set(counts) == {name for facts in both for name in facts}


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
