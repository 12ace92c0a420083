"""The archiver: keeps dead letters that SQS is about to delete, once, with everything known about them."""

from __future__ import annotations

from collections import Counter

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.lanes import LANES
from tests.support.dead_letters import DAY, FAILED, DeadLetterWorld, given_up
from tests.support.faults import failing


def test_dead_letters_that_near_their_fourteen_days_are_copied_once_and_stay() -> None:
    world = DeadLetterWorld()
    old = world.place(FAILED, sent_at=world.now - 12 * DAY * 1000 - 1)
    world.place(given_up(2), sent_at=world.now - 12 * DAY * 1000)
    first = world.archive_all()
    assert first.outcomes == Counter(archived=1, too_young=1)
    assert first.oldest_seconds == dict.fromkeys(LANES, 0.0) | {"slow": 12 * DAY + 0.001}
    assert world.archive_all().outcomes == Counter(kept_before=1, too_young=1)
    ((key, document),) = world.archive.objects.items()
    assert key == f"slow/2026-11-09/{old.message_id}.json"
    assert document["body"] == old.body
    (attempt,) = document["explanation"]["attempts"]
    assert (attempt["error_type"], "boom" in str(document)) == ("ZeroDivisionError", False)
    assert (document["verdict"], document["image"]["status"]) == ("failed", "failed")
    assert len(world.dead_letters.messages["slow"]) == 2 and world.in_hand == set()


def test_a_dead_letter_that_nobody_can_read_is_archived_as_it_is() -> None:
    world = DeadLetterWorld()
    world.dead_letters.add("fast", "\x00 no message")
    assert world.archive_all().outcomes == Counter(archived=1)
    ((_, document),) = world.archive.objects.items()
    assert (document["body"], document["explanation"], document["image"]) == ("\x00 no message", None, None)


def test_a_queue_that_does_not_answer_keeps_no_other_from_being_archived() -> None:
    world = DeadLetterWorld()
    world.place(FAILED, sent_at=0)
    world.dead_letters = failing(world.dead_letters, "take", Retryable("throttled"), lambda queue, _: queue == "fast")
    archiving = world.archive_all()
    assert (list(archiving.problems), archiving.outcomes) == (["fast"], Counter(archived=1))


def test_an_archiver_whose_time_runs_out_says_so() -> None:
    world = DeadLetterWorld(stopped=True)
    world.place(FAILED, sent_at=0)
    assert str(world.archive_all().problems["slow"]) == "time ran out"


def test_a_dead_letter_that_trips_a_bug_keeps_no_other_from_being_archived() -> None:
    world = DeadLetterWorld()
    world.place(FAILED, sent_at=0)
    world.place(given_up(2), sent_at=0)
    world.images = failing(world.images, "get", KeyError("recipe"), lambda image_id: image_id == FAILED.image_id)
    archiving = world.archive_all()
    assert (list(archiving.problems), archiving.outcomes["archived"]) == (["slow"], 1)


@pytest.mark.guards("unreadable-dead-letter-isolated")
def test_a_dead_letter_whose_row_is_unreadable_is_archived_with_what_it_says_itself() -> None:
    world = DeadLetterWorld()
    world.place(FAILED, sent_at=0)
    world.images.unreadable[FAILED.image_id] = world.images.rows.pop(FAILED.image_id)
    world.place(given_up(2), sent_at=0)
    archiving = world.archive_all()
    assert (archiving.problems, archiving.outcomes) == ({}, Counter(archived=2, too_young=0))
    first = next(document for document in world.archive.objects.values() if document["image"] is None)
    assert (first["verdict"], first["explanation"]["cause"]) == ("unreadable_row", "internal")
    assert "newer version" in first["problem"]
