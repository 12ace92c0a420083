"""The way from the browser's opener to the page: a file that only its owner can read, with a code that opens once.

Every user of the machine reads the arguments of a process, so what the opener is given is the name of this file. The
code is in the browser's history afterwards and opens nothing there.
"""

from __future__ import annotations

import hmac
import html
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from local_aws.stacks.record import write_private

PATH = "/enter"

_LEADING = (
    '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Darkroom</title>'
    '<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">Open the page</a>\n'
)


class Entrance:
    """Lets in who has its code, once."""

    def __init__(self) -> None:
        self._code: str | None = secrets.token_urlsafe(32)

    def lets_in(self, code: str) -> bool:
        """Whether this is the code. It is void from then on; a wrong one changes nothing."""
        # guard: operate-entrance-code
        if self._code is None or not hmac.compare_digest(code.encode(), self._code.encode()):
            return False
        self._code = None  # guard: operate-entrance-single-use
        return True

    @contextmanager
    def file(self, port: int) -> Iterator[Path]:
        """A page that leads to the entrance at this port, for the length of the block. Raises OSError."""
        folder = _private_folder()
        try:
            file = folder / "open.html"
            write_private(file, leading_to(f"http://127.0.0.1:{port}{PATH}?code={quote(self._code or '')}"))
            yield file
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def leading_to(address: str) -> str:
    """A page that a browser leaves at once for this address."""
    return _LEADING.format(address=html.escape(address))


def _private_folder() -> Path:
    # Browsers in a snap read neither /tmp nor hidden folders (https://snapcraft.io/docs/home-interface).
    try:
        return Path(tempfile.mkdtemp(prefix="darkroom-operate-", dir=Path.home()))
    except (OSError, RuntimeError):  # there is no home, or nothing can be written there
        return Path(tempfile.mkdtemp(prefix="darkroom-operate-"))
