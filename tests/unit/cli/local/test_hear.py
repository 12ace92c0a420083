"""The event of a photo, as a program receives it that believes only what is signed."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from rich.console import Console

from darkroom.domain.events.event import ReceivedEvent, read_event
from darkroom_cli.local import hear
from darkroom_cli.webhooks.forward import Forwarder, NotAnswered
from tests.unit.cli.published_events import event, text_of

STACK: Any = object()


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of the events that the stack publishes; after the last one there is nothing until time is up."""
    texts: list[str] = []

    @contextmanager
    def following(
        stack: object, *, tenant: str | None, types: Sequence[str], stop: Callable[[], bool]
    ) -> Iterator[Iterator[tuple[ReceivedEvent, str]]]:
        assert (stack, tenant, types) == (STACK, None, ["image.done"])

        def events() -> Iterator[tuple[ReceivedEvent, str]]:
            for text in texts:
                yield read_event(text), text
            while not stop():
                pass

        yield events()

    monkeypatch.setattr(hear, "following", following)
    monkeypatch.setattr(hear, "_TIMEOUT_SECONDS", 0.0)
    return texts


def shown(image_id: str) -> tuple[bool, str]:
    out = Console(file=io.StringIO(), width=200)
    with hear.hearing(STACK, out) as show_event_of:
        has_come = show_event_of(image_id)
    assert isinstance(out.file, io.StringIO)
    return has_come, out.file.getvalue()


def test_the_photos_own_event_is_received_and_shown(published: list[str]) -> None:
    published += [text_of(event(1)), text_of(event(2))]
    has_come, text = shown(event(2).subject)
    assert has_come
    assert text.splitlines()[0] == "Received as a webhook, with a valid signature:"
    assert text.splitlines()[1].startswith(f"  2026-11-23T09:00:02.417Z  image.done       {event(2).subject}  acme")
    assert event(1).subject not in text


def test_an_event_that_does_not_come_is_told(published: list[str]) -> None:
    published += [text_of(event(1))]
    assert shown(event(2).subject) == (False, "No webhook came: no event within 0 seconds.\n")


def test_an_event_that_its_receiver_refuses_is_told(published: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    published += [text_of(event(1))]
    monkeypatch.setattr(hear, "Forwarder", lambda url, secret: Forwarder(url, secret[::-1]))
    has_come, text = shown(event(1).subject)
    assert not has_come
    assert text.startswith("No webhook came: its receiver answered 401")


def test_an_event_that_cannot_be_sent_is_told(published: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    published += [text_of(event(1))]

    def fail(*_: object) -> None:
        raise NotAnswered("it cannot be reached.")

    monkeypatch.setattr(Forwarder, "send", fail)
    assert shown(event(1).subject) == (False, "No webhook came: it cannot be reached.\n")
