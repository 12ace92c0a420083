"""A function's handler over ports that a test gives it."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from repository.report import ROOT


def handler_of(name: str, part: str, ports: object, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], dict[str, Any]]:
    """functions/<name>/app.py as Lambda imports it, but for its wiring, in that part."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", name)
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Darkroom")
    monkeypatch.setattr(importlib.import_module(f"darkroom.wiring.{part}.{name}"), "wire", lambda: ports)
    spec = importlib.util.spec_from_file_location(f"app_{name}", ROOT / "functions" / name / "app.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    context = SimpleNamespace(
        function_name=name,
        aws_request_id="1b7b0f0e-0000-4000-8000-000000000001",
        memory_limit_in_mb=512,
        invoked_function_arn=f"arn:aws:lambda:us-east-1:123456789012:function:{name}",
        get_remaining_time_in_millis=lambda: 30_000,
    )

    def handle(event: Any) -> dict[str, Any]:
        answer: dict[str, Any] = module.handler(event, context)
        json.dumps(answer)  # Lambda does
        return answer

    return handle


def sample_of(name: str) -> dict[str, Any]:
    """The function's sample event."""
    sample: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return sample
