"""What wiring loads: each function gets only its own operation and libraries."""

import subprocess
import sys

from checks.report import ROOT

SCRIPT = """
import sys
import darkroom.wiring
print(*sorted(name for name in sys.modules if name.startswith(("darkroom.operations.", "darkroom.imaging", "PIL"))))
"""


def test_wiring_loads_no_operation_and_no_engine_by_itself() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PYTHONPATH": str(ROOT / "layers" / "core"), "AWS_DEFAULT_REGION": "eu-central-1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == []
