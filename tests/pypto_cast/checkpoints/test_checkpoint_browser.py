"""The report of a checkpoint in a real browser: headless Chromium, driven by Playwright."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.environment.browser import OpenedPage, browser, opened, scheme, size
from support.numbers.codes import SEED

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


def test_each_tensor_has_its_histogram(opened: OpenedPage) -> None:
    """A bar tells its binade; a page that is narrow has as many bars, and they are as high."""
    figures = opened.page.locator(".figure")
    assert figures.count() == 4
    for number in range(4):
        bars = figures.nth(number).locator("i")
        assert max(bar.bounding_box()["height"] for bar in bars.all()) == 120
        assert min(bar.bounding_box()["width"] for bar in bars.all()) >= 3
    figures.nth(0).locator("i").first.hover()
    assert opened.page.locator("#tip").inner_text() == "2^-30: 1"
    figures.nth(0).press("End")
    assert opened.page.locator("#tip").inner_text() == "infinity or NaN: 1"
    figures.nth(0).press("ArrowLeft")
    assert opened.page.locator("#tip").inner_text() == "2^19: 1"
