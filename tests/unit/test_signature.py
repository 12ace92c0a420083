"""Signatures of messages: what they cover, and what is made of a message that does not verify."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.dead_letters.rejection import KEPT_CHARACTERS, read_rejected_message, rejected_message
from darkroom.domain.images.image import message_for
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.signature import (
    SETTLING_SECONDS,
    UPDATE_SECONDS,
    NotVerified,
    Received,
    Signature,
    VerificationFailure,
    read_signature,
    sign,
)
from darkroom.operations.kernel.check_message import CheckPorts, check_message
from tests.support.fakes import FakeDeadLetters
from tests.support.fakes.messages import KEYS, NOW, keys_of, received, signature_in, unsigned
from tests.support.fakes.secrets import LONG_AGO, FakeSecret
from tests.support.images import pending

MESSAGE = message_for(pending())
GENUINE = received("slow", MESSAGE)
PARTS = {"secret": "s" * 64, "queue": "slow", "group": "acme", "body": "{}"}


def check(
    message: Received, *, queue: str = "slow", keys: FakeSecret = KEYS, dead_letters: FakeDeadLetters | None = None
) -> VerificationFailure | None:
    rejected = FakeDeadLetters(messages={queue: []}) if dead_letters is None else dead_letters
    return check_message(CheckPorts(message_keys=keys, rejected_messages=rejected), queue, message)


# ── What is signed ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_signature_is_an_hmac_over_the_label_the_queue_the_group_and_the_body() -> None:
    covered = b"19:darkroom message v14:slow4:acme2:{}"
    expected = hmac.new(b"s" * 64, covered, hashlib.sha256).hexdigest()
    assert str(sign(key_id="the-key", **PARTS)) == f"v1.{expected}.the-key"


def test_a_signature_is_read_as_it_was_written() -> None:
    signature = sign(key_id="a.key-with/any chars", **PARTS)
    assert read_signature(str(signature)) == signature
    assert signature.covers(**PARTS)


@pytest.mark.guards("signatures-group-covered", case="group")
@pytest.mark.guards("signatures-queue-covered", case="queue")
@pytest.mark.parametrize("part", PARTS)
def test_a_signature_covers_every_part(part: str) -> None:
    assert not sign(key_id="k", **PARTS).covers(**PARTS | {part: PARTS[part] + "x"})


@pytest.mark.guards("signatures-parts-delimited")
@given(st.text("1:é", min_size=1, max_size=8), st.data())
def test_nothing_moves_from_one_part_to_the_next(text: str, data: st.DataObject) -> None:
    cuts = [sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2))) for _ in range(2)]
    parts = {(text[:first], text[first:second], text[second:]) for first, second in cuts}
    digests = {sign(key_id="k", secret="s", queue=queue, group=group, body=body).digest for queue, group, body in parts}
    assert len(digests) == len(parts)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v1",
        f"v2.{'0' * 64}.k",
        f"v1.{'0' * 63}.k",
        f"v1.{'A' * 64}.k",
        f"v1.{'0' * 64}.",
        f"v1.{'0' * 64}.{'k' * 65}",
    ],
)
def test_what_is_no_signature_of_this_version_is_told_from_one_that_does_not_match(text: str) -> None:
    with pytest.raises(NotVerified) as error:
        read_signature(text)
    assert error.value.mistrust is VerificationFailure.MALFORMED
    assert check(replace(GENUINE, signature=text)) is VerificationFailure.MALFORMED


# ── Which messages verify ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_that_was_sent_to_this_queue_verifies_however_old_it_is_and_makes_no_dead_letter() -> None:
    dead_letters = FakeDeadLetters()
    assert check(GENUINE, dead_letters=dead_letters) is None and dead_letters.messages["slow"] == []
    assert check(replace(GENUINE, sent_at=0)) is None
    assert check(replace(GENUINE, message_id="a copy")) is None


def test_a_message_whose_group_is_not_told_verifies_by_its_own_tenant() -> None:
    assert check(replace(GENUINE, group=None)) is None
    assert check(replace(received("slow", "no message of ours"), group=None)) is VerificationFailure.FORGED


@pytest.mark.guards("signatures-match-required")
@pytest.mark.parametrize(
    "forged",
    [
        replace(GENUINE, body=GENUINE.body + " "),
        replace(GENUINE, body=GENUINE.body.replace('"run":1', '"run":2')),
        replace(GENUINE, group="umbra"),
        received("fast", MESSAGE),
        received("hold", MESSAGE),
        replace(GENUINE, signature=str(Signature(key_id=KEYS.current().version_id, digest="0" * 64))),
    ],
    ids=["a space", "another run", "another group", "of another lane", "of the hold queue", "made up"],
)
def test_a_message_that_was_altered_or_copied_does_not(forged: Received) -> None:
    assert check(forged) is VerificationFailure.FORGED


@pytest.mark.guards("signatures-unsigned-rejected")
def test_a_message_without_a_signature_does_not() -> None:
    assert check(replace(GENUINE, signature=None)) is VerificationFailure.UNSIGNED


def test_both_keys_verify_and_no_older_one() -> None:
    keys = FakeSecret()
    first = received("slow", MESSAGE, signer=keys_of(keys))
    keys.replace("b" * 64, now=LONG_AGO + 1)
    second = received("slow", MESSAGE, signer=keys_of(keys))
    assert first.signature != second.signature
    assert (check(first, keys=keys), check(second, keys=keys)) == (None, None)
    keys.replace("c" * 64, now=LONG_AGO + 2)
    assert (check(first, keys=keys), check(second, keys=keys)) == (VerificationFailure.UNKNOWN_KEY, None)


@pytest.mark.guards("signatures-new-key-settling")
def test_a_new_key_signs_when_every_reader_knows_it() -> None:
    keys = FakeSecret()
    first, second = keys.current(), keys.replace("b" * 64, now=NOW)

    def signs(seconds: float) -> str:
        sent = keys_of(keys, NOW + int(1000 * seconds)).signed("slow", group="acme", body="{}")
        return read_signature(signature_in(sent)).key_id

    assert signs(0) == signs(SETTLING_SECONDS - 0.001) == first.version_id
    assert signs(SETTLING_SECONDS) == second.version_id


def test_the_first_key_signs_at_once() -> None:
    keys = FakeSecret()
    keys.versions = [replace(keys.versions[0], created_at=NOW)]
    assert check(received("slow", MESSAGE, signer=keys_of(keys, NOW)), keys=keys) is None


# ── The update that brings signatures ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("signatures-update-period-end")
def test_what_was_sent_until_the_update_was_over_needs_no_signature() -> None:
    first_key_at = KEYS.current().created_at
    old = replace(GENUINE, signature=None)
    for seconds, verdict in {
        -4 * 24 * 3600: None,
        0: None,
        UPDATE_SECONDS: None,
        UPDATE_SECONDS + 0.001: VerificationFailure.UNSIGNED,
    }.items():
        assert check(replace(old, sent_at=first_key_at + int(seconds * 1000))) is verdict


@pytest.mark.guards("signatures-after-rotation")
def test_after_the_first_key_nothing_comes_without_a_signature() -> None:
    keys = FakeSecret()
    keys.replace("b" * 64, now=NOW)
    assert check(replace(GENUINE, signature=None, sent_at=0), keys=keys) is VerificationFailure.UNSIGNED


# ── What becomes of the others ───────────────────────────────────────────────────────────────────────────────────────


def test_a_message_that_does_not_verify_becomes_a_dead_letter_that_says_why() -> None:
    dead_letters = FakeDeadLetters()
    assert check(unsigned('{"any": "thing"}'), dead_letters=dead_letters) is VerificationFailure.UNSIGNED
    (dead_letter,) = dead_letters.messages["slow"]
    assert json.loads(dead_letter.body) == {
        "v": 1,
        "rejected": '{"any": "thing"}',
        "message_id": "message-1",
        "sha256": hashlib.sha256(b'{"any": "thing"}').hexdigest(),
        "bytes": 16,
    }
    assert json.loads(dead_letter.explanation or "") == {
        "v": 1,
        "lane": "slow",
        "cause": "unsigned",
        "message": "It has no signature. No row was read or changed for it.",
    }


@pytest.mark.parametrize("mistrust", VerificationFailure)
def test_every_reason_is_explained(mistrust: VerificationFailure) -> None:
    dead_letters = FakeDeadLetters()
    other = FakeSecret()
    other.replace("b" * 64, now=LONG_AGO)
    message = {
        VerificationFailure.UNSIGNED: replace(GENUINE, signature=None),
        VerificationFailure.MALFORMED: replace(GENUINE, signature="v2.of a newer version"),
        VerificationFailure.UNKNOWN_KEY: received("slow", MESSAGE, signer=keys_of(other)),
        VerificationFailure.FORGED: received("fast", MESSAGE),
        VerificationFailure.MOVED_BACK: unsigned(rejected_message("message-0", "any").model_dump_json()),
    }[mistrust]
    assert check(message, dead_letters=dead_letters) is mistrust
    (dead_letter,) = dead_letters.messages["slow"]
    explanation = json.loads(dead_letter.explanation or "")
    assert explanation["cause"] == mistrust
    assert explanation["message"].endswith("No row was read or changed for it.")


@pytest.mark.guards("signatures-dead-letter-size")
def test_a_body_of_any_length_fits_into_a_dead_letter() -> None:
    body = '\x00é"' * 400_000
    rejected = rejected_message("message-1", body)
    assert (len(rejected.rejected), rejected.bytes) == (KEPT_CHARACTERS, len(body.encode()))
    assert rejected.sha256 == hashlib.sha256(body.encode()).hexdigest()
    assert len(rejected.model_dump_json()) < 50_000


@pytest.mark.guards("signatures-rejected-kept")
def test_what_was_rejected_is_kept_as_it_is_when_it_is_moved_back() -> None:
    first = rejected_message("message-1", "x" * 9000)
    again = rejected_message("message-2", first.model_dump_json())
    assert again == first
    assert read_rejected_message(again.model_dump_json()) == first
    assert read_rejected_message(GENUINE.body) is None


def test_if_no_key_can_be_read_the_message_comes_again_and_makes_no_dead_letter() -> None:
    dead_letters = FakeDeadLetters()
    for message in (GENUINE, replace(GENUINE, signature=None)):
        with pytest.raises(Retryable):
            check(message, keys=FakeSecret(is_down=True), dead_letters=dead_letters)
    assert dead_letters.messages["slow"] == []
