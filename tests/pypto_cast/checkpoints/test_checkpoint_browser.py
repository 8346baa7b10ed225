"""The report of a checkpoint in a real browser: headless Chromium, driven by Playwright."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.browser import PAPER, OpenedPage, browser, opened, scheme, size
from support.codes import SEED

from pypto_cast.cli.main import main

__all__ = ["browser", "opened", "scheme", "size"]  # fixtures


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
