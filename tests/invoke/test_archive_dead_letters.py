"""`sam local invoke` of archive_dead_letters."""

from pathlib import Path

from tests.invoke.deployed_stack import DeployedStack, sample_event


def test_a_dead_letter_that_is_not_near_its_end_is_left_where_it_lies(stack: DeployedStack, tmp_path: Path) -> None:
    stack.put_dead_letter("nobody's message")

    answer = stack.invoke("archive_dead_letters", sample_event("archive_dead_letters"), tmp_path)

    assert answer == {"outcomes": {"too_young": 1}, "incomplete": []}
    assert stack.take_dead_letters() == ["nobody's message"]
