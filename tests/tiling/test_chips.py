"""The chip table: complete, sourced, and honest about what it does not know."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tiling.chips import CHIPS, DEFAULT_CHIP, Chip, Source, Standing, chip_named

CORES = {
    "Ascend910B1": ("A2", 48),
    "Ascend910B2": ("A2", 48),
    "Ascend910B2C": ("A2", 48),
    "Ascend910B3": ("A2", 40),
    "Ascend910B4": ("A2", 40),
    "Ascend910B4-1": ("A2", 40),
    "Ascend910_9391": ("A3", 48),
    "Ascend910_9392": ("A3", 48),
    "Ascend910_9381": ("A3", 48),
    "Ascend910_9382": ("A3", 48),
    "Ascend910_9362": ("A3", 40),
    "Ascend910_9363": ("A3", 40),
    "Ascend910_9372": ("A3", 40),
    "Ascend950PR": ("950", 64),
    "Ascend950DT": ("950", 56),
}
UB_BYTES = {"950": (253952, 253952)}
NUMERIC_FIELDS = {
    field.name
    for field in dataclasses.fields(Chip)
    if isinstance(getattr(DEFAULT_CHIP, field.name), int)
}

every_chip = pytest.mark.parametrize("chip", CHIPS.values(), ids=str)


def test_the_table_has_all_chips() -> None:
    assert {name: (chip.family, chip.vector_cores) for name, chip in CHIPS.items()} == CORES


@every_chip
def test_memory_figures_are_those_of_the_rules(chip: Chip) -> None:
    assert (chip.ub_bytes, chip.ub_safe_bytes) == UB_BYTES.get(chip.isa, (196608, 188160))
    assert (chip.block_bytes, chip.repeat_bytes, chip.max_repeat) == (32, 256, 255)


def test_there_are_numeric_fields_to_source() -> None:
    assert {
        "ub_bytes",
        "ub_safe_bytes",
        "block_bytes",
        "vector_cores",
        "clock_hz",
    } <= NUMERIC_FIELDS


@every_chip
def test_every_number_has_a_source_and_a_standing(chip: Chip) -> None:
    assert set(chip.sources) == NUMERIC_FIELDS
    for source in chip.sources.values():
        assert isinstance(source, Source)
        assert isinstance(source.standing, Standing)
        assert len(source.text.split()) > 2


@every_chip
def test_no_figure_is_zero(chip: Chip) -> None:
    assert all(getattr(chip, name) > 0 for name in NUMERIC_FIELDS)


@pytest.mark.parametrize("name", CORES)
def test_chips_are_found_by_name(name: str) -> None:
    assert chip_named(name) is CHIPS[name]
    assert str(chip_named(name)) == chip_named(name).name == name


@pytest.mark.parametrize("name", ["", "Ascend950", "ascend910b3", "Ascend910B3 "])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(
        ValueError, match=f"^unknown chip {re.escape(repr(name))}; known: "
    ) as error:
        chip_named(name)
    assert str(error.value).split("known: ")[1].split(", ") == list(CORES)


def test_the_default_is_a_row_of_the_table() -> None:
    assert DEFAULT_CHIP is CHIPS["Ascend910B3"]


def test_chips_cannot_be_changed_and_can_be_keys() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        DEFAULT_CHIP.ub_bytes = 0
    with pytest.raises(TypeError):
        CHIPS["Ascend950"] = DEFAULT_CHIP
    twin = dataclasses.replace(DEFAULT_CHIP)
    assert twin == DEFAULT_CHIP
    assert hash(twin) == hash(DEFAULT_CHIP)
    assert len({*CHIPS.values(), twin}) == 15
    assert dataclasses.replace(DEFAULT_CHIP, ub_bytes=1024) != DEFAULT_CHIP


@pytest.mark.parametrize("simt_bytes", [32768, 65536, 131072])
def test_simt_takes_its_share_of_ub(simt_bytes: int) -> None:
    chip = CHIPS["Ascend950PR"].with_simt(simt_bytes)
    assert (chip.ub_bytes, chip.ub_safe_bytes) == (253952 - simt_bytes,) * 2
    assert CHIPS["Ascend950PR"].with_simt(0) is CHIPS["Ascend950PR"]


@pytest.mark.parametrize(
    ("name", "simt_bytes", "text"),
    [
        (
            "Ascend950DT",
            32736,
            "SIMT of Ascend950DT takes 32768 to 131072 B of UB, in blocks of 32",
        ),
        ("Ascend950PR", 131104, "simt_bytes is 131104"),
        ("Ascend950PR", 32769, "in blocks of 32 B; simt_bytes is 32769"),
        ("Ascend910B3", 32768, "SIMT of Ascend910B3 is not simulated; simt_bytes is 32768"),
    ],
)
def test_a_share_that_simt_cannot_have(name: str, simt_bytes: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        CHIPS[name].with_simt(simt_bytes)
