"""Processes of the functions, all in one: each has its own modules and environment, as an initialised Lambda has."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any
from unittest.mock import patch

from botocore.session import get_session

from darkroom.domain.kernel.instants import Milliseconds
from darkroom.egress.request import EgressResponse
from tests.support.fakes.at_once import one_after_another

_STATELESS = ("darkroom.domain", "darkroom.imaging", "darkroom.operations", "darkroom.ports", "darkroom.settings")
"""Modules that all processes may share because they are stateless; the others are loaded again for each process."""

_OWN = ("darkroom.", "app_")

_READ_AT = "_read_at"
"""The attribute of a secret that says when it was read."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """A Lambda context with the attributes that the handlers read."""

    function_name: str
    aws_request_id: str
    deadline: Milliseconds
    clock: Callable[[], Milliseconds]
    memory_limit_in_mb: int = 512

    @property
    def invoked_function_arn(self) -> str:
        """An ARN in AWS's example account."""
        return f"arn:aws:lambda:us-east-1:123456789012:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """As Lambda calls it."""
        return max(0, self.deadline - self.clock())


@dataclass(eq=False, kw_only=True)
class Process:
    """A process of a function: its environment, and the modules that it shares with no other process, its app first."""

    environment: Mapping[str, str]
    modules: tuple[ModuleType, ...] = ()
    _at_rest: str | None = None
    """Its memory since it was last at work, when that has been asked for."""
    _is_at_work: bool = False

    def handle(self, event: dict[str, Any], context: Context) -> Any:
        """The answer of the app's handler."""
        self._at_rest, self._is_at_work = None, True
        try:
            return self.modules[0].handler(event, context)
        finally:
            self._is_at_work = False

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Within this block, the environment is this process's."""
        with patch.dict(os.environ, self.environment):
            yield

    def memory(self) -> str:
        """Its memory: the plain values in the product's own objects that its modules reach."""
        if self._is_at_work:
            return "\n".join(sorted(_remembered(self.modules)))
        if self._at_rest is None:
            self._at_rest = "\n".join(sorted(_remembered(self.modules)))
        return self._at_rest


def start(name: str, path: Path, environment: Mapping[str, str]) -> Process:
    """A new process of the function in that file: all stateful modules are loaded, as Lambda does at initialisation."""
    with fresh_process(), patch.dict(os.environ, environment):
        spec = importlib.util.spec_from_file_location(f"app_{name}", path)
        if spec is None or spec.loader is None:
            raise FileNotFoundError(path)
        # A history is told by its calls in their order, and threads have none. The SDK's models are loaded once.
        runtime = vars(importlib.import_module("darkroom.wiring.kernel.runtime"))
        runtime |= {"at_once": one_after_another, "kept_threads": lambda _: one_after_another}
        vars(importlib.import_module("darkroom.aws.kernel.clients"))["_session"] = _session
        vars(importlib.import_module("darkroom.egress.images"))["send"] = _sent
        # In no history is a key replaced, so that nothing depends on when one was read.
        vars(importlib.import_module("darkroom.aws.kernel.secrets"))["REMEMBERED_SECONDS"] = math.inf
        app = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = app
        spec.loader.exec_module(app)
        return Process(environment=environment, modules=(app, *map(sys.modules.__getitem__, _stateful())))


_session = cache(get_session)

on_request: Callable[[], EgressResponse] | None = None
"""How the world's only web server answers a request. Nothing else is reached by any process."""


def _sent(_method: str, _url: object, **_: object) -> EgressResponse:
    if on_request is None:
        raise ConnectionRefusedError("there is no web server in this history")
    return on_request()


@contextmanager
def fresh_process() -> Iterator[None]:
    """Within this block, all stateful modules are imported as if for the first time."""
    for name in _stateful():
        parent, _, child = name.rpartition(".")
        del sys.modules[name]
        if parent in sys.modules:
            vars(sys.modules[parent]).pop(child, None)  # `from darkroom import telemetry` looks here first
    yield


def _stateful() -> list[str]:
    return [name for name in sys.modules if name.startswith("darkroom.") and not name.startswith(_STATELESS)]


def _remembered(modules: tuple[ModuleType, ...]) -> Iterator[str]:
    known: set[int] = set()
    ahead = [
        (name, value)
        for module in modules
        for name, value in vars(module).items()
        if type(value).__module__.startswith(_OWN) or isinstance(value, FunctionType)
    ]
    while ahead:
        path, value = ahead.pop()
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            yield f"{path}={value!r}"
        elif id(value) not in known:
            known.add(id(value))
            ahead += _parts(path, value)


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    match value:
        case dict():
            for key, element in value.items():
                yield f"{path}[{key!r}]" if isinstance(key, str) else f"{path}[]", element
        case list() | tuple() | set() | frozenset():
            for element in value:
                yield f"{path}[]", element
        case CellType():
            yield path, value.cell_contents
        case FunctionType():
            for cell in value.__closure__ or ():
                yield f"{path}()", cell
        case MethodType():
            yield path, value.__self__
        case _ if type(value).__module__.startswith(_OWN):
            names = [field.name for field in fields(value)] if is_dataclass(value) else getattr(value, "__dict__", ())
            for name in [name for name in names if name != _READ_AT]:
                yield f"{path}.{name}", getattr(value, name)
