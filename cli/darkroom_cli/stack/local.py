"""Reads the record that the local stack keeps while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from darkroom_cli.places import HAS_LOCAL_STACK, ROOT
from darkroom_client.client import NOT_RUNNING, ApiError, Unreachable
from local_aws.stacks.record import AnotherVersion, StackRecord, read_record, record_file, state_folder

HOME = ROOT / ".darkroom"
"""The environments of this checkout, and the state folder of its local stack, unless STATE_VARIABLE names another."""
STATE_VARIABLE = "DARKROOM_STATE_DIR"


def local_stack(environment: Mapping[str, str], *, otherwise: str = "") -> StackRecord:
    """The local stack's record.

    Raises Unreachable if it is not running, with `otherwise` as the other thing to do ("name a …"), and ApiError if its
    file cannot be read.
    """
    file = record_file(state_folder(environment, variable=STATE_VARIABLE, otherwise=HOME))
    try:
        return read_record(file)
    except FileNotFoundError:
        start = f"{NOT_RUNNING}\nOr " if HAS_LOCAL_STACK else "No local stack runs here: "
        raise Unreachable(start + otherwise) from None
    except AnotherVersion as error:
        raise ApiError(f"{error}. Stop the local stack and start it again: make run") from error
    except (OSError, ValueError) as error:
        raise ApiError(f"{file} cannot be read ({error}). Stop the local stack and start it again: make run") from error
