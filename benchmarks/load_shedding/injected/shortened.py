"""The acceptor's handler with a shorter service level of the slow lane, so that a burst fills it in seconds.

The product has no switch for it: the benchmark sets `Handler` to this module's, and PYTHONPATH to its folder.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from typing import Any

from darkroom.domain.kernel import lanes

# Before the handler's module is imported, which builds its lanes from these.
lanes.LANES["slow"] = dataclasses.replace(lanes.SLOW, sla_seconds=int(os.environ["BENCH_SLOW_SLA_SECONDS"]))

app: Any = importlib.import_module("app")

handler = app.handler
