"""Browsing: a gallery of a thousand images, one image and what can be done with it, batches, webhooks, deliveries."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from browser import axe
from browser.layout import settle, what_sticks_out
from browser.tabs import NARROW, WIDE
from darkroom.domain.images.image import Image, Status
from darkroom.domain.images.listing import LISTED_STATUSES
from darkroom.domain.webhooks.delivery import DeliveryStatus
from darkroom_client import Darkroom
from tests.page.uploads import images_of
from tests.page.visitor import Visitor
from tests.support.planted import clock, delivery, endpoint, image, plant, plant_webhook

pytestmark = pytest.mark.long

GALLERY = 1000
MOST_NODES = 2500


def gallery(page: Page) -> Locator:
    return page.get_by_role("list", name="Images, newest first")


def plant_images(visitor: Visitor, count: int) -> None:
    tenant = visitor.account.tenant_id
    failed = Status.FAILED
    plant(
        visitor.stack,
        [image(tenant, number, status=failed if number % 10 == 3 else Status.DONE) for number in range(count)],
    )


def test_a_gallery_of_a_thousand_is_scrolled_to_its_end_with_few_elements(visitor: Visitor) -> None:
    plant_images(visitor, GALLERY)
    page = visitor.tab("#/browse")
    expect(gallery(page).get_by_role("listitem").first).to_be_visible()
    most = 0
    for _ in range(400):
        page.mouse.move(700, 500)
        page.mouse.wheel(0, 2000)
        page.wait_for_timeout(30)
        most = max(most, page.evaluate("() => document.querySelectorAll('*').length"))
        if page.get_by_text(f"That is all: {GALLERY:,} images.").is_visible():
            break
    expect(page.get_by_text(f"That is all: {GALLERY:,} images.")).to_be_visible()
    assert most <= MOST_NODES
    # Back at the top, pictures are there, and a link leads to its image and back to its place.
    page.keyboard.press("Control+Home")
    first = gallery(page).get_by_role("link").first
    expect(first.locator("img")).to_have_js_property("complete", True)
    expect(first.locator("img")).to_be_visible()
    first.click()
    expect(page.get_by_role("heading", level=1, name="Image")).to_be_visible()
    page.go_back()
    expect(gallery(page)).to_be_visible()


def test_what_is_unfinished_has_its_name_or_id_its_failed_attempts_and_the_apis_word_for_its_status(
    visitor: Visitor,
) -> None:
    tenant = visitor.account.tenant_id
    nothing: dict[str, Any] = {"completed_at": None, "completed_version": None}
    in_three_minutes = clock() + 3 * 60_000
    waiting, fetching, working, failed = rows = (
        image(tenant, 1, status=Status.PENDING, attempt=2, **nothing),
        image(tenant, 2, status=Status.FETCHING, attempt=3, not_before=in_three_minutes, **nothing),
        image(tenant, 3, status=Status.PROCESSING, attempt=1, **nothing),
        image(tenant, 4, status=Status.FAILED, attempt=5),
    )
    plant(visitor.stack, rows)
    page = visitor.tab("#/browse")
    page.evaluate(_REMEMBER, [waiting.image_id, "beach.jpg"])
    page.reload()

    def tile(row: Image) -> Locator:
        return gallery(page).get_by_role("listitem").filter(has=page.locator(f"a[href='#/images/{row.image_id}']"))

    expect(tile(waiting)).to_contain_text("2 of 5 attempts failed.")
    expect(tile(waiting)).to_contain_text("beach.jpg")
    expect(tile(fetching)).to_contain_text("3 of 10 attempts failed, the next begins in 3 min.")
    expect(tile(working)).not_to_contain_text("attempts failed")
    for row in (fetching, working, failed):
        expect(tile(row)).to_contain_text(row.image_id)
    for row in rows:
        expect(tile(row).locator(".status")).to_have_text(row.status.value)
    colours = [tile(row).locator(".status").evaluate("(one) => getComputedStyle(one).color") for row in rows]
    assert colours[1] == colours[2] and len(set(colours)) == 3  # they wait, are in work, or failed


def test_a_filter_shows_only_its_statuses(visitor: Visitor) -> None:
    plant_images(visitor, 40)
    page = visitor.tab("#/browse")
    page.get_by_role("group", name="Show only").get_by_text("failed").click()
    expect(page.get_by_text("That is all: 4 images.")).to_be_visible()
    words = page.get_by_role("group", name="Show only").locator(".status").all_inner_texts()
    assert sorted(words) == sorted(status.replace("_", " ") for status in LISTED_STATUSES)
    expect(gallery(page).get_by_role("listitem")).to_have_count(4)
    page.get_by_role("link", name="Show all").click()
    expect(page.get_by_text("That is all: 40 images.")).to_be_visible()


def test_an_image_is_deleted_after_a_question(visitor: Visitor) -> None:
    plant_images(visitor, 3)
    page = visitor.tab("#/browse")
    gallery(page).get_by_role("link").first.click()
    page.get_by_role("button", name="Delete image…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Delete image…").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Delete image…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Image was deleted")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    page.get_by_role("link", name="Back to all images").click()
    expect(page.get_by_text("That is all: 2 images.")).to_be_visible()
    assert len(images_of(visitor)) == 2


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_images_are_selected_and_deleted_together(visitor: Visitor, width: int) -> None:
    plant_images(visitor, 5)
    page = visitor.tab("#/browse", width=width)
    page.get_by_role("button", name="Select").click()
    boxes = gallery(page).get_by_role("checkbox")
    boxes.nth(1).click()
    boxes.nth(2).click()
    boxes.nth(3).focus()
    page.keyboard.press("Space")
    boxes.nth(1).click()  # and not this one
    expect(page.get_by_text("2 selected")).to_be_visible()
    assert axe.findings(page) == []
    assert what_sticks_out(page) == []
    kept = [images_of(visitor)[at]["id"] for at in (0, 1, 4)]
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("That is all: 3 images.")).to_be_visible()
    assert [image["id"] for image in images_of(visitor)] == kept
    gallery(page).get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1, name="Image")).to_be_visible()


def test_a_list_that_is_whole_is_not_read_again_for_each_filter(visitor: Visitor) -> None:
    plant_images(visitor, 40)
    page = visitor.tab("#/browse")
    expect(page.get_by_text("That is all: 40 images.")).to_be_visible()
    reads: list[str] = []
    page.on("request", lambda request: reads.append(request.url) if "/images?" in request.url else None)
    for status, images in (("failed", 4), ("done", 40), ("failed", 36)):
        page.get_by_role("group", name="Show only").get_by_text(status).click()
        expect(page.get_by_text(f"That is all: {images} images.")).to_be_visible()
    assert reads == []
    # What it shows is looked at again all the same.
    with page.expect_request("**/images?*status=done*"):
        pass


def test_browsing_begins_with_the_newest_except_after_one_of_its_images(visitor: Visitor) -> None:
    plant_images(visitor, 200)
    page = visitor.tab("#/browse")
    page.mouse.move(700, 500)
    expect(gallery(page).get_by_role("link").first).to_be_visible()
    page.mouse.wheel(0, 1500)
    page.wait_for_function("() => scrollY > 1000")
    gallery(page).get_by_role("link").nth(20).click()
    page.get_by_role("link", name="All images").click()
    page.wait_for_function("() => scrollY > 1000")
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Webhooks").click()
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Browse").click()
    expect(gallery(page).get_by_role("link").first).to_be_visible()
    assert page.evaluate("() => scrollY") == 0


def test_a_scheduled_image_gets_another_time(visitor: Visitor) -> None:
    now = clock()
    scheduled = image(
        visitor.account.tenant_id,
        0,
        status=Status.SCHEDULED,
        attempt=0,
        process_at=now + 2 * 86_400_000,
        completed_at=None,
        completed_version=None,
    )
    plant(visitor.stack, [scheduled])
    page = visitor.tab(f"#/images/{scheduled.image_id}")
    page.get_by_label("New time").fill(page.evaluate(_IN_DAYS, 9))
    page.get_by_role("button", name="Reschedule").click()
    expect(page.locator("form").get_by_text("Moved to ")).to_be_visible()
    expect(page.get_by_text("in 9 days").first).to_be_visible()
    (listed_image,) = images_of(visitor)
    assert listed_image["status"] == "scheduled"
    moved: str = listed_image["process_at"]
    assert moved[:10] == page.evaluate(_IN_DAYS, 9)[:10]


def test_an_image_has_the_name_of_its_file(visitor: Visitor) -> None:
    plant_images(visitor, 4)
    page = visitor.tab("#/browse")
    first, second = (images_of(visitor)[at]["id"] for at in (0, 3))
    page.evaluate(
        "(names) => localStorage.setItem('darkroom.names', JSON.stringify(names))",
        [[first, "sunset.jpg"], [second, "trip/no photo.txt"]],
    )
    page.reload()
    expect(gallery(page).get_by_role("link", name="sunset.jpg, done, ")).to_be_visible()
    without_picture = gallery(page).get_by_role("link", name="trip/no photo.txt, failed, ")
    expect(without_picture.locator(".tile")).to_contain_text("This file is no image of a known format.")
    gallery(page).get_by_role("link", name="sunset.jpg").click()
    expect(page.get_by_role("heading", level=1, name="sunset.jpg")).to_be_visible()
    # It is fetched although the browser has it already, as an answer that allows no other origin.
    expect(page.get_by_role("img").first).to_have_js_property("complete", True)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download thumb").click()
    assert saved.value.suggested_filename.startswith("sunset-thumb.")
    page.get_by_role("button", name="Delete image…").click()
    expect(page.get_by_role("dialog", name="Delete sunset.jpg?")).to_contain_text("This cannot be undone.")


def test_images_stay_while_the_service_asks_to_wait(visitor: Visitor) -> None:
    plant_images(visitor, 12)
    page = visitor.tab("#/browse")
    expect(page.get_by_text("That is all: 12 images.")).to_be_visible()
    busy = {"type": "about:blank", "title": "Too many requests", "status": 429, "code": "too_many_requests"}
    page.route(
        "**/images?*status=*",
        lambda route: route.fulfill(
            status=429, headers={"Retry-After": "50"}, content_type="application/json", body=json.dumps(busy)
        ),
    )
    with visitor.watch.expecting("status of 429"):
        page.get_by_role("group", name="Show only").get_by_text("failed").click()
        expect(page.get_by_text("One moment: the service asks to wait").first).to_be_visible()
    expect(gallery(page).get_by_role("listitem")).to_have_count(1)


_IN_DAYS = "(days) => new Date(Date.now() + days * 86400000).toISOString().slice(0, 16)"


def test_a_batch_is_followed_and_closed(visitor: Visitor) -> None:
    with Darkroom(visitor.stack.api_url, visitor.account.key) as darkroom:
        batch = darkroom.create_batch(name="catalogue")
    page = visitor.tab("#/batches")
    item = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="catalogue"))
    expect(item.get_by_role("progressbar", name="Images of catalogue that have ended")).to_be_visible()
    expect(item).to_contain_text("No images yet.")
    item.get_by_role("button", name="Close catalogue").click()
    expect(item.get_by_role("button", name="Close catalogue")).to_have_count(0)
    with Darkroom(visitor.stack.api_url, visitor.account.key) as darkroom:
        assert darkroom.batch(batch["id"])["closed_at"] is not None
    settle(page)


def test_a_delivery_is_sent_again(visitor: Visitor) -> None:
    webhook = endpoint(visitor.account.tenant_id)
    # Minutes old: one that was tried a moment ago is not sent again.
    plant_webhook(visitor.stack, webhook, [delivery(webhook, number) for number in range(10, 13)])
    page = visitor.tab("#/webhooks")
    page.get_by_role("link", name=f"Deliveries to {webhook.url}").click()
    first = page.locator(".delivery").first
    expect(first).to_contain_text("failed")
    first.locator("summary").click()
    expect(first).to_contain_text("out of order")
    first.get_by_role("button", name="Send again…").click()
    with page.expect_response("**/resend") as answered:
        page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    assert answered.value.status == 202
    expect(first).not_to_contain_text("failed")
    settle(page)


def test_a_delivered_one_says_that_the_server_has_had_it(visitor: Visitor) -> None:
    webhook = endpoint(visitor.account.tenant_id)
    plant_webhook(visitor.stack, webhook, [delivery(webhook, 0, status=DeliveryStatus.DELIVERED)])
    page = visitor.tab(f"#/webhooks/{webhook.endpoint_id}")
    page.locator(".delivery summary").click()
    page.get_by_role("button", name="Send again…").click()
    expect(page.get_by_role("dialog")).to_contain_text("it has already had it")


def test_what_is_under_way_is_said_on_its_button(visitor: Visitor) -> None:
    plant_images(visitor, 1)
    page = visitor.tab("#/browse")
    gallery(page).get_by_role("link").first.click()
    held: list[Route] = []
    page.route(
        "**/images/*", lambda route: held.append(route) if route.request.method == "DELETE" else route.continue_()
    )
    page.get_by_role("button", name="Delete image…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("button", name="Deleting…")).to_be_disabled()
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    expect(page.get_by_role("heading", level=1, name="Image was deleted")).to_be_visible()


def test_own_uploads_are_shown_without_being_asked_for_and_those_of_others_are_offered(visitor: Visitor) -> None:
    tenant = visitor.account.tenant_id
    plant(visitor.stack, [image(tenant, number) for number in range(10, 13)])
    page = visitor.tab("#/browse")
    expect(page.get_by_text("That is all: 3 images.")).to_be_visible()
    own, other = image(tenant, 1), image(tenant, 2)
    page.evaluate(_REMEMBER, [own.image_id, "mine.jpg"])
    plant(visitor.stack, [own, other])
    expect(gallery(page).get_by_role("link", name="mine.jpg, done, ")).to_be_visible()
    page.get_by_role("button", name="1 new image: show").click()
    expect(page.get_by_text("That is all: 5 images.")).to_be_visible()


_REMEMBER = """async ([id, name]) => {
    const { rememberName } = await import(new URL("core.js", document.querySelector("script[type=module]").src));
    rememberName(id, name);
}"""


def test_on_a_phone_the_statuses_are_folded_away_and_can_be_chosen(visitor: Visitor) -> None:
    plant_images(visitor, 20)
    page = visitor.tab("#/browse", width=NARROW)
    expect(page.get_by_text("That is all: 20 images.")).to_be_visible()
    failed = page.get_by_role("group", name="Show only").get_by_text("failed")
    expect(failed).to_be_hidden()
    page.get_by_text("Show only").click()
    failed.click()
    expect(page.get_by_text("That is all: 2 images.")).to_be_visible()


_LIST = """async () => {
    const { ImageList } = await import(
        new URL("screens/browse/list.js", document.querySelector("script[type=module]").src));
    const image = (number, status = "done") => (
        { id: `i${number}`, created_at: String(1000 - number), status, run: 1, variants: [], thumb: null });
    const asked = []; // cursors of pages, ids of images
    const answers = { "": { images: [image(5), image(6)], next: "second" },
        second: { images: [image(7, "processing"), image(8)], next: null } };
    window.fetch = async (address) => {
        const { pathname, searchParams } = new URL(address, location);
        const name = pathname === "/images" ? (searchParams.get("cursor") ?? "") : pathname.split("/").at(-1);
        asked.push(name);
        const answer = await answers[name];
        if (answer === undefined) throw new TypeError("nothing answers");
        return new Response(JSON.stringify(answer), { status: answer.status > 400 ? answer.status : 200 });
    };
    const list = new ImageList("");
    await list.more();
    SCENE
}"""


def scene(visitor: Visitor, script: str) -> Any:
    """What comes of a list of two pages, of which the first is read."""
    page = visitor.tab()
    return page.evaluate(_LIST.replace("SCENE", script))


def test_pages_are_looked_at_in_turn_and_a_refused_one_is_the_next_again(visitor: Visitor) -> None:
    script = """
    await list.more();
    const visible = list.images;
    await list.look(visible, false);
    const second = answers.second;
    answers.second = { status: 429, code: "too_many_requests" };
    await list.look(visible, false).catch(() => asked.push("refused"));
    answers.second = second;
    for (const _ of [1, 2]) await list.look(visible, false);
    return asked;
    """
    assert scene(visitor, script) == ["", "second", "", "second", "refused", "second", ""]


def test_an_image_in_view_that_has_ended_is_not_asked_for_any_more(visitor: Visitor) -> None:
    script = """
    answers[""] = { images: [image(5, "processing")], next: null };
    await list.refresh(list.pages[0]);
    const visible = [...list.images];
    answers[""] = { images: [image(1), image(2)], next: "second" };
    answers.i5 = image(5);
    for (const _ of [1, 2, 3]) await list.look(visible, false);
    return asked.filter((name) => name === "i5");
    """
    assert scene(visitor, script) == ["i5"]


def test_older_images_that_come_after_the_list_has_begun_again_leave_no_hole(visitor: Visitor) -> None:
    script = """
    const { promise, resolve } = Promise.withResolvers();
    const second = answers.second;
    answers.second = promise;
    const older = list.more();
    answers[""] = { images: [image(1), image(2)], next: "between" };
    await list.refresh(list.pages[0]);
    await list.showFresh();
    resolve(second);
    await older;
    answers.between = { images: [image(3), image(5)], next: "second" };
    await list.more();
    return list.images.map(({ id }) => id);
    """
    assert scene(visitor, script) == ["i1", "i2", "i3", "i5"]


def test_an_address_that_could_not_be_renewed_is_asked_for_again(visitor: Visitor) -> None:
    script = """
    for (const _ of [1, 2]) await list.renew(list.images[0]);
    answers.i5 = image(5);
    for (const _ of [1, 2]) await list.renew(list.images[0]);
    return asked.filter((name) => name === "i5").length;
    """
    assert scene(visitor, script) == 3
