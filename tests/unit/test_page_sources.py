"""The page's sources, as far as they can be judged without a browser."""

from __future__ import annotations

import hashlib
import re

from repository.report import ROOT

WEB = ROOT / "layers" / "page" / "web"
STYLE = (WEB / "style.css").read_text()


def test_every_block_of_the_style_sheet_is_closed_before_the_next_section_begins() -> None:
    depth = 0
    for number, line in enumerate(STYLE.splitlines(), 1):
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
