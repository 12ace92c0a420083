"""Where the machine's Chromium is."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SETUP = Path(__file__).parents[1] / "setup" / "chromium.sh"


class NoChromium(Exception):
    """This machine has no Chromium; the message says how to get one."""


def path() -> str:
    """The program's path. Raises NoChromium."""
    completed = subprocess.run([_SETUP], capture_output=True, text=True, check=False)
    if completed.returncode:
        raise NoChromium(completed.stderr.strip().removeprefix("chromium: "))
    return completed.stdout.strip()
