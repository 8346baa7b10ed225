"""The report of a checkpoint in a real browser: headless Chromium, driven by Playwright."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.browser import OpenedPage, chromium
from support.codes import SEED

from pypto_cast.cli.main import main

SIZES = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(16, 19, 22)"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    rng = np.random.default_rng(SEED)
    names = ("embed_tokens", "layers.0.self_attn.q_proj", "layers.0.mlp.down_proj_with_a_long_name")
    tensors = {
        f"model.{name}.weight": (rng.standard_normal((64, 96)) * 10.0**k).astype(np.float32)
        for k, name in enumerate(names)
    }
    tensors["model.norm.weight"] = np.float32([1e6, np.inf, 1e-9, 1])
    save_file(tensors, folder / "model.safetensors")
    words = ["checkpoint", folder / "model.safetensors", "--to", "fp16"]
    words += ["-o", folder / "out.safetensors", "--html", folder / "report.html"]
    assert main(list(map(str, words))) == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest) -> Any:
    return SIZES[request.param]


@pytest.fixture(params=PAPER)
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(browser: Any, page: Path, size: Any, scheme: str) -> Iterator[OpenedPage]:
    context = browser.new_context(viewport=size, color_scheme=scheme)
    found = OpenedPage(context.new_page(), page)
    yield found
    assert found.complaints == []
    assert found.requests == [page.as_uri()]
    context.close()


def test_colours_follow_the_system(opened: OpenedPage, scheme: str) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    assert opened.page.evaluate(paper) == PAPER[scheme]


def test_nothing_sticks_out(opened: OpenedPage) -> None:
    widths = opened.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1]


def test_each_tensor_has_its_histogram(opened: OpenedPage, page: Path) -> None:
    assert opened.page.locator("svg").count() >= 4
    for number in range(4):
        box = opened.page.locator("svg").nth(number).bounding_box()
        assert box["width"] >= 50
        assert box["height"] >= 20
    assert page.stat().st_size < 1_000_000
