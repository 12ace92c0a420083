"""What a function loads: only its own operation, and the libraries that it needs."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys

import pytest

from repository.report import ROOT
from tests.support.core_alone import CORE_ALONE

FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/app.py"))

# Each in a fork of its own, of a process that has imported only what each of them needs. What a handler does as it is
# loaded needs the function's environment, so only its imports are done.
SCRIPT = """
import json, os, sys
import darkroom.aws.kernel.clients
for name, imports in json.loads(sys.argv[1]).items():
    if os.fork() == 0:
        exec(imports)
        print(json.dumps([name, sorted(sys.modules)]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""


def imports_of(name: str) -> str:
    """The import statements of a function's handler."""
    handler = ast.parse((ROOT / "functions" / name / "app.py").read_text())
    return "\n".join(ast.unparse(line) for line in handler.body if isinstance(line, ast.Import | ast.ImportFrom))


@functools.cache
def loaded() -> dict[str, frozenset[str]]:
    """The modules that each function loads."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps({name: imports_of(name) for name in FUNCTIONS})],
        env=CORE_ALONE,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: frozenset(modules) for name, modules in map(json.loads, ran.stdout.splitlines())}


USERS_OF = {
    "PIL": {"make_variant", "transcode_image"},
    # What few recipes ask for, an eighth of the engine's imports, waits until one does.
    "darkroom.imaging.animation": set(),
    "darkroom.imaging.rights": set(),
    # The package of Powertools' idempotency would import the first, which imports the others.
    "boto3": set(),
    "s3transfer": set(),
    "multiprocessing": set(),
    "aws_xray_sdk": set(),
    # Powertools' router would import both, and so would its batches: a tenth of a start.
    "asyncio": set(),
    "aws_lambda_powertools.utilities.data_classes": set(),
    # What is about webhooks, events and batches that wait, where nothing of it comes.
    "darkroom.egress": {"deliver_event", "fetch_original", "manage_webhooks"},
    "darkroom.http.webhooks.webhooks": {"manage_webhooks"},
    "darkroom.domain.webhooks.delivery": {
        *("create_deliveries", "deliver_event", "manage_webhooks", "sweep_due_endpoints"),
    },
    "darkroom.domain.schedules.hold": {"archive_dead_letters", "hold_images", "release_images", "sweep_due_images"},
    "darkroom.domain.dead_letters.rejection": {"archive_dead_letters"},
    "cryptography": set(),  # before the first signature
    "pydantic": {*FUNCTIONS} - {"authorize_request", "invalidate_edge", "sign_image"},
}
"""The functions that load each library."""


# One test each, not one for each function: whichever worker runs one of them loads all functions.
@pytest.mark.guards("wiring-own-operation-only")
def test_a_function_loads_only_its_own_operation() -> None:
    for name in FUNCTIONS:
        operations = {
            module.rpartition(".")[2] for module in loaded()[name] if module.startswith("darkroom.operations.")
        }
        assert operations & {*FUNCTIONS} == {name}


@pytest.mark.guards("wiring-types-for-checking-only")
def test_a_library_is_loaded_only_where_it_is_needed() -> None:
    for library, users in USERS_OF.items():
        assert {name for name, modules in loaded().items() if library in modules} == users, library


@pytest.mark.guards("cold-start-garbage-collection")
def test_a_function_starts_without_looking_for_garbage_and_then_looks_for_its_own_alone() -> None:
    script = """
import gc, sys
sys.modules["awslambdaric"] = sys  # Lambda's runtime client loads the handler
import darkroom
assert not gc.isenabled()
from darkroom.telemetry import entry_point
entry_point()(lambda event, context: {})
assert gc.isenabled() and gc.get_freeze_count() > 10_000
"""
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=CORE_ALONE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_the_package_of_powertools_idempotency_is_whole_for_whoever_imports_it_after_us() -> None:
    script = """
from darkroom.aws.images.idempotency import BasePersistenceLayer
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer
assert issubclass(DynamoDBPersistenceLayer, BasePersistenceLayer)
"""
    subprocess.run([sys.executable, "-c", script], env=CORE_ALONE, check=True)
