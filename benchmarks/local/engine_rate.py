"""Develops one photo again and again in this process, and prints the seconds that each took.

python -m benchmarks.local.engine_rate PHOTO COUNT
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from darkroom.domain.images.limits import Limits
from darkroom.domain.kernel.lanes import lane_for
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.recipes.presets import DEFAULT_PRESET, preset_named
from darkroom.imaging import develop


def main() -> None:
    """The first run is not counted."""
    body, count = Path(sys.argv[1]).read_bytes(), int(sys.argv[2])
    for _ in range(1 + count):
        began = time.perf_counter()
        develop(body, preset_named(DEFAULT_PRESET), limits=Limits(), effort=lane_for(Tier.FREE).effort)
        print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main()
