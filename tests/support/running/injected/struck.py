"""A function's handler as a test runs it: the function's own, in processes that die where a test has said.

A file in the folder INJECTED_STRIKES, whose name begins with that of the function (INJECTED_FUNCTION), says at which
AWS call a process dies: the first one whose event contains the file's `token`. The process that takes the file is that
one; before it dies it records whom it was working for. If it makes fewer calls, it dies before it answers.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

_FOLDER, _FUNCTION = Path(os.environ["INJECTED_STRIKES"]), os.environ["INJECTED_FUNCTION"]
_IMAGE_ID = re.compile(r"(?<![0-9a-z])[0-7][0-9a-hjkmnp-tv-z]{25}(?![0-9a-z])")


class _Doom:
    """What this process dies of, once it has taken a file."""

    def __init__(self) -> None:
        self.file: Path | None = None
        self.strike: dict[str, Any] = {}
        self.image_ids: list[str] = []
        self.calls = 0

    def look_for(self, event: Any) -> None:
        written = json.dumps(event)
        for file in sorted(_FOLDER.glob(f"{_FUNCTION}.*.json")):
            try:
                strike = json.loads(file.read_bytes())
                if strike["token"] in written:
                    file.rename(file.with_suffix(".taken"))
                    self.file, self.strike = file, strike
                    self.image_ids = sorted(set(_IMAGE_ID.findall(written)))
                    return
            except FileNotFoundError:  # another process was faster
                continue

    def is_met(self, operation: str) -> bool:
        """Whether this call is the one."""
        if self.file is None or self.strike["operation"] not in (None, operation):
            return False
        self.calls += 1
        return bool(self.calls == self.strike["call"])

    def come(self) -> None:
        if self.file is not None:
            word = {"token": self.strike["token"], "image_ids": self.image_ids, "at": time.time_ns() // 1_000_000}
            unfinished = self.file.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(word))
            unfinished.rename(self.file.with_suffix(".dead"))
            os.kill(os.getpid(), signal.SIGKILL)


_doom = _Doom()
_clients: Any = importlib.import_module("botocore.client").BaseClient
_call = _clients._make_api_call


def _call_and_die(client: Any, operation: str, arguments: Any) -> Any:
    is_met = _doom.is_met(operation)
    if is_met and not _doom.strike["after"]:
        _doom.come()
    try:
        return _call(client, operation, arguments)
    finally:
        if is_met:
            _doom.come()


_clients._make_api_call = _call_and_die

app: Any = importlib.import_module("app")


def handler(event: Any, context: Any) -> Any:
    """The function's own handler, unless this process dies in it."""
    _doom.look_for(event)
    try:
        return app.handler(event, context)
    finally:
        _doom.come()
