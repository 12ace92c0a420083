"""What the sweeper does with an image that is due."""

from dataclasses import replace

import pytest

from darkroom.domain.images.claim import Expire, GiveUp, NothingToDo, Park
from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.transitions import due_now
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.sweeping.due import DueAction, LookForUpload, Rescue, Wait, decide_due
from tests.support.images import NOW, awaiting, pending, processing


def look(image: Image, *, now: int, backlog: int = 0, releasing_until: int = 0, is_paused: bool = False) -> DueAction:
    return decide_due(
        image, now=now, backlog=backlog, releasing_until=releasing_until, service=LANES, is_paused=is_paused
    )


def test_a_due_image_is_rescued_at_pauses_that_double_up_to_an_hour() -> None:
    image, pauses = pending(due_at=NOW), []
    now = NOW
    for _ in range(8):
        rescue = look(image, now=now)
        assert isinstance(rescue, Rescue)
        assert rescue.image.due_at is not None and rescue.image.attempt == 0
        pauses.append((rescue.image.due_at - now) // 1000)
        image, now = rescue.image, rescue.image.due_at
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (pending(due_at=NOW + 1), "too_early"),
        (pending(due_at=None), "too_early"),
        (processing(due_at=NOW), "leased"),
        (pending(status=Status.DONE), "too_early"),
        (pending(status=Status.DONE, due_at=NOW), "terminal"),
        (awaiting(due_at=NOW + 1), "too_early"),
    ],
)
def test_what_is_not_due_is_left_alone(image: Image, reason: str) -> None:
    # The due index is eventually consistent: it may list an image that is no longer due.
    image = replace(image, due_at=None) if image.status is Status.DONE and image.due_at != NOW else image
    assert look(image, now=NOW) == NothingToDo(reason=reason)  # type: ignore[arg-type]


@pytest.mark.guards("due-no-message-in-backoff")
def test_an_image_that_backs_off_is_sent_no_message_that_could_begin_nothing() -> None:
    for image in (processing(lease_until=NOW - 1), pending()):
        duty = look(replace(image, due_at=NOW, not_before=NOW + 1), now=NOW)
        assert isinstance(duty, Wait) and duty.image.due_at == NOW + 1
        assert isinstance(look(duty.image, now=NOW + 1), Rescue)


def test_a_backlog_explains_a_wait_but_not_a_dead_worker() -> None:
    lost = processing(due_at=NOW, lease_until=NOW - 1, not_before=NOW)
    assert isinstance(look(lost, now=NOW, backlog=10**6), Rescue)


def test_a_scheduled_image_whose_message_could_not_be_sent_is_sent_and_then_looked_at_after_its_time() -> None:
    process_at = NOW + 86_400_000
    rescue = look(pending(status=Status.SCHEDULED, process_at=process_at, due_at=NOW), now=NOW)
    assert isinstance(rescue, Rescue)
    assert (rescue.image.due_at, rescue.image.rescues) == (process_at + 1_200_000, 0)
    assert rescue.image.enqueued_at == process_at


def test_releases_that_are_paced_are_not_overtaken() -> None:
    image = pending(status=Status.SCHEDULED, process_at=NOW - 1_200_000, enqueued_at=NOW - 1_200_000, due_at=NOW)
    wait = look(image, now=NOW, releasing_until=NOW + 1)
    assert isinstance(wait, Wait)
    assert wait.image.due_at == NOW + 60_001
    assert isinstance(look(image, now=NOW, releasing_until=NOW), Rescue)
    far = look(image, now=NOW, releasing_until=NOW + 10**9)
    assert isinstance(far, Wait) and far.image.due_at == NOW + 3_600_000


@pytest.mark.guards("due-unsent-not-behind-backlog", "due-unsent-not-behind-release")
@pytest.mark.parametrize("status", [Status.SCHEDULED, Status.PENDING])
def test_what_could_not_be_sent_waits_behind_nobody(status: Status) -> None:
    before = pending(status=status, process_at=NOW - 1)
    unsent = due_now(before, now=NOW)
    rescue = look(unsent, now=NOW, releasing_until=NOW + 10**9, backlog=10**6)
    assert isinstance(rescue, Rescue)
    assert rescue.image.enqueued_at == NOW, "from here on it is in its lane as others are"
    assert isinstance(look(rescue.image, now=NOW + 60_000, backlog=10**6), Wait)


