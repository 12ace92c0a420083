"""`sam local invoke` of count_batches."""

from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_an_event_of_a_batch_that_is_gone_is_taken(stack: DeployedStack, tmp_path: Path) -> None:
    assert stack.invoke("count_batches", sample_event("count_batches"), tmp_path) == {"batchItemFailures": []}
