"""`sam local invoke` of sweep_due_bulk."""

from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_it_looks_at_what_is_due(stack: DeployedStack, tmp_path: Path) -> None:
    assert stack.invoke("sweep_due_bulk", sample_event("sweep_due_bulk"), tmp_path)["complete"] is True