@pytest.mark.parametrize("status", [Status.SCHEDULED, Status.PENDING])
def test_an_image_that_nobody_began_in_time_expires(status: Status) -> None:
    expired = look(pending(status=status, expires_at=NOW, due_at=NOW), now=NOW)
    assert isinstance(expired, Expire)
    assert expired.image.status is Status.EXPIRED


def test_no_look_is_put_off_beyond_an_images_expiry() -> None:
    rescue = look(pending(due_at=NOW, expires_at=NOW + 1_000), now=NOW)
    assert isinstance(rescue, Rescue)
    assert rescue.image.due_at == NOW + 1_000


def test_an_upload_that_should_be_here_is_looked_for_and_news_of_it_is_sent_at_pauses_that_double() -> None:
    duty = look(awaiting(due_at=NOW), now=NOW)
    assert isinstance(duty, LookForUpload)
    assert (duty.arrived.status, duty.arrived.due_at, duty.arrived.rescues) == (Status.AWAITING_UPLOAD, NOW + 60_000, 1)
    assert (duty.expired.status, duty.expired.due_at) == (Status.EXPIRED, None)
    again = look(duty.arrived, now=NOW + 60_000)
    assert isinstance(again, LookForUpload) and again.arrived.due_at == NOW + 180_000


def test_an_upload_that_nobody_wants_any_more_is_not_looked_for() -> None:
    assert isinstance(look(awaiting(due_at=NOW, expires_at=NOW), now=NOW), Expire)
    duty = look(awaiting(due_at=NOW, expires_at=NOW + 5), now=NOW)
    assert isinstance(duty, LookForUpload) and duty.arrived.due_at == NOW + 5


LOST = processing(due_at=NOW, lease_until=NOW - 1, not_before=NOW)


@pytest.mark.guards("pause-due-image-parked", "pause-parked-never-late")
@pytest.mark.parametrize(
    "image",
    [
        pending(due_at=NOW),
        pending(due_at=NOW, status=Status.SCHEDULED, process_at=NOW - 1),
        LOST,
        replace(LOST, expires_at=NOW - 1),
    ],
)
def test_an_image_that_is_paused_is_parked_for_an_hour_at_a_time_and_then_sent(image: Image) -> None:
    parked = look(image, now=NOW, is_paused=True)
    assert isinstance(parked, Park)
    assert parked.image == replace(image, parked=True, waiting_since=None, enqueued_at=None, due_at=NOW + 3_600_000)
    assert look(parked.image, now=NOW + 3_599_999) == NothingToDo(reason="too_early")
    again = look(parked.image, now=NOW + 3_600_000, is_paused=True)
    assert isinstance(again, Park) and again.image.due_at == NOW + 7_200_000
    sent = look(replace(again.image, due_at=NOW + 9), now=NOW + 9, backlog=10**6, releasing_until=NOW + 10**9)
    assert isinstance(sent, Rescue), "it waits behind nobody"
    assert (sent.image.parked, sent.image.waiting_since, sent.image.enqueued_at) == (False, NOW + 9, NOW + 9)
    assert (sent.image.status, sent.image.attempt, sent.image.due_at) == (image.status, image.attempt, NOW + 60_009)


def test_a_pause_keeps_nothing_from_ending_and_moves_nothing_that_is_ahead_or_not_here() -> None:
    for image, action in (
        (pending(due_at=NOW, expires_at=NOW), Expire),
        (processing(due_at=NOW, lease_until=NOW - 1, attempt=5), GiveUp),
        (awaiting(due_at=NOW), LookForUpload),
        (pending(due_at=NOW, status=Status.SCHEDULED, process_at=NOW + 1), Rescue),
    ):
        assert isinstance(look(image, now=NOW, is_paused=True), action)
    parked = look(pending(due_at=NOW, expires_at=NOW + 5), now=NOW, is_paused=True)
    assert isinstance(parked, Park) and parked.image.due_at == NOW + 5
