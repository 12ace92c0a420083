"""Where the machine's Chromium is."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SETUP = Path(__file__).parents[1] / "setup" / "chromium.sh"


class NoChromium(Exception):
    """This machine has no Chromium; the message says how to get one."""


def path() -> str:
    """The program's path. Raises NoChromium."""
    found = subprocess.run([_SETUP], capture_output=True, text=True, check=False)
    if found.returncode:
        raise NoChromium(found.stderr.strip().removeprefix("chromium: "))
    return found.stdout.strip()
