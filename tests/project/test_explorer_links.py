"""Links of the explorer in node: the numbers they carry, bit for bit, and all that they refuse."""

from __future__ import annotations

import base64
import json
import math
import random
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from support.numbers.codes import SEED

from ascend_kernels.matrix import MATRIX
from docs.generators.explorer_module import FOLDER
from docs.generators.explorer_page import SCRIPTS, page
from docs.generators.explorer_words import WORDS
from simulator.numbers.formats import FORMATS, Format

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node")

MOST_BYTES = 8192
SOURCES = sorted({src for rules in MATRIX.values() for src, _ in rules}, key=lambda src: src.name)
DRIVER = """
const told = ([name, argument]) => {
  try {
    return WORK[name](argument);
  } catch (error) {
    return { error: error.message };
  }
};
const plain = ({ codes, format, shape, order }) =>
  ({ codes: Array.from(codes, String), format: format.name, shape, order });
const given = ({ codes, format, shape, order }) =>
  ({ codes: BigUint64Array.from(codes, BigInt), format: byName[format], shape, order });
const WORK = {
  carried: (numbers) => carriedText(given(numbers)),
  opened: ([text, source]) => plain(carriedOf(text, byName[source])),
  typed: (numbers) => {
    const text = typedText(given(numbers));
    const again = (each) => String(codeOf(each, byName[numbers.format]).code);
    return text && { text, codes: text.split(" ").map(again) };
  },
  code: ([text, format]) => String(codeOf(text, byName[format]).code),
  link: (hash) => ({ ...linkOf(hash), address: addressOf(linkOf(hash).state, "") }),
};
process.stdout.write(JSON.stringify(asked.map(told)));
"""


def in_node(tmp_path: Path, asked: Iterable[tuple[str, Any]]) -> list[Any]:
    """The answers of the script's parts that know no page."""
    data = page("en").split('id="explorer-data">')[1].split("</script>")[0]
    parts = "".join((FOLDER / name).read_text("utf-8") for name in SCRIPTS[:3])
    (tmp_path / "asked.json").write_text(json.dumps(list(asked)))
    script = tmp_path / "run.cjs"
    script.write_text(
        'const asked = JSON.parse(require("fs").readFileSync(process.argv[2]));\n'
        f"const document = {{ getElementById: () => ({{ textContent: {json.dumps(data)} }}) }};\n"
        f"(async () => {{\n{parts}{DRIVER}}})();\n",
        encoding="utf-8",
    )
    run = subprocess.run(
        [NODE, script, tmp_path / "asked.json"], check=True, capture_output=True, text=True
    )
    found: list[Any] = json.loads(run.stdout)
    return found


def written(fmt: Format, codes: Iterable[int], dims: Iterable[int], order: str = "C") -> str:
    """The text of numbers in a link, from the definition: codes without a gap, first bit first."""
    bits = "".join(f"{code:0{fmt.bits}b}" for code in codes)
    size = math.ceil(len(bits) / 8)
    data = int(bits.ljust(8 * size, "0") or "0", 2).to_bytes(size, "big")
    coded = base64.urlsafe_b64encode(data).decode().rstrip("=")
    return f"{fmt.name}.{'x'.join(map(str, dims))}.{order}.{coded}"


def some_codes(fmt: Format) -> list[int]:
    """All codes of at most 8 bits, else the first and last ones of each sign and drawn ones."""
    if fmt.bits <= 8:
        return list(range(1 << fmt.bits))
    half = 1 << fmt.bits - 1
    ends = [base + at for base in (0, half) for at in (0, 1, 2, half - 2, half - 1)]
    draw = random.Random(f"{SEED} {fmt.name}")
    if fmt.name.startswith(("FP", "BF")):  # infinity, its neighbours and other NaN
        inf = int(np.array(np.inf, fmt.dtype).view(fmt.code_dtype))
        ends += [sign | inf + at for sign in (0, half) for at in (-1, 0, 1, 2)]
    return ends + [draw.randrange(1 << fmt.bits) for _ in range(300)]


def numbers(fmt: Format, codes: list[int], shape: str, order: str = "False") -> dict[str, Any]:
    return {"codes": list(map(str, codes)), "format": fmt.name, "shape": shape, "order": order}


