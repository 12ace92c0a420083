"""Corrects the emulator to behave like AWS: shims restore what AWS does, guards refuse what AWS refuses."""

import importlib
from collections.abc import Collection, Iterator

from local_aws.emulator import Emulator
from local_aws.guards import GUARDS
from local_aws.shims import SHIMS

NAMES = (*SHIMS, *GUARDS)


def apply_corrections(emulator: Emulator, without: Collection[str] = ()) -> None:
    """Apply every shim and guard except those named in `without`, in the order of their registries."""
    for module_name in _modules(without):
        importlib.import_module(module_name).apply(emulator)


def _modules(without: Collection[str]) -> Iterator[str]:
    for package, names in (("shims", SHIMS), ("guards", GUARDS)):
        for name in names:
            if name not in without:
                yield f"local_aws.{package}.{name}"
