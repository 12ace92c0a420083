"""Hostile text in every field that the page shows: it is shown as text, and nothing of it runs."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import FilePayload, Page, Response, Route, expect

from browser.layout import settle
from darkroom.domain.images.image import Failure, Status
from darkroom.domain.webhooks.delivery import DeliveryAttempt
from darkroom_client import Darkroom
from tests.local.local_stack import LocalStack
from tests.page.hostile import HOSTILE, MARKUP
from tests.page.uploads import card, choose, photo, send
from tests.page.visitor import Visitor
from tests.support.fakes.pictures import jpeg
from tests.support.planted import Account, clock, delivery, endpoint, image, plant, plant_webhook

pytestmark = pytest.mark.long

type Document = Any
type Place = tuple[str | int, ...]


def plant_hostile(stack: LocalStack, account: Account) -> dict[str, str]:
    """Rows with hostile text wherever one may have text; returns the screens that show them."""
    tenant = account.tenant_id
    failed = [
        image(
            tenant,
            number,
            status=Status.FAILED,
            preset=text,
            error=Failure(code=text, message=text, retryable=False),
            notices=(text, MARKUP),
        )
        for number, text in enumerate(HOSTILE)
    ]
    done = image(tenant, len(HOSTILE), preset=MARKUP, notices=HOSTILE, reference=MARKUP, tags=HOSTILE)
    plant(stack, [*failed, done])
    webhook = endpoint(tenant, url=f"https://receiver.example/{MARKUP}", description="".join(HOSTILE[:6]))
    attempts = [
        DeliveryAttempt(number=number, started_at=clock(), status=None, error=text, response=text)
        for number, text in enumerate(HOSTILE, start=1)
    ]
    plant_webhook(
        stack,
        webhook,
        [delivery(webhook, 0, event_type=MARKUP, attempts=tuple(attempts)), delivery(webhook, 1, attempts=())],
    )
    with Darkroom(stack.api_url, account.key) as darkroom:
        darkroom.create_batch(name=MARKUP, parallelism=2)
    return {
        "browse": "#/browse",
        "failed": f"#/images/{failed[0].image_id}",
        "done": f"#/images/{done.image_id}",
        "batches": "#/batches",
        "webhooks": "#/webhooks",
        "webhook": f"#/webhooks/{webhook.endpoint_id}",
    }


def open_everything(page: Page) -> None:
    """Opens what is closed, so that it is drawn too."""
    closed = page.locator("details:not([open]) > summary")
    while closed.count():
        closed.first.click()
    settle(page)


_MADE_OF_TEXT = (
    *("[onerror]", "[onload]", "[onfocus]", "iframe", "math", "template", "script:not([src])", "img[src='x']"),
    *("[href^='javascript' i]", "[href^='data' i]", "[src^='javascript' i]"),
)


def nothing_is_markup(page: Page) -> None:
    """No element of hostile text became one of the page, and no link leads to a script."""
    made = page.locator(", ".join(_MADE_OF_TEXT)).evaluate_all("(found) => found.map((one) => one.outerHTML)")
    assert made == []


def test_hostile_rows_are_shown_as_text(visitor: Visitor) -> None:
    screens = plant_hostile(visitor.stack, visitor.account)
    page = visitor.tab()
    for name, address in screens.items():
        page.goto(visitor.address + address)
        expect(page.get_by_role("heading", level=1).first).to_be_visible()
        settle(page)
        open_everything(page)
        expect(page.get_by_text(MARKUP, exact=False).first, name).to_be_attached()
        nothing_is_markup(page)


def test_hostile_file_names_are_shown_as_text(visitor: Visitor, tmp_path: Path) -> None:
    files: list[FilePayload] = [
        {"name": text.replace("/", "|"), "mimeType": "image/jpeg", "buffer": jpeg(64 + number, 48)}
        for number, text in enumerate(HOSTILE)
    ]
    bad: FilePayload = {"name": f"{MARKUP}.jpg", "mimeType": MARKUP, "buffer": b"no photo"}
    page = visitor.tab()
    choose(page, [*files, bad])
    expect(card(page, MARKUP).first).to_be_visible()
    with visitor.watch.expecting("status of 4"):
        send(page)
        expect(card(page, f"{MARKUP}.jpg")).to_contain_text("Save it as JPEG", timeout=120_000)
    choose(page, [photo(200, f"{MARKUP}2.jpg")])
    page.get_by_label("What to make").select_option("avatar")
    page.get_by_role("button", name=f"Adjust crop of {MARKUP}2.jpg", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text(MARKUP)
    nothing_is_markup(page)


def places_of(document: Document, place: Place = ()) -> Iterator[Place]:
    """Where the document has a value that is no list and no object."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from places_of(value, (*place, name))
    elif isinstance(document, list):
        for index, value in enumerate(document[:1]):
            yield from places_of(value, (*place, index))
    else:
        yield place


def with_text(document: Document, place: Place, text: str) -> Document:
    changed = copy.deepcopy(document)
    if not place:
        return text
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = text
    return changed


def is_answer(response: Response) -> bool:
    return response.request.resource_type == "fetch" and not urlsplit(response.url).path.startswith("/app/")


@pytest.mark.parametrize("screen", ["browse", "failed", "done", "batches", "webhooks", "webhook", "reference"])
def test_hostile_answers_are_shown_as_text(visitor: Visitor, screen: str) -> None:
    address = {**plant_hostile(visitor.stack, visitor.account), "reference": "#/api"}[screen]
    page = visitor.tab()
    settle(page)
    answers: dict[str, Document] = {}

    def keep(response: Response) -> None:
        if is_answer(response) and response.status == 200:
            answers.setdefault(urlsplit(response.url).path, response.json())

    page.on("response", keep)
    page.goto(visitor.address + address)
    page.reload()
    settle(page)
    page.remove_listener("response", keep)
    assert answers
    # A hostile cursor or id is sent back as it came, and its answer may come late.
    with visitor.watch.expecting("status of 40[04]"):
        for path, document in answers.items():
            places = sorted(set(places_of(document)), key=str)
            for number, place in enumerate(places if len(places) < 60 else places[:: len(places) // 60]):
                lie = with_text(document, place, HOSTILE[number % len(HOSTILE)])
                serve(page, path, 200, lie)
                page.reload()
                page.wait_for_function("() => document.querySelector('main .starting') === null")
                nothing_is_markup(page)
                page.unroute_all()
        settle(page)


def test_hostile_problems_are_shown_as_text(visitor: Visitor) -> None:
    page = visitor.tab()
    for status in (400, 404, 409, 413, 422, 500):
        problem = {
            **dict.fromkeys(("type", "title", "detail", "code", "correlation_id", "instance"), MARKUP),
            "errors": [{"field": MARKUP, "message": text} for text in HOSTILE],
        }
        for address, path in (("#/browse", "/images"), ("#/batches", "/batches"), ("#/webhooks", "/webhooks")):
            serve(page, path, status, problem)
            with visitor.watch.expecting(f"status of {status}"):
                page.goto(visitor.address + address)
                page.reload()
                expect(page.locator("main")).not_to_contain_text("Loading")
                settle(page)
            nothing_is_markup(page)
            page.unroute_all()


def serve(page: Page, path: str, status: int, document: Document) -> None:
    """From now on that path has this answer."""

    def answer(route: Route) -> None:
        route.fulfill(status=status, content_type="application/json", body=json.dumps(document))

    page.route(lambda address: urlsplit(address).path == path, answer)
