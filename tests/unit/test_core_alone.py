"""The core's functions import nothing of optional parts: what a part adds to them is loaded by its name."""

from __future__ import annotations

from functools import cache

import grimp
import pytest

import darkroom.http.imports.for_core
import darkroom.http.usage.for_core
import darkroom.wiring.imports.for_core
import darkroom.wiring.usage.for_core
import darkroom.wiring.webhooks.for_core
from darkroom.http.description import KEPT, description
from darkroom.http.kernel.parts import PhotosByUrl, UsageRoute
from darkroom.operations.imports.begin_fetch import BeginFetchPorts
from darkroom.wiring.kernel.parts import ImportsForCore, UsageForCore, WebhooksForCore
from darkroom_cli.doctor.checkout import SLICES_OF_PARTS
from repository.openapi.document import document
from repository.openapi.kept import STACKS, kept
from tests.support.template import functions_of_the_core

LOADED: tuple[WebhooksForCore, UsageForCore, ImportsForCore, UsageRoute] = (
    darkroom.wiring.webhooks.for_core,
    darkroom.wiring.usage.for_core,
    darkroom.wiring.imports.for_core,
    darkroom.http.usage.for_core,
)
"""The modules that are loaded by name, which mypy compares with their protocols."""


def photos_by_url(ports: BeginFetchPorts) -> PhotosByUrl:
    return darkroom.http.imports.for_core.PhotosByUrl(ports)


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("darkroom", "functions", cache_dir=None)


@pytest.mark.parametrize("name", functions_of_the_core())
def test_no_path_of_imports_leads_from_a_function_of_the_core_to_a_part(name: str) -> None:
    reached = graph().find_upstream_modules(f"functions.{name}.app")
    assert len(reached) > 10
    of_parts = SLICES_OF_PARTS | {"page"}
    assert [module for module in sorted(reached) if not of_parts.isdisjoint(module.split("."))] == []


def test_the_core_has_12_functions() -> None:
    assert len(functions_of_the_core()) == 12


def test_the_kept_description_is_that_of_the_table_and_each_stacks_is_the_generators() -> None:
    generated = {stack: document(*stack) for stack in STACKS}
    assert KEPT.read_text() == kept(generated), "PYTHONPATH=scripts:layers/core python -m repository.openapi.kept"
    for stack, wanted in generated.items():
        described = description(*stack)
        assert described == wanted, stack
        assert list(described["components"]["schemas"]) == list(wanted["components"]["schemas"]), stack
