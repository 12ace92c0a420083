"""What a sweep of endpoints sends again, and the dead letters of events that it counts."""

from __future__ import annotations

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom.operations.events.count_dead_letters import count_dead_letters
from tests.support.fakes.at_once import one_after_another
from tests.support.fakes.stores import FakeDeadLetters
from tests.support.fakes.world import WebhooksWorld, event


def test_a_delivery_whose_message_was_lost_is_sent_again() -> None:
    world = WebhooksWorld()
    world.add()
    world.tell(event())
    lost = world.take()
    world.advance(600)
    assert world.sweep().outcomes == {"sent": 1}
    assert world.take() == lost


def test_the_dead_letters_of_each_queue_are_counted() -> None:
    queues = FakeDeadLetters(messages={"usage": [], "webhooks": []})
    queues.add("usage", "{}")
    assert count_dead_letters(queues, one_after_another) == ({"usage": 1, "webhooks": 0}, {})


@pytest.mark.guards("event-dead-letters-counted-apart")
def test_a_queue_that_does_not_answer_is_a_problem_of_that_queue_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    queues = FakeDeadLetters(messages={"usage": [], "webhooks": []})
    gone = Retryable("it does not answer")

    def depth(queue: str) -> int:
        if queue == "usage":
            raise gone
        return 0

    monkeypatch.setattr(queues, "depth", depth)
    assert count_dead_letters(queues, one_after_another) == ({"webhooks": 0}, {"the dead letters of usage": gone})
