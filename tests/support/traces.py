"""Log lines of an image's life."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from darkroom.domain.images.image import Image
from darkroom.domain.images.transitions import complete
from darkroom.domain.kernel.instants import rfc3339
from darkroom_cli.operator.domain.trace import LogLine
from tests.support.images import NOW, pending, processing

LATER = NOW + 3_600_000


def accepted(**stated: Any) -> Image:
    return pending(accepted_at=NOW, accepted_version=1, **stated)


def done(**stated: Any) -> Image:
    begun = processing(accepted_at=NOW, accepted_version=1)
    row = complete(begun, (), notices=(), now=NOW + 500)
    return replace(row, completed_version=3, version=3, **stated)


def line(message: str, at: int, source: str, **fields: Any) -> LogLine:
    usual = {"message": message, "level": "INFO", "image_id": "0" * 26, "correlation_id": "c"}
    return LogLine(at=NOW + at, source=source, fields=usual | fields)


def run_line(
    attempt: int = 1, outcome: str = "done", *, run: int = 1, cause: str | None = None, **marks: int
) -> LogLine:
    milliseconds = {"accepted": 0} | marks
    more = {} if cause is None else {"cause": cause}
    return line(
        "run",
        marks["finished"],
        "transcode_image",
        run=run,
        attempt=attempt,
        outcome=outcome,
        accepted_at=rfc3339(NOW),
        milliseconds=milliseconds,
        **more,
    )


DONE = run_line(enqueued=30, received=80, claimed=90, decoded=200, developed=400, stored=410, finished=420)
REQUEST = line("timing", 40, "submit_image", milliseconds=45.2)
PUBLISHED = line("event published", 60, "publish_events", type="image.accepted", event_id=f"{'0' * 26}-1")
