"""The page's sources, as far as they can be judged without a browser."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from repository.report import ROOT

WEB = ROOT / "layers" / "page" / "web"
OPERATE = ROOT / "cli" / "darkroom_cli" / "operate" / "web"


@pytest.mark.parametrize("sheet", [WEB / "style.css", OPERATE / "operate.css"], ids=lambda sheet: sheet.name)
def test_every_block_of_a_style_sheet_is_closed_before_the_next_section_begins(sheet: Path) -> None:
    depth = 0
    for number, line in enumerate(sheet.read_text().splitlines(), 1):
        assert not (depth and line.startswith("/* ──")), f"line {number}: a block before it is not closed"
        depth += line.count("{") - line.count("}")
        assert depth >= 0, f"line {number} closes a block that is not open"
    assert depth == 0


def test_vendored_modules_are_those_that_were_published() -> None:
    published = dict(
        re.findall(r"^\| `([\w.-]+)` \|.*`([0-9a-f]{64})` \|$", (WEB / "vendor" / "README.md").read_text(), re.M)
    )
    vendored = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (WEB / "vendor").glob("*.js")}
    assert published == vendored


def test_the_page_that_a_stack_serves_has_nothing_of_the_operators_page() -> None:
    for file in (path for path in WEB.rglob("*") if path.suffix in {".js", ".css", ".html"}):
        assert "darkroom operate" not in file.read_text() and "settings.operate" not in file.read_text(), file.name


def test_the_operators_page_starts_as_the_page_does_but_for_its_own_style_and_module() -> None:
    own = (OPERATE / "index.html").read_text()
    sheet = '<link rel="stylesheet" href="/app/{tree}/operate.css">\n'
    assert own.replace(sheet, "").replace("operate.js", "main.js") == (WEB / "index.html").read_text()
