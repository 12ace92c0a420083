"""Reads the record that the local stack keeps while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from console.api.client import NOT_RUNNING, ApiError, Unreachable
from local_aws.stacks.record import AnotherVersion, StackRecord, read_record, record_file, state_folder


def local_stack(environment: Mapping[str, str], *, otherwise: str) -> StackRecord:
    """The local stack's record.

    Raises Unreachable if it is not running, with `otherwise` as the other thing to do, and ApiError if its file cannot
    be read.
    """
    file = record_file(state_folder(environment))
    try:
        return read_record(file)
    except FileNotFoundError:
        raise Unreachable(f"{NOT_RUNNING}\n{otherwise}") from None
    except AnotherVersion as error:
        raise ApiError(f"{error}. Stop the local stack and start it again: make run") from error
    except (OSError, ValueError) as error:
        raise ApiError(f"{file} cannot be read ({error}). Stop the local stack and start it again: make run") from error
