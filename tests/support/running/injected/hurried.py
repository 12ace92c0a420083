"""A function's handler as a test runs it: the function's own, at a faster pace or over a broken engine.

The product has no switch for either: a test sets `Handler` to this module's, and PYTHONPATH to its folder.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from types import ModuleType
from typing import Any


def hurry(divisor: int) -> None:
    """Let minutes pass in seconds: shorten every pause of the product by the same factor."""
    from darkroom.aws.kernel import circuits  # noqa: PLC0415
    from darkroom.domain.images import transitions  # noqa: PLC0415
    from darkroom.domain.kernel import lanes, retry, tenants  # noqa: PLC0415
    from darkroom.domain.sweeping import due  # noqa: PLC0415

    _shorten(divisor, transitions, "SWEEP_INTERVAL_SECONDS")
    _shorten(divisor, due, "SWEEP_INTERVAL_SECONDS", "LAST_MESSAGE_SECONDS")
    _shorten(divisor, circuits, "RECOVERY_SECONDS")
    floor_seconds = float(os.environ["INJECTED_RETRY_FLOOR_SECONDS"])
    retry.RetryPolicy.__init__.__kwdefaults__["floor_seconds"] = floor_seconds  # type: ignore[index]
    retry.RETRIES["standard"] = retry.RetryPolicy()
    retry.OUTAGE = dataclasses.replace(
        retry.OUTAGE,
        floor_seconds=retry.OUTAGE.floor_seconds / divisor,
        highest_floor_seconds=retry.OUTAGE.highest_floor_seconds / divisor,
    )
    for name, lane in lanes.LANES.items():
        lanes.LANES[name] = dataclasses.replace(lane, sla_seconds=max(1, lane.sla_seconds // divisor))
    lanes.WORST_CASE_PHOTO_SECONDS /= divisor
    # Photos take their real time, so that a lane holds as many as ever within a shorter service level.
    for tier in tenants.Tier:
        tier.backlog_share *= divisor
    if _is_transcoder():
        from darkroom.operations.images import transcode_image  # noqa: PLC0415

        _shorten(
            divisor,
            transcode_image,
            "LEASE_MARGIN_SECONDS",
            "REDELIVERY_MARGIN_SECONDS",
            "WORST_CASE_IMAGE_MILLISECONDS",
            "RETURN_SECONDS",
        )


def break_for(mark: str) -> None:
    """Make the engine trip over every photo that carries the mark."""
    from darkroom import imaging  # noqa: PLC0415

    developing = imaging.developing

    def broken(original: bytes, *arguments: Any, **options: Any) -> Any:
        if mark.encode() in original:
            raise ZeroDivisionError(f"a bug that only a photo with {mark!r} in it brings out")
        return developing(original, *arguments, **options)

    imaging.developing = broken


def _shorten(divisor: int, module: ModuleType, *names: str) -> None:
    for name in names:
        setattr(module, name, max(1, getattr(module, name) // divisor))


def _is_transcoder() -> bool:
    return "TranscodeImageFunction" in os.environ["AWS_LAMBDA_FUNCTION_NAME"]


# Before the handler's module is imported, which takes the values that these names have then.
_divisor = int(os.environ.get("INJECTED_DIVISOR", "1"))
if (_mark := os.environ.get("INJECTED_MARK")) and _is_transcoder():
    break_for(_mark)
if _divisor > 1:
    hurry(_divisor)

app: Any = importlib.import_module("app")

handler = app.handler
