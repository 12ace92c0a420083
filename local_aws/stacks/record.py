"""`stack.json`, in which the local stack records its addresses, for as long as it serves."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

_VERSION = 1

ACCESS_KEY_ID = "local"
"""The key of the local stack's account; its secret is made anew at each start."""


class AnotherVersion(ValueError):
    """The file was written by another version of this module."""


@dataclass(frozen=True, kw_only=True)
class StackRecord:
    """The content of stack.json."""

    api_url: str
    aws_endpoint_url: str
    region: str
    stack_name: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    extensions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # the outputs of each, by its name
    api_key: str | None = field(default=None, repr=False)
    aws_secret: str = field(default="local", repr=False)
    clock_file: str | None = None


def state_folder(environment: Mapping[str, str], *, variable: str, otherwise: Path) -> Path:
    """The state folder that a variable of the environment names (so that one checkout may run several stacks)."""
    moved = environment.get(variable)
    return Path(moved).absolute() if moved else otherwise


def record_file(state: Path) -> Path:
    """The file of a state folder; it exists only while a stack runs."""
    return state / "stack.json"


def read_record(file: Path) -> StackRecord:
    """Raises FileNotFoundError if no stack serves, AnotherVersion, and ValueError for any other file."""
    document = json.loads(file.read_bytes())
    if not isinstance(document, dict) or document.pop("version", None) != _VERSION:
        raise AnotherVersion(f"{file} is of another version")
    try:
        return StackRecord(**document)
    except TypeError as error:
        raise ValueError(f"{file}: {error}") from error


def write_record(file: Path, record: StackRecord) -> None:
    """Write it for its owner alone: it has the key and the secret of the stack."""
    write_private(file, json.dumps({"version": _VERSION, **asdict(record)}, indent=2) + "\n")


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner may read, and atomically: no reader ever sees half of it."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    # guard: operate-entrance-file-private
    with open(unfinished, "x", opener=lambda path, flags: os.open(path, flags, mode=0o600)) as opened:
        opened.write(text)
    unfinished.replace(file)
