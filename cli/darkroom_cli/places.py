"""Where the command finds what it reads besides its own code: in a checkout, or where it is installed."""

from __future__ import annotations

import sys
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[2]

IS_CHECKOUT = (_CHECKOUT / "template.yaml").is_file()
"""Whether the command runs from a checkout."""

ROOT = _CHECKOUT if IS_CHECKOUT else Path(__file__).resolve().with_name("data")
"""The root of the checkout; of an installed command, a folder that has some of its files at the same places."""

HAS_LOCAL_STACK = IS_CHECKOUT and sys.platform == "linux"
"""Whether `darkroom local` can work here."""

COMMAND = "./darkroom" if IS_CHECKOUT else "darkroom"
"""How the command is typed."""


def as_typed(text: str) -> str:
    """The text with its commands as they are typed here."""
    return text if IS_CHECKOUT else text.replace("./darkroom", COMMAND)
