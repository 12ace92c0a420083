"""The queue message, version 1."""

import json

import pytest

from darkroom.domain.kernel.message import Message, UnreadableMessage, read_message

BODY = {"v": 1, "image_id": "0" * 26, "tenant_id": "default", "lane": "slow", "run": 1, "schedule": 0}


def test_a_message_survives_the_queue() -> None:
    message = Message(image_id="0" * 26, tenant_id="default", lane="slow", run=1, schedule=0)
    assert read_message(message.model_dump_json()) == message
    assert json.loads(message.model_dump_json()) == BODY, "what other versions of Darkroom read must not move"


def test_a_message_is_a_reference_far_under_4_kb() -> None:
    longest = Message(image_id="7" + "z" * 25, tenant_id="t" * 128, lane="l" * 32, run=10**9, schedule=10**9)
    assert len(longest.model_dump_json()) < 512


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"v": 2}, "v"),
        ({"image_id": "../../etc/passwd"}, "image_id"),
        ({"image_id": "0" * 26 + "\n"}, "image_id"),
        ({"run": 0}, "run"),
        ({"run": "1"}, "run"),
        ({"schedule": -1}, "schedule"),
        ({"tenant_id": ""}, "tenant_id"),
        ({"payload": "x"}, "payload"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], field: str) -> None:
    with pytest.raises(UnreadableMessage, match=field):
        read_message(json.dumps({**BODY, **change}))


@pytest.mark.parametrize("body", ["", "null", "[]", "{", "\ud800"])
def test_what_is_no_message_is_unreadable(body: str) -> None:
    with pytest.raises(UnreadableMessage):
        read_message(body)


@pytest.mark.parametrize("field", sorted(BODY.keys() - {"v"}))
def test_a_missing_field_is_named(field: str) -> None:
    with pytest.raises(UnreadableMessage, match=field):
        read_message(json.dumps({name: value for name, value in BODY.items() if name != field}))
