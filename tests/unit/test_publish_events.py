"""Publishing what the writes of rows have to tell."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from darkroom.domain.images.image import Image
from darkroom.domain.webhooks.endpoint import DisabledBy, disable
from darkroom.operations.events.publish_events import PublishEventsPorts, publish_events
from darkroom.ports.events import RowChange
from darkroom.ports.kernel import UnreadableRow
from tests.support.fakes.events import FakeTopic, FakeUnpublished
from tests.support.fakes.rows import accepted_image
from tests.support.faults import raising
from tests.support.webhooks import endpoint

NOW = 1_795_251_600_000


@dataclass
class Outlets:
    """Where events and what cannot be one go."""

    topic: FakeTopic = field(default_factory=FakeTopic)
    unpublished: FakeUnpublished = field(default_factory=FakeUnpublished)
    notices: Any = None

    def publish(self, *changes: RowChange) -> Any:
        ports = PublishEventsPorts(topic=self.topic, unpublished=self.unpublished, notices=self.notices)
        return publish_events(ports, changes)

    @property
    def published(self) -> list[str]:
        return [event.subject[-1] for event in self.topic.published]


def image(number: int) -> Image:
    return accepted_image(now=NOW, image_id=f"{number:026d}")


def change(number: int, **stated: Any) -> RowChange:
    row = image(number)
    usual: dict[str, Any] = {"subject": row.image_id, "version": 1, "before": None, "after": row}
    return RowChange(place=f"at {number}", **usual | stated)


@pytest.mark.guards("events-first-failure-counts", "events-stream-resume-place")
def test_after_an_outage_the_stream_begins_again_at_the_first_that_was_not_published() -> None:
    outlets = Outlets(topic=FakeTopic(throttled={image(2).image_id, image(4).image_id}))
    publishing = outlets.publish(*map(change, (1, 2, 3, 4)))
    assert (outlets.published, publishing.begin_again_at) == (["1", "3"], "at 2")
    assert "does not answer" in str(publishing.problem)
    assert publishing.published == {"image.accepted": 2}


def test_a_row_that_cannot_be_read_holds_up_no_other_and_is_noted() -> None:
    outlets = Outlets()
    unreadable = change(1, after=None, unreadable=UnreadableRow(image(1).image_id, "invented later"))
    publishing = outlets.publish(unreadable, change(2))
    assert (outlets.published, publishing.begin_again_at, len(publishing.set_aside)) == (["2"], None, 1)
    ((image_id, version, reason),) = outlets.unpublished.notes
    assert (image_id, version) == (image(1).image_id, 1)
    assert "invented later" in reason


@pytest.mark.guards("isolated-stream-write-bug")
def test_a_write_that_trips_a_bug_holds_up_no_other_and_is_noted() -> None:
    outlets = Outlets()
    nothing: Any = None
    publishing = outlets.publish(change(1, after=replace(image(1), source=nothing)), change(2))
    assert (outlets.published, publishing.begin_again_at, len(publishing.set_aside)) == (["2"], None, 1)
    assert outlets.unpublished.notes[0][2].startswith("AttributeError")


@pytest.mark.guards("events-unretryable-set-aside")
def test_an_event_that_the_topic_refuses_is_noted_once_and_holds_up_no_other() -> None:
    outlets = Outlets(topic=FakeTopic(refused={image(1).image_id}))
    publishing = outlets.publish(change(1), change(2))
    assert (outlets.published, publishing.begin_again_at, len(publishing.set_aside)) == (["2"], None, 1)
    assert outlets.unpublished.notes == [(image(1).image_id, 1, "the topic refuses it")]
    assert publishing.published == {"image.accepted": 1}


def test_what_cannot_be_noted_is_handed_over_again() -> None:
    outlets = Outlets(topic=FakeTopic(refused={image(2).image_id}), unpublished=FakeUnpublished(is_down=True))
    publishing = outlets.publish(change(1), change(2), change(3))
    assert (publishing.begin_again_at, len(publishing.set_aside)) == ("at 2", 0)


def test_the_first_problem_counts_whatever_its_kind() -> None:
    outlets = Outlets(
        topic=FakeTopic(refused={image(3).image_id}, throttled={image(2).image_id}),
        unpublished=FakeUnpublished(is_down=True),
    )
    assert outlets.publish(*map(change, (1, 2, 3))).begin_again_at == "at 2"


@pytest.mark.guards("events-single-outage-note")
def test_an_outage_of_hours_makes_no_note_after_note_of_what_comes_behind_it() -> None:
    outlets = Outlets(topic=FakeTopic(refused={image(1).image_id, image(3).image_id}, throttled={image(2).image_id}))
    changes = [change(number) for number in (1, 2, 3)]
    assert outlets.publish(*changes).begin_again_at == "at 2"
    for _ in range(5):
        assert not outlets.publish(*changes[1:]).set_aside
    outlets.topic.throttled.clear()
    assert list(outlets.publish(*changes[1:]).set_aside) == [1]
    assert [image_id for image_id, _, _ in outlets.unpublished.notes] == [image(1).image_id, image(3).image_id]


# ── Notices ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def disabling(number: int, by: DisabledBy) -> RowChange:
    row = endpoint(number)
    return change(number, before=row, after=disable(row, by, now=NOW), subject=row.endpoint_id)


EACH = [change(1), disabling(2, DisabledBy.CLIENT), disabling(3, DisabledBy.GONE), disabling(4, DisabledBy.FAILING)]


@pytest.mark.guards("webhook-notice-not-for-owner")
def test_the_operator_is_told_of_a_disabled_webhook_unless_its_owner_did_it() -> None:
    outlets = Outlets(notices=FakeTopic())
    assert outlets.publish(*EACH).begin_again_at is None
    assert outlets.notices.published == outlets.topic.published[2:]
    assert [event.data["disabled_by"] for event in outlets.notices.published] == ["gone", "failing"]
    assert len(Outlets().publish(*EACH).events) == 4, "without such a topic"


def test_a_notice_in_an_outage_comes_again_and_what_precedes_it_does_not() -> None:
    outlets = Outlets(notices=FakeTopic(throttled={endpoint(4).endpoint_id}))
    assert outlets.publish(*EACH).begin_again_at == "at 4"
    outlets = Outlets(topic=FakeTopic(throttled={endpoint(3).endpoint_id}), notices=FakeTopic())
    assert outlets.publish(*EACH).begin_again_at == "at 3"
    assert not outlets.notices.published, "they are handed over again"


@pytest.mark.guards("webhook-notice-holds-up-nothing")
def test_a_topic_of_notices_that_is_gone_or_refuses_holds_up_no_event_and_is_noted() -> None:
    outlets = Outlets(notices=FakeTopic(refused={endpoint(3).endpoint_id}))
    publishing = outlets.publish(*EACH)
    assert (publishing.begin_again_at, len(publishing.events), len(publishing.set_aside)) == (None, 4, 1)
    outlets.notices.publish_all = raising(PermissionError("not yours"))
    publishing = outlets.publish(*EACH)
    assert (publishing.begin_again_at, len(publishing.events), len(publishing.set_aside)) == (None, 4, 2)
    assert "the topic of notices: PermissionError: not yours" in outlets.unpublished.notes[-1][2]
