"""Where modules and ports lay before they were divided by subject: for one release.

During a deployment Lambda runs the former `app.py` with this core for some seconds (docs/changing.md, "The core").
"""

from __future__ import annotations

import importlib
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_CORE = Path(__file__).parent

_RENAMED = {
    "darkroom.domain.marks": "darkroom.domain.images.timeline",
    "darkroom.http.openapi": "darkroom.http.description",
    "darkroom.http.webhook_routes": "darkroom.http.webhooks.routes",
}

_CLASSES = {
    "darkroom.domain.announcement": {"Announcement": "AnnouncedFile"},
    "darkroom.domain.fetch": {"FetchOrder": "UrlOrder"},
    "darkroom.domain.marks": {"Marks": "AttemptTimeline"},
    "darkroom.http.openapi": {"document": "description"},
    "darkroom.domain.signature": {"Mistrust": "VerificationFailure"},
    "darkroom.operations.sweep_due_endpoints": {"Sweep": "EndpointsSweep"},
    "darkroom.operations.transcode_image": {"Delivery": "ReceivedMessage"},
}
"""What a module's classes were called, of those that a handler imports."""


def module_named(name: str) -> ModuleSpec | None:
    """Finds `darkroom.operations.read_image` as `darkroom.operations.images.read_image`; None if it is nowhere."""
    if name == "darkroom.http.routes":
        return ModuleSpec(name, _Routes())
    package, _, module = name.rpartition(".")
    places = sorted(_CORE.glob(f"{package.removeprefix('darkroom.')}/*/{module}.py"))
    present = f"{package}.{places[0].parent.name}.{module}" if places else _RENAMED.get(name)
    return ModuleSpec(name, _Alias(present)) if present else None


class _Alias(Loader):
    """Loads a module by its present name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        del spec
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        former = module.__spec__.name if module.__spec__ else ""
        for name, present in _CLASSES.get(former, {}).items():
            setattr(module, name, vars(module)[present])
        if former == "darkroom.operations.submit_image":
            vars(module)["Upload"] = _upload
        module.__spec__ = self._spec  # which the import system has replaced


class _Routes(Loader):
    """Has a module with every route."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = lambda name: _first_with(name, "http/*/*route*.py")


def _upload(**fields: Any) -> Any:
    """What is given to `submit_image`, from the fields of which the former handler makes it."""
    parameters = ("preset", "variants", "recipe", "notify", "timetable")
    order_of = name_in("darkroom.domain.images.order", "order_of")
    order = order_of(**{name: fields.pop(name) for name in parameters if name in fields})
    return name_in("darkroom.operations.images.submit_image", "PhotoUpload")(order=order, **fields)


def name_in(module: str, name: str) -> Any:
    """What a module has of this name. Raises AttributeError."""
    return getattr(importlib.import_module(module), name)


def port_named(name: str) -> Any:
    """The port of this name, whichever subject's it is. Raises AttributeError if there is none."""
    return _first_with(name, "ports/[a-z]*.py")


def _first_with(name: str, files: str) -> Any:
    for file in sorted(_CORE.glob(files)):
        module = ".".join(file.relative_to(_CORE.parent).with_suffix("").parts)
        names = vars(importlib.import_module(module))
        if name in names:
            return names[name]
    raise AttributeError(name)
