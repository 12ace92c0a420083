"""What can go wrong with the local stack, grouped by what its user should look at."""

from collections.abc import Sequence
from pathlib import Path


class AlreadyRunning(Exception):
    """Another supervisor holds the lock of this state folder."""


class NotRunning(Exception):
    """No stack runs in this state folder, or it is not serving yet."""


class CommandFailed(Exception):
    """A command exited with a status other than 0; its output is in `log`."""

    def __init__(self, name: str, exit_status: int, log: Path) -> None:
        super().__init__(f"{name} failed with status {exit_status}.")
        self.name, self.exit_status, self.log = name, exit_status, log


class DeploymentFailed(CommandFailed):
    """CloudFormation refused something; `reasons` says what and why."""

    def __init__(self, failure: CommandFailed, reasons: Sequence[str]) -> None:
        super().__init__(failure.name, failure.exit_status, failure.log)
        self.reasons = reasons


class ApiSilent(Exception):
    """The stack is deployed, but its API does not answer as our function does; `exceptions` are those of the functions
    behind it, each with its stack, if that is why."""

    def __init__(self, message: str, exceptions: Sequence[Sequence[str]] = ()) -> None:
        super().__init__(message)
        self.exceptions = exceptions


class ClockFixed(Exception):
    """The stack's clock cannot be moved on this machine, or did not follow."""
