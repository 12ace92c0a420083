"""Every screen in both widths, light and dark: axe finds nothing, and nothing sticks out or is cut off."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from browser import axe
from browser.layout import settle, what_sticks_out
from darkroom.domain.images.image import Status
from darkroom_client import Darkroom
from tests.page.uploads import choose, photo
from tests.page.visitor import LOOKS, Visitor
from tests.support.planted import clock, delivery, endpoint, image, plant, plant_webhook

pytestmark = pytest.mark.long


def wrong_with(page: Page) -> list[str]:
    """What axe finds, and what does not fit."""
    settle(page)
    return [*axe.findings(page), *what_sticks_out(page)]


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_every_screen_is_accessible_and_fits(visitor: Visitor, width: int, dark: bool) -> None:
    tenant = visitor.account.tenant_id
    scheduled = image(
        tenant,
        1,
        status=Status.SCHEDULED,
        attempt=0,
        process_at=clock() + 2 * 86_400_000,
        completed_at=None,
        completed_version=None,
    )
    failed = image(tenant, 2, status=Status.FAILED)
    done = image(tenant, 3, notices=("The animation was reduced to its first frame",))
    plant(visitor.stack, [scheduled, failed, done, *(image(tenant, number) for number in range(4, 40))])
    webhook = endpoint(tenant, description="the shop's own server", url=f"https://receiver.example/{'long-' * 30}")
    plant_webhook(visitor.stack, webhook, [delivery(webhook, number) for number in range(3)])
    with Darkroom(visitor.stack.api_url, visitor.account.key) as darkroom:
        darkroom.create_batch(name="a-long-name-" * 16, parallelism=2)
    page = visitor.tab(width=width, dark=dark)
    screens: dict[str, tuple[str, Callable[[Page], None] | None]] = {
        "upload": ("#/", with_files),
        "upload with a recipe": ("#/", with_a_recipe),
        "browse": ("#/browse", None),
        "browse, nothing": ("#/browse?status=cancelled", None),
        "scheduled image": (f"#/images/{scheduled.image_id}", None),
        "failed image": (f"#/images/{failed.image_id}", None),
        "done image": (f"#/images/{done.image_id}", with_a_question),
        "batches": ("#/batches", with_a_question_of_a_batch),
        "webhooks": ("#/webhooks", with_a_new_one),
        "webhook": (f"#/webhooks/{webhook.endpoint_id}", with_open_details),
        "reference": ("#/api", None),
        "unknown": ("#/nowhere", None),
    }
    wrong: dict[str, list[str]] = {}
    for name, (address, prepare) in screens.items():
        page.goto(visitor.address + address)
        expect(page.get_by_role("heading", level=1).first, name).to_be_visible()
        wrong[name] = wrong_with(page)
        if prepare:
            prepare(page)
            wrong[f"{name}, then"] = wrong_with(page)
    assert {name: faults for name, faults in wrong.items() if faults} == {}


def with_files(page: Page) -> None:
    choose(page, [photo(100), photo(101, f"{'a-long-name-' * 12}.jpg"), photo(102, "日本語の写真.jpg")])
    page.get_by_label("What to make").select_option("avatar")
    expect(page.get_by_text("Ready to upload", exact=True)).to_have_count(3)
    page.get_by_label("At a date and time").check()
    assert wrong_with(page) == []
    page.get_by_role("button", name="Adjust crop of photo-100.jpg", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()


def with_a_recipe(page: Page) -> None:
    page.reload()
    choose(page, [photo(100)])
    page.get_by_label("What to make").select_option("A recipe of my own")
    expect(page.get_by_role("group", name="Variant 1")).to_be_visible()


def with_a_question(page: Page) -> None:
    page.get_by_role("button", name="Delete image…").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def with_a_question_of_a_batch(page: Page) -> None:
    page.get_by_role("button", name="Cancel a-long-name").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def with_a_new_one(page: Page) -> None:
    page.get_by_role("button", name="New webhook").click()


def with_open_details(page: Page) -> None:
    page.locator(".delivery summary").first.click()
