"""For one release a former `app.py` finds in the core what it imports (docs/changing.md, "The core")."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.core_alone import CORE_ALONE

CORE = Path("layers/core/darkroom")
LAYERS = ("domain", "operations", "aws", "http", "wiring")

PROGRAM = """
import importlib, json, sys
for present, former in json.load(sys.stdin):
    found = importlib.import_module(former)
    module = importlib.import_module(present)
    assert found is module and module.__spec__.name == present, former
from darkroom.ports import RowChange, UnreadableRow
from darkroom.domain.announcement import Announcement
from darkroom.domain.fetch import FetchOrder
from darkroom.domain.marks import Marks
from darkroom.domain.signature import Mistrust
from darkroom.domain.tenants import Tier
from darkroom.operations.sweep_due_endpoints import Sweep
from darkroom.operations.submit_image import Upload, submit_image
from darkroom.operations.transcode_image import Delivery
upload = Upload(body=b"x", tenant_id="a", correlation_id="b", preset=None, variants="thumb", recipe=None, notify=None)
assert [variant.name for variant in upload.order.recipe.variants] == ["thumb"]
from darkroom.http.page import page_settings
from darkroom.http.usage import usage_document
from darkroom.http.webhooks import webhook_document
from darkroom.http.webhook_routes import POST_WEBHOOK
from darkroom.http.routes import GET_OPENAPI, PATCH_IMAGE, POST_IMAGE, POST_UPLOAD
from darkroom.http.responses import NOT_STORED, image_response, json_response
for nothing in ("darkroom.ports.nothing", "darkroom.operations.nothing", "darkroom.nothing"):
    try:
        importlib.import_module(nothing)
    except ModuleNotFoundError:
        continue
    raise AssertionError(nothing)
"""


def test_modules_are_found_where_they_lay_before_and_nothing_else_is() -> None:
    parted = [file for layer in LAYERS for file in CORE.glob(f"{layer}/*/[a-z]*.py")]
    moved = [
        (".".join(file.relative_to(CORE.parent).with_suffix("").parts), f"darkroom.{file.parts[-3]}.{file.stem}")
        for file in parted
        # A file that is the only one of its name, and in whose place there is nothing else now.
        if [other.name for other in parted if other.parts[-3] == file.parts[-3]].count(file.name) == 1
        and not (file.parent.parent / file.stem).exists()
        and not (file.parent.parent / file.name).exists()
    ]
    assert len(moved) > 100
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=CORE_ALONE,
        input=json.dumps(moved),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
