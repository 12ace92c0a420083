"""Stops the releases of all batches, so that a stack can be removed.

Step Functions deletes a state machine only when all its executions have ended, and an execution waits for up to a year.
Nothing is lost as long as the stack stays: the sweeper sends what no batch releases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from darkroom_cli.operator.operations.kernel.audit_trail import Trail
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.ports import Releases

SETTLE_SECONDS = 120
"""How long a batch may still come: twice the timeout of the function that makes batches."""


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """How many batches were stopped. Not `complete` if the operator ended it early."""

    batches: int
    complete: bool


@dataclass(frozen=True, kw_only=True)
class StopReleasesPorts:
    """What stopping releases needs."""

    releases: Releases
    patience: TransientRetry
    audit: Trail


def stop_releases(
    ports: StopReleasesPorts, *, on_progress: Callable[[str, int, int], None] = lambda doing, done, of: None
) -> Stopped:
    """Stops all batches, and those that come while the consumer ends. `on_progress` is called with the step, how much
    of it is done, and of how much. Raises Retryable if AWS cannot answer for minutes: a repetition goes on from
    there."""
    stopped: set[str] = set()
    with ports.audit.action("stop_releases") as audited:
        ports.patience(ports.releases.hold_no_more)  # guard: release-stop-consumer-first
        has_settled = False
        while True:
            waiting = ports.patience(lambda: set(ports.releases.waiting()) - stopped)
            for name in sorted(waiting):
                if ports.patience.stop():
                    break
                ports.patience(ports.releases.stop, name)
                stopped.add(name)
                audited.add(None, "stopped")
                on_progress("stopping", len(stopped), len(stopped | waiting))
            if ports.patience.stop():
                audited.interrupt()
                return Stopped(batches=len(stopped), complete=False)
            if has_settled and not waiting:  # guard: release-stop-awaits-consumer
                return Stopped(batches=len(stopped), complete=True)
            has_settled = _settle(ports.patience, on_progress)


def _settle(patience: TransientRetry, on_progress: Callable[[str, int, int], None]) -> bool:
    """Waits until no batch can come any more, or the operator ends it."""
    for waited_seconds in range(SETTLE_SECONDS):
        if patience.stop():
            break
        on_progress("waiting", waited_seconds, SETTLE_SECONDS)
        patience.pause(1)
    return True
