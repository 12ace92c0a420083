"""Brings the emulator to AWS's behaviour: shims restore what AWS does, guards refuse what AWS refuses."""

import importlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from embedded_aws.guards import GUARDS
from embedded_aws.shims import SHIMS


@dataclass(frozen=True, kw_only=True)
class Emulator:
    """What a correction may need to know about the emulator that it corrects."""

    gateway_url: str
    function_python: Path
    data_dir: Path
    clock: Mapping[str, str] = field(default_factory=dict)  # what functions need, so that their clocks move with it
    concurrency: int | None = None  # of each function; None leaves it to the machine
    idle_seconds: float = 300  # after which a function's process is ended


NAMES = (*SHIMS, *GUARDS)


def apply_corrections(emulator: Emulator, without: Collection[str] = ()) -> None:
    """Apply every shim and guard but those named in `without`, in the order of their registries."""
    for module_name in _modules(without):
        importlib.import_module(module_name).apply(emulator)


def _modules(without: Collection[str]) -> Iterator[str]:
    for package, names in (("shims", SHIMS), ("guards", GUARDS)):
        for name in names:
            if name not in without:
                yield f"embedded_aws.{package}.{name}"