def test_a_link_carries_the_bits_the_shape_and_the_dtype(tmp_path: Path) -> None:
    wanted, texts = [], []
    for fmt in SOURCES:
        codes = some_codes(fmt)
        even = codes[: len(codes) // 2 * 2]
        half = len(even) // 2
        for part, dims, shape, order in (
            (codes, [len(codes)], f"{len(codes)},", "False"),
            (codes[:3], [3], "3,", "True"),
            (even, [half, 2], f"{half}, 2", "True"),
            (codes[1:2], [], "", "False"),
            ([], [0, 4], "0, 4", "False"),
        ):
            wanted.append(numbers(fmt, part, shape, order))
            texts.append(written(fmt, part, dims, "F" if order == "True" else "C"))
    assert in_node(tmp_path, [("carried", each) for each in wanted]) == texts
    sources = [each["format"] for each in wanted]
    opened = [("opened", pair) for pair in zip(texts, sources, strict=True)]
    assert in_node(tmp_path, opened) == wanted


def test_numbers_of_a_link_are_typed_with_their_codes(tmp_path: Path) -> None:
    asked = [numbers(fmt, codes, f"{len(codes)},") for fmt in SOURCES if (codes := some_codes(fmt))]
    for given, found in zip(asked, in_node(tmp_path, [("typed", x) for x in asked]), strict=True):
        assert found["codes"] == given["codes"], given["format"]
    fp64, fp32 = (FORMATS[name] for name in ("FP64", "FP32"))
    shown = [
        numbers(fp64, [0x3FB999999999999A], "1,"),
        numbers(fp32, [0x40200000, 0x80000000, 0x7F800000, 0x7FC00001], "4,"),
    ]
    texts = [each["text"] for each in in_node(tmp_path, [("typed", x) for x in shown])]
    assert texts == ["0.1", "2.5 -0 inf code:0x7fc00001"]


def test_numbers_whose_shape_would_be_lost_are_not_typed(tmp_path: Path) -> None:
    fmt = FORMATS["INT8"]
    asked = [
        numbers(fmt, [1], ""),
        numbers(fmt, [1, 2], "1, 2"),
        numbers(fmt, [1, 2], "2,", "True"),
        numbers(fmt, [], "0,"),
        numbers(fmt, [1] * 1001, "1001,"),
    ]
    assert in_node(tmp_path, [("typed", each) for each in asked]) == [None] * len(asked)


@pytest.mark.parametrize("name", ["INT4", "FP16", "INT64"])
def test_a_link_carries_up_to_the_limit(tmp_path: Path, name: str) -> None:
    fmt = FORMATS[name]
    count = MOST_BYTES * 8 // fmt.bits
    largest = numbers(fmt, [1] * count, f"{count},")
    beyond = numbers(fmt, [1] * (count + 1), f"{count + 1},")
    text, none = in_node(tmp_path, [("carried", largest), ("carried", beyond)])
    assert text == written(fmt, [1] * count, [count])
    assert none is None
    assert count * fmt.bits == MOST_BYTES * 8
    too_long = written(fmt, [1] * (count + 1), [count + 1])
    again, refused = in_node(tmp_path, [("opened", [text, name]), ("opened", [too_long, name])])
    assert again == largest
    said = {"bytes": f"{math.ceil((count + 1) * fmt.bits / 8):,}", "most": f"{MOST_BYTES:,}"}
    assert refused == {"error": WORDS["en"]["link_big"].format(**said)}


def test_thousand_typed_numbers_always_fit() -> None:
    assert all(1000 * fmt.bits <= 8 * MOST_BYTES for fmt in SOURCES)


BROKEN = [
    "no",
    "INT8.3.C",
    "INT8.3.C.AAAA.",
    "INT8.3.C.AA=A",
    "INT8.3.C.AA A",
    "INT8.3.C.AA+/",
    "INT8.3.K.AAAA",
    "INT7.3.C.AAAA",
    "constructor.3.C.AAAA",
    "INT8.-3.C.AAAA",
    "INT8.3x.C.AAAA",
    "INT8.03.C.AAAA",
    "INT8.2.C.AAAA",
    "INT8.3.C.AAAAA",
    "INT8.1.C.AB",
    f"INT8.{'9' * 30}.C.AAAA",
    f"INT8.0x{'9' * 400}.C.",
    f"INT8.{'x'.join('1' * 65)}.C.AA",
    "INT8.3.C.\x00AAA",
    "<img src=x onerror=alert(1)>",
]


def test_all_other_texts_are_refused(tmp_path: Path) -> None:
    words = WORDS["en"]
    asked = [("opened", [text, "INT8"]) for text in BROKEN]
    for text, found in zip(BROKEN, in_node(tmp_path, asked), strict=True):
        assert found == {"error": words["link_broken"]}, text
    wrong = {
        "FP16.3.C.AAAA": words["no_dtype"].format(
            name="The link", found="FP16", format="INT8", wanted="INT8"
        ),
        "INT8.4.C.AAAA": words["cut_short"].format(name="The link", found=3, wanted=4),
        "INT8.1000000000.C.AAAA": words["link_big"].format(bytes="1,000,000,000", most="8,192"),
        f"INT8.3.C.{'A' * 10**6}": words["link_big"].format(bytes="750,000", most="8,192"),
    }
    found = in_node(tmp_path, [("opened", [text, "INT8"]) for text in wrong])
    assert [each["error"] for each in found] == list(wrong.values())


def test_a_changed_link_gives_other_numbers_or_one_line(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    good = written(FORMATS["INT8"], range(40), [8, 5])
    texts = []
    for _ in range(2000):
        at = draw.randrange(len(good))
        texts.append(good[:at] + draw.choice(["", ".", "x", "A", "_", "9", "%"]) + good[at + 1 :])
    known = {WORDS["en"][key].split("{")[0] for key in ("link_broken", "link_big")} | {"The link "}
    for text, found in zip(
        texts, in_node(tmp_path, [("opened", [text, "INT8"]) for text in texts]), strict=True
    ):
        if "error" in found:
            assert found["error"].startswith(tuple(known)), text
        else:
            dims = [int(each) for each in found["shape"].split(",") if each.strip()]
            codes = [int(code) for code in found["codes"]]
            order = "F" if found["order"] == "True" else "C"
            assert written(FORMATS["INT8"], codes, dims, order) == text


def test_names_that_the_page_does_not_have_are_told(tmp_path: Path) -> None:
    state = {"family": "A2/A3", "from": "FP16", "value": "1", "casts": "INT8:RINT"}
    many = "INT8,FP16," * 50_000
    cases = {
        urlencode(state): [],
        "": [],
        urlencode({"from": "INT32"}): [],
        urlencode({**state, "family": "A5"}): ["A5"],
        urlencode({**state, "from": "FP7"}): [
            "FP7",
            "INT8",
        ],  # which the first source is not cast to
        urlencode({**state, "casts": "FP9:NO:MAYBE"}): ["FP9"],
        urlencode({**state, "casts": "INT8:ODD:MAYBE"}): ["ODD", "MAYBE"],
        urlencode({**state, "later": "1", "__proto__": "2"}): ["later", "__proto__"],
        urlencode({**state, "casts": many}): ["casts after the first 16"],
        "%": ["%"],
    }
    found = in_node(tmp_path, [("link", f"#{hash_}") for hash_ in cases])
    for (asked, unknown), each in zip(cases.items(), found, strict=True):
        assert each["unknown"] == unknown, asked[:80]
        assert 0 < len(each["state"]["casts"]) <= 16
    again = in_node(tmp_path, [("link", each["address"]) for each in found])
    assert [each["unknown"] for each in again] == [[]] * len(found)
    assert [each["state"] for each in again] == [each["state"] for each in found]


def test_a_number_of_too_many_characters_is_not_computed(tmp_path: Path) -> None:
    least = "0." + "0" * 1073 + "4940656458412465"  # of FP64, with its digits
    asked = [("code", [least, "FP64"]), ("code", ["1" * 2001, "FP64"])]
    said = {"count": "2,001", "most": "2,000"}
    assert in_node(tmp_path, asked) == [
        str(int(np.array(float(least)).view(np.uint64))),
        {"error": WORDS["en"]["too_long"].format(**said)},
    ]
