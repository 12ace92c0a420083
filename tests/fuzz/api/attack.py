"""One run of Schemathesis against a running stack, and its findings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repository.report import ROOT

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")


@dataclass(frozen=True, kw_only=True)
class Findings:
    """`said` is Schemathesis's output; `report` its own report, whose `failures` are its findings."""

    said: str
    report: dict[str, Any]

    @property
    def failures(self) -> list[Any]:
        """Answers that differ from the description, and errors of the attack itself."""
        return [*self.report["failures"], *self.report["errors"]]

    @property
    def left_out(self) -> list[str]:
        """What did not happen: phases that were skipped or aborted, operations that were not tested, requests whose
        answers were not checked."""
        operations, cases = self.report["operations"], self.report["test_cases"]
        return [
            *(f"phase {name}" for name, phase in self.report["phases"].items() if phase["skip_reason"] is not None),
            *(["the end of the run"] if not self.report["complete"] else []),
            *([f"operations: {operations}"] if operations["tested"] != operations["total"] else []),
            *([f"requests: {cases}"] if cases["without_checks"] or cases["errored"] else []),
        ]

    @property
    def requests(self) -> int:
        """How many were sent."""
        return int(self.report["test_cases"]["generated"])

    def good_requests(self, outcome: str) -> dict[str, int]:
        """How many of the requests that should be good had that outcome (`accepted`, `rejected`, `unreachable` for 404,
        `conflicts` for 409), by operation."""
        return {
            operation: sum(phase[outcome] for phase in phases.values())
            for operation, phases in self.report["valid_rates"].items()
        }


def attack(api_url: str, *, examples: int, seed: int, folder: Path, deterministic: bool = False) -> Findings:
    """Sends requests of every kind to each operation, `examples` random ones in addition to those that the description
    calls for, and compares each answer with it. `deterministic` sends the same requests each time, whatever the seed.

    Raises RuntimeError if Schemathesis cannot run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command: list[str | Path] = [Path(sys.executable).with_name("schemathesis")]
    command += ["--config-file", CONFIGURATION, "run", f"{api_url}/openapi.json"]
    command += ["--include-path-regex", "/"]  # also the path of the description itself
    command += ["--checks", "all", "--continue-on-failure", "--no-color"]
    command += ["--max-examples", str(examples), "--seed", str(seed), "--request-timeout", "30"]
    command += ["--generation-deterministic"] if deterministic else ["--generation-database", "none"]
    command += ["--report", "json", "--report-json-path", report]
    # The API is on this machine: ignore a proxy for the outside world.
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    paths = (ROOT / "scripts", ROOT / "cli", ROOT / "layers" / "core", ROOT)
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environment, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if not report.exists():
        raise RuntimeError(f"Schemathesis did not run:\n{done.stdout}")
    return Findings(said=done.stdout, report=json.loads(report.read_bytes()))
