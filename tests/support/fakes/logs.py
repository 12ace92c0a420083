"""Logs in memory."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.operator.domain.trace import LogLine


@dataclass
class FakeLogLines:
    """Implements `LogLines`: `lines` are all that was logged, `sources` the logs that there are."""

    lines: list[LogLine] = field(default_factory=list)
    sources: Collection[str] = ("submit_image", "transcode_image", "publish_events", "deliver_event", "api")
    searched: list[str] = field(default_factory=list)

    def containing(self, source: str, text: str, *, since: Milliseconds, until: Milliseconds) -> Iterator[LogLine]:
        self.searched.append(source)
        for line in self.lines:
            if line.source == source and since <= line.at <= until and text in json.dumps(dict(line.fields)):
                yield line
