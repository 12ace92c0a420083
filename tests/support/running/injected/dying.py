"""A function's handler as a test runs it: the function's own, in processes the first of which die mid-work.

Each of the first INJECTED_DEATHS processes kills itself once it has sent INJECTED_SENDS batches of messages. It knows
its number by the files that earlier processes left in the folder INJECTED_LIVES.
"""

from __future__ import annotations

import importlib
import itertools
import os
import signal
from pathlib import Path
from typing import Any


def _born_as(folder: Path) -> int:
    for number in itertools.count():
        try:
            (folder / str(number)).touch(exist_ok=False)
        except FileExistsError:
            continue
        return number
    raise AssertionError


def _die_after(sends: int) -> None:
    from darkroom.aws.images import queues  # noqa: PLC0415

    send_batch, sent = queues._send_batch, itertools.count(1)

    def send_and_die(*arguments: Any) -> Any:
        unsent = send_batch(*arguments)
        if next(sent) == sends:
            os.kill(os.getpid(), signal.SIGKILL)
        return unsent

    queues._send_batch = send_and_die  # type: ignore[assignment]


if _born_as(Path(os.environ["INJECTED_LIVES"])) < int(os.environ["INJECTED_DEATHS"]):
    _die_after(int(os.environ["INJECTED_SENDS"]))

app: Any = importlib.import_module("app")
handler = app.handler
