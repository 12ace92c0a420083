"""Runs a local stack of this checkout for a test or a measurement, with its own state folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from local_aws.processes import Child
from local_aws.stacks.record import record_file
from repository.report import ROOT
from tests.support.running.stack import Stack

_START_SECONDS = 600
_STOP_SECONDS = 20
_POLL_SECONDS = 0.02


@contextmanager
def serving(
    state: Path, *options: str, tree: Path = ROOT, environment: Mapping[str, str] = os.environ
) -> Iterator[Stack]:
    """Start a stack with that state folder and these options of `darkroom local up`, and stop it at the end of the
    block; that of another `tree` with its own environment."""
    state.mkdir(parents=True, exist_ok=True)
    stack_file = record_file(state)
    stack_file.unlink(missing_ok=True)
    with Child(
        [tree / "darkroom", "local", "up", *options],
        environment={**environment, "DARKROOM_STATE_DIR": str(state)},
        folder=tree,
        log=state / "terminal.log",
        grace_seconds=_STOP_SECONDS,
    ) as child:
        deadline = time.monotonic() + _START_SECONDS
        while not stack_file.exists():
            if child.exit_status is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The local stack did not start:\n{child.log.read_text()}")
            time.sleep(_POLL_SECONDS)
        yield Stack(state=state)
