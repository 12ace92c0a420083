"""`sam local invoke` of sweep_due_endpoints."""

from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_a_sweep_of_endpoints_looks_at_all_that_is_due(stack: DeployedStack, tmp_path: Path) -> None:
    answer = stack.invoke("sweep_due_endpoints", sample_event("sweep_due_endpoints"), tmp_path)

    assert answer["complete"]
    assert "unreachable" not in answer["outcomes"]
