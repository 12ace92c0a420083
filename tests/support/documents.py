"""What tests read from the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from repository.report import ROOT

DOCS = ROOT / "docs"


def code(page: Path) -> Iterator[str]:
    """The page's commands: from its shell blocks, without comments, and from backticks."""
    text = page.read_text().replace("\\\n", " ")
    for block in re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE):
        yield re.sub(r"(?:^|\s)#.*", "", block)
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.DOTALL | re.MULTILINE))
