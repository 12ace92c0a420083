"""A long-lived process that runs one Python engine: each line of JSON is a job, answered by a line of JSON.

Usage: python -m benchmarks.engine.worker ENGINE    (see sharp/worker.cjs for the same in JavaScript)
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast


class Engine(Protocol):
    """The interface of an engine's module. Each imports only its own libraries, so that memory can be told apart."""

    def versions(self) -> Mapping[str, str]:
        """The libraries that do the work."""

    def run(self, original: bytes, variants: list[dict[str, Any]], encoding: dict[str, Any]) -> dict[str, bytes]:
        """The variants' bytes by name, from the original's bytes."""


MODULES = {
    "naive-pillow": "benchmarks.engine.naive_pillow",
    "pillow": "benchmarks.engine.careful_pillow",
    "pyvips": "benchmarks.engine.pyvips_alone",
    "darkroom": "benchmarks.engine.darkroom_itself",
    "least": "benchmarks.engine.least",
}


def peak_megabytes() -> float:
    """The process's peak memory so far (VmHWM, which restarts at exec, unlike ru_maxrss)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status names no VmHWM: memory can only be measured on Linux")


def cpu_milliseconds() -> float:
    """The CPU time of all threads of this process so far, in user and in kernel mode."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1000


def serve(engine: Engine) -> None:
    """Answers until standard input ends. The first line says that the engine is imported, and its memory by then."""
    answer(peak_mb=peak_megabytes())
    path, original = "", b""
    for line in sys.stdin:
        request = json.loads(line)
        if "versions" in request:
            answer(versions=engine.versions())
            continue
        if request["source"] != path:
            path = request["source"]
            original = Path(path).read_bytes()
        started = cpu_milliseconds()
        made = engine.run(original, request["variants"], request["encoding"])
        spent = cpu_milliseconds() - started
        if request["save"] is not None:
            for name, body in made.items():
                (Path(request["save"]) / name).write_bytes(body)
        answer(cpu_ms=spent, bytes={name: len(body) for name, body in made.items()}, peak_mb=peak_megabytes())


def answer(**fields: Any) -> None:
    """One line of JSON on standard output."""
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    serve(cast(Engine, importlib.import_module(MODULES[sys.argv[1]])))
