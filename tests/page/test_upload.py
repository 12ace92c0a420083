"""Uploads from the page: whatever happens to the network, the tab or the file, each photo becomes one image."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from PIL import Image
from playwright.sync_api import FilePayload, Page, Route, expect

from browser import axe
from browser.layout import settle
from darkroom.domain.kernel.instants import rfc3339
from tests.page.uploads import all_done, card, choose, delete_image, drop, images_of, photo, send, submissions, upload
from tests.page.visitor import Visitor
from tests.support.fakes.pictures import encoded, jpeg, opened, picture
from tests.support.planted import image as planted_image
from tests.support.planted import plant, planted_account
from tests.unit.egress.servers import answering, serving

pytestmark = pytest.mark.long

FOLDER = 50
LARGE_BYTES = 24_000_000

_NAME_OF = """async (id) => {
    const { nameOf } = await import(new URL("core.js", document.querySelector("script[type=module]").src));
    return nameOf(id);
}"""


def busy(status: int, *, seconds: int) -> dict[str, object]:
    """What the API answers when it wants a pause."""
    code = "too_many_requests" if status == 429 else "overloaded"
    problem = {"type": f"/problems/{code}", "title": "Too many requests", "status": status, "code": code}
    return {
        "status": status,
        "headers": {"Retry-After": str(seconds), "Content-Type": "application/problem+json"},
        "body": json.dumps({**problem, "detail": "Wait.", "correlation_id": "c"}),
    }


def test_a_dropped_folder_of_fifty_photos_is_developed(visitor: Visitor, tmp_path: Path) -> None:
    folder = tmp_path / "holiday"
    (folder / "day two").mkdir(parents=True)
    for number in range(FOLDER):
        place = folder / "day two" if number % 2 else folder
        (place / f"photo-{number}.jpg").write_bytes(jpeg(64 + number, 48))
    (folder / "notes.txt").write_text("no photo")
    page = visitor.tab()
    drop(page, [folder])
    send(page)
    all_done(page, FOLDER)
    images = images_of(visitor)
    assert len(images) == FOLDER
    assert {image["status"] for image in images} == {"done"}


def test_a_photo_is_taken_from_the_moment_at_which_the_page_invites_to_drop_one(visitor: Visitor) -> None:
    page = visitor.tab()
    page.add_init_script(_DRAGGING)
    page.reload()
    page.wait_for_function("() => window.wasTaken !== undefined")
    assert page.evaluate("() => window.wasTaken")


# Drags a file over the page as soon as the invitation is in it.
_DRAGGING = """new MutationObserver((_, observer) => {
    if (!document.querySelector(".upload-invitation")) return;
    observer.disconnect();
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["x"], "photo.jpg"));
    window.wasTaken = !dispatchEvent(new DragEvent("dragenter", { dataTransfer, cancelable: true, bubbles: true }));
}).observe(document, { childList: true, subtree: true });"""


def test_more_photos_than_a_page_of_the_list_are_followed_without_a_refusal_by_a_tenant_with_few_reads(
    visitor: Visitor,
) -> None:
    visitor.account = planted_account(visitor.stack, requests_per_second=20, burst=20)  # a page counts as 16
    page = visitor.tab()
    rows = [planted_image(visitor.account.tenant_id, number) for number in range(110)]
    plant(visitor.stack, rows)
    unsent = iter(rows)

    def accept(route: Route) -> None:
        row = next(unsent)
        document = {"id": row.image_id, "created_at": rfc3339(row.created_at), "status": "pending", "attempt": 0}
        route.fulfill(status=202, json={**document, "variants": [], "notices": [], "placeholder": None, "error": None})

    page.route(submissions(page), lambda route: accept(route) if route.request.method == "POST" else route.fallback())
    choose(page, [photo(number) for number in range(len(rows))])
    send(page)
    all_done(page, len(rows))


def test_pages_of_the_list_that_hold_no_watched_image_are_not_read_again(visitor: Visitor) -> None:
    page = visitor.tab()
    page.evaluate(_WATCHING)
    page.clock.install()
    for asked in (["", "second"], ["", "second", "second"]):
        page.evaluate("() => lookAgain()")
        for _ in range(4):
            page.clock.fast_forward(5_000)
        page.wait_for_function("() => items.every((item) => !item.isStale)")
        assert page.evaluate("() => asked") == asked


# Six images that are watched, all of them on the second page of the list.
_WATCHING = """async () => {
    const at = document.querySelector("script[type=module]").src;
    const { items } = await import(new URL("screens/upload/queue.js", at));
    const { lookAgain } = await import(new URL("screens/upload/watch.js", at));
    const page = (from, next) => ({ next, images: Array.from({ length: 6 }, (_, number) => ({ id: `i${from + number}`,
        created_at: String(100 - from - number), status: "done", variants: [], notices: [], thumb: null })) });
    const pages = { "": page(10, "second"), second: page(20, null) };
    Object.assign(window, { items, lookAgain, asked: [] });
    window.fetch = async (address) => {
        const cursor = new URL(address, location).searchParams.get("cursor") ?? "";
        asked.push(cursor);
        return new Response(JSON.stringify(pages[cursor]), { headers: { ETag: cursor } });
    };
    for (const image of pages.second.images) items.push({ stage: "accepted", image });
}"""


def test_a_chosen_folder_is_sent_too(visitor: Visitor, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"photo-{number}.jpg").write_bytes(jpeg(64 + number, 48))
    page = visitor.tab()
    page.get_by_label("Folder", exact=True).set_input_files(tmp_path)
    send(page)
    all_done(page, 3)
    assert len(images_of(visitor)) == 3


def test_a_file_of_24_megabytes_is_sent_by_form(visitor: Visitor, tmp_path: Path) -> None:
    body = jpeg(640, 480)
    (tmp_path / "large.jpg").write_bytes(body + bytes(LARGE_BYTES - len(body)))
    page = visitor.tab()
    upload(page, [tmp_path / "large.jpg"])
    (image,) = images_of(visitor)
    assert image["status"] == "done"
    sent = [request for request in visitor.watch.requests if request.method == "POST"]
    assert any(request.url.endswith("/uploads") for request in sent)
    assert not any("/images" in request.url for request in sent)


def test_a_form_that_breaks_off_is_sent_again(visitor: Visitor, tmp_path: Path) -> None:
    body = jpeg(640, 480)
    (tmp_path / "large.jpg").write_bytes(body + bytes(6_000_000))
    page = visitor.tab()
    lost: list[str] = []

    def lose_the_first(route: Route) -> None:
        if route.request.method == "POST" and not lost:
            lost.append(route.request.url)
            route.abort("connectionreset")
        else:
            route.fallback()

    page.route(f"{visitor.stack.record.aws_endpoint_url}/**", lose_the_first)
    choose(page, [tmp_path / "large.jpg"])
    with visitor.watch.expecting("ERR_CONNECTION_RESET"):
        send(page)
        all_done(page, 1)
    assert len(lost) == 1
    assert len(images_of(visitor)) == 1


def test_an_animation_is_kept_in_the_formats_that_move(visitor: Visitor) -> None:
    frames = [Image.new("RGB", (48, 32), colour) for colour in ("red", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=200, loop=0)
    page = visitor.tab()
    blink: FilePayload = {"name": "blink.gif", "mimeType": "image/gif", "buffer": file.getvalue()}
    choose(page, [blink])
    page.get_by_label("What to make").select_option("A recipe of my own")
    formats = page.get_by_label("Format")
    assert "GIF" not in formats.locator("option").all_inner_texts()
    formats.select_option("AVIF")
    page.get_by_label("Animation").select_option("Keep")
    assert formats.locator("option").all_inner_texts() == ["WebP, stills JPEG or PNG", "WebP", "GIF"]
    formats.select_option("GIF")
    send(page)
    all_done(page, 1)
    (image,) = images_of(visitor)
    assert [variant["format"] for variant in image["variants"]] == ["gif"]
    page.goto(f"{page.url.split('#')[0]}#/images/{image['id']}")
    expect(page.get_by_text("GIF", exact=False).first).to_be_visible()


def test_the_smallest_format_is_asked_for_by_its_name_and_the_made_one_is_shown(visitor: Visitor) -> None:
    page = visitor.tab()
    choose(page, [photo()])
    page.get_by_label("What to make").select_option("A recipe of my own")
    page.get_by_label("Format").select_option("Best: the smallest of JPEG, WebP and AVIF")
    send(page)
    all_done(page, 1)
    (image,) = images_of(visitor)
    (made,) = [variant["format"] for variant in image["variants"]]
    assert made in ("jpeg", "webp", "avif")
    page.goto(f"{page.url.split('#')[0]}#/images/{image['id']}")
    expect(page.get_by_text({"jpeg": "JPEG", "webp": "WebP", "avif": "AVIF"}[made]).first).to_be_visible()


def test_a_lost_connection_is_waited_for_and_nothing_is_sent_twice(visitor: Visitor) -> None:
    page = visitor.tab()
    choose(page, [photo(number) for number in range(4)])
    expect(page.get_by_text("Ready to upload", exact=True)).to_have_count(4)
    with visitor.watch.expecting("ERR_INTERNET_DISCONNECTED"):
        page.context.set_offline(True)
        send(page)
        expect(page.get_by_text("You are offline").first).to_be_visible()
        page.context.set_offline(False)
        all_done(page, 4)
    assert len(images_of(visitor)) == 4


def test_a_lost_answer_makes_no_second_image(visitor: Visitor) -> None:
    page = visitor.tab()
    lost: list[int] = []

    def lose_the_answer(route: Route) -> None:
        if route.request.method == "POST" and len(lost) < 2:
            lost.append(route.fetch().status)
            route.abort("connectionreset")
        else:
            route.fallback()

    page.route(submissions(page), lose_the_answer)
    choose(page, [photo()])
    with visitor.watch.expecting("ERR_CONNECTION_RESET"):
        send(page)
        all_done(page, 1)
    assert lost in ([202, 202], [202, 200])
    assert len(images_of(visitor)) == 1
    expect(page.get_by_text("You uploaded this photo before")).to_have_count(0)


def test_files_that_are_dropped_again_after_a_reload_are_not_sent_twice(visitor: Visitor) -> None:
    page = visitor.tab()
    upload(page, [photo(0), photo(1)])
    page.reload()
    upload(page, [photo(0), photo(1), photo(2)])
    expect(page.get_by_text("You uploaded this photo before")).to_have_count(2)
    assert len(images_of(visitor)) == 3
    # The same photo under another name, and once more in the same list, is the same image.
    choose(page, [photo(2, "another name.jpg")])
    send(page)
    expect(card(page, "another name.jpg")).to_contain_text("The same photo as photo-2.jpg: its results are ready")
    assert len(images_of(visitor)) == 3


def test_the_names_of_files_are_known_until_the_key_is_forgotten(visitor: Visitor) -> None:
    page = visitor.tab()
    upload(page, [photo()])
    page.reload()
    (image,) = images_of(visitor)
    assert page.evaluate(_NAME_OF, image["id"]) == "photo-0.jpg"
    page.get_by_role("button", name="Forget the key").click()
    assert page.evaluate(_NAME_OF, image["id"]) is None


def test_the_names_of_the_newest_500_images_are_kept(visitor: Visitor) -> None:
    page = visitor.tab()
    page.evaluate(
        """async () => {
            const { rememberName } = await import(
                new URL("core.js", document.querySelector("script[type=module]").src));
            for (let number = 0; number < 502; number += 1) rememberName(`id${number}`, `photo-${number}.jpg`);
        }"""
    )
    assert page.evaluate(_NAME_OF, "id1") is None
    assert page.evaluate(_NAME_OF, "id2") == "photo-2.jpg"
    assert page.evaluate(_NAME_OF, "id501") == "photo-501.jpg"


def test_a_recipe_of_ones_own_keeps_author_and_copyright_if_asked_to(visitor: Visitor) -> None:
    page = visitor.tab()
    owner = Image.Exif()
    owner[0x013B], owner[0x010E] = "Zoe", "a description"
    choose(page, [photo() | {"buffer": encoded(picture(64, 48), "JPEG", exif=owner)}])
    page.get_by_label("What to make").select_option("A recipe of my own")
    page.get_by_label("Keep author and copyright").check()
    send(page)
    all_done(page, 1)
    (image,) = images_of(visitor)
    answer = httpx.get(
        f"{visitor.stack.api_url}/images/{image['id']}/variants/card",
        headers={"Authorization": f"Bearer {visitor.account.key}"},
        trust_env=False,
        timeout=60,
    )
    made = httpx.get(answer.headers["Location"], trust_env=False, timeout=60).content
    with Image.open(io.BytesIO(made)) as variant:
        assert dict(variant.getexif()) == {0x013B: "Zoe"}


def test_a_deleted_photo_that_is_chosen_again_is_uploaded_by_one_click(visitor: Visitor) -> None:
    page = visitor.tab()
    upload(page, [photo()])
    (image,) = images_of(visitor)
    delete_image(visitor, image["id"])
    page.reload()
    choose(page, [photo()])
    with visitor.watch.expecting("status of 410"):
        send(page)
        all_done(page, 1)
    (made,) = images_of(visitor)
    assert made["id"] != image["id"]
    expect(page.get_by_text("You uploaded this photo before")).to_have_count(0)


def test_a_photo_that_was_deleted_while_its_answer_was_lost_has_not_failed_and_is_not_made_again_unasked(
    visitor: Visitor,
) -> None:
    page = visitor.tab()
    made: list[str] = []

    def delete_it_and_lose_the_answer(route: Route) -> None:
        if route.request.method != "POST" or made:
            route.fallback()
            return
        made.append(route.fetch().json()["id"])
        delete_image(visitor, made[0])
        route.abort("connectionreset")

    page.route(submissions(page), delete_it_and_lose_the_answer)
    choose(page, [photo()])
    with visitor.watch.expecting("ERR_CONNECTION_RESET", "status of 410"):
        send(page)
        expect(card(page, "photo-0.jpg")).to_contain_text("it was deleted before", timeout=30_000)
    expect(page.get_by_role("region", name="Progress")).not_to_contain_text("failed")
    assert images_of(visitor) == []
    page.get_by_role("button", name="Upload again photo-0.jpg").click()
    all_done(page, 1)


def test_what_is_added_last_stands_first_and_the_settings_stay_in_their_place(visitor: Visitor) -> None:
    page = visitor.tab()
    choose(page, [photo(0), photo(1)])
    settings = page.get_by_label("What to make")
    before = settings.bounding_box()
    send(page)
    all_done(page, 2)
    assert settings.bounding_box() == before
    choose(page, [photo(2), photo(3)])
    names = page.get_by_role("list", name="Files").locator(".upload-name")
    expect(names).to_contain_text([f"photo-{number}.jpg" for number in (2, 3, 0, 1)])


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_waited_for_with_a_countdown(visitor: Visitor, status: int) -> None:
    page = visitor.tab()
    refused: list[str] = []

    def refuse_the_first(route: Route) -> None:
        if route.request.method == "POST" and not refused:
            refused.append(route.request.url)
            route.fulfill(**busy(status, seconds=4))  # type: ignore[arg-type]
        else:
            route.fallback()

    page.route(submissions(page), refuse_the_first)
    choose(page, [photo()])
    with visitor.watch.expecting(f"status of {status}"):
        send(page)
        waiting = card(page, "photo-0.jpg")
        expect(waiting).to_contain_text("The service is busy")
        expect(waiting.locator(".countdown")).to_have_text("3 s")
        all_done(page, 1)
    assert len(images_of(visitor)) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"%PDF-1.7\n" + bytes(2000), "Save it as JPEG, PNG, WebP or GIF", id="no photo"),
        pytest.param(jpeg(640, 480)[:2000], "Copy the photo again", id="cut off"),
        pytest.param(b"", "Choose another file", id="empty"),
    ],
)
def test_a_file_that_cannot_be_developed_says_why_and_what_to_do(visitor: Visitor, body: bytes, words: str) -> None:
    page = visitor.tab()
    bad: FilePayload = {"name": "bad.jpg", "mimeType": "image/jpeg", "buffer": body}
    choose(page, [photo(), bad])
    with visitor.watch.expecting("status of 4(00|15|13|22)"):
        send(page)
        expect(card(page, "bad.jpg")).to_contain_text(words, timeout=120_000)
        expect(card(page, "photo-0.jpg")).to_contain_text("Done", timeout=120_000)
    expect(page.get_by_role("region", name="Progress")).to_contain_text("1 failed")
    assert axe.findings(page) == []


def test_a_photo_is_scheduled(visitor: Visitor) -> None:
    page = visitor.tab()
    choose(page, [photo()])
    page.get_by_label("After a delay").check()
    page.get_by_label("Delay", exact=True).fill("3")
    page.get_by_label("Unit of the delay").select_option("days")
    expect(page.get_by_role("button", name="Schedule 1 photo")).to_be_enabled()
    send(page)
    scheduled = card(page, "photo-0.jpg")
    expect(scheduled).to_contain_text(re.compile(r"to be processed .+ \(in 3 days\)"))
    (image,) = images_of(visitor)
    assert image["status"] == "scheduled"
    # Browse shows its name, and the file that this tab has sent.
    page.get_by_role("link", name="Browse", exact=True).first.click()
    tile = page.get_by_role("list", name="Images").get_by_role("listitem").filter(has_text="photo-0.jpg")
    expect(tile.locator("img")).to_have_js_property("naturalWidth", 64)
    expect(tile.locator("img")).to_be_visible()
    page.get_by_role("link", name="Upload", exact=True).click()
    # The time was for these files alone.
    choose(page, [photo(1)])
    expect(page.get_by_label("Now", exact=True)).to_be_checked()
    expect(page.get_by_role("button", name="Upload 1 photo")).to_be_enabled()


def test_what_is_changed_on_an_images_own_screen_is_known_to_its_card(visitor: Visitor) -> None:
    page = visitor.tab()
    choose(page, [photo(0), photo(1)])
    page.get_by_label("After a delay").check()
    page.get_by_label("Unit of the delay").select_option("days")
    send(page)
    card(page, "photo-0.jpg").get_by_role("link", name="Change the time").click()
    expect(page.get_by_label("New time")).to_be_focused()
    expect(page.get_by_alt_text("The file that you sent")).to_be_visible()
    page.get_by_role("button", name="Begin now").click()
    expect(page.get_by_text("Begun").first).to_be_attached()
    page.goto(f"{visitor.address}#/")
    expect(card(page, "photo-0.jpg")).to_contain_text("Done", timeout=90_000)
    card(page, "photo-0.jpg").get_by_role("link", name="See the results").click()
    page.get_by_role("button", name="Delete image").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1, name="photo-0.jpg was deleted")).to_be_attached()
    page.goto(f"{visitor.address}#/")
    with visitor.watch.expecting("status of 404"):
        expect(card(page, "photo-0.jpg")).to_contain_text("The image was deleted")
    expect(card(page, "photo-1.jpg")).to_contain_text("to be processed")
    choose(page, [photo(0, "again.jpg")])
    with visitor.watch.expecting("status of 410"):
        send(page)
        expect(card(page, "again.jpg")).to_contain_text("Done", timeout=90_000)


def test_a_crop_is_corrected_before_it_is_sent(visitor: Visitor) -> None:
    page = visitor.tab()
    choose(page, [photo(100)])
    page.get_by_label("What to make").select_option("avatar")
    page.get_by_role("button", name="Adjust crop of photo-100.jpg", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert axe.findings(page) == []
    dialog.get_by_role("slider", name="From the left").fill("0.1")
    dialog.get_by_role("button", name="Done").click()
    send(page)
    all_done(page, 1)
    expect(card(page, "photo-100.jpg").locator(".picture img")).to_have_js_property("naturalWidth", 48)  # a square
    (submission,) = [request for request in visitor.watch.requests if request.method == "POST"]
    assert '"x":0.1' in submission.url.replace("%22", '"').replace("%3A", ":").replace("%2C", ",")


def test_what_a_crop_keeps_can_be_left_to_attention_and_the_image_tells_where_that_was(visitor: Visitor) -> None:
    page = visitor.tab()
    choose(page, [photo(100)])
    page.get_by_label("What to make").select_option("avatar")
    page.get_by_role("button", name="Adjust crop of photo-100.jpg", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("checkbox", name="Attention").check()
    expect(dialog.get_by_text("is found when the photo is developed")).to_be_visible()
    expect(dialog.locator(".crop-point")).to_have_count(0)
    assert axe.findings(page) == []
    dialog.locator(".crop-picture").click()
    expect(dialog.get_by_role("checkbox", name="Attention")).not_to_be_checked()
    dialog.get_by_role("checkbox", name="Attention").check()
    dialog.get_by_role("button", name="Done").click()
    expect(card(page, "photo-100.jpg").locator(".upload-cut")).to_have_count(0)
    send(page)
    all_done(page, 1)
    card(page, "photo-100.jpg").get_by_role("link", name="See the results").click()
    expect(page.get_by_text(re.compile(r"\d+% from the left, \d+% from the top"))).to_be_visible()


CORNERS = ["#ff0000", "#00ff00", "#0000ff", "#ffffff"]  # from the upper left to the lower right


def corners(picture: Image.Image) -> list[str]:
    """Which of these colours a picture has in its corners."""
    width, height = picture.size
    colours = []
    for y in (height // 5, height * 4 // 5):
        for x in (width // 5, width * 4 // 5):
            pixel = picture.convert("RGB").getpixel((x, y))
            assert isinstance(pixel, tuple)
            colours.append("#" + "".join("ff" if level > 127 else "00" for level in pixel))
    return colours


def test_a_photo_is_seen_turned_and_mirrored_as_it_will_be(visitor: Visitor) -> None:
    picture = Image.new("RGB", (60, 40))
    for index, colour in enumerate(CORNERS):
        picture.paste(colour, (30 * (index % 2), 20 * (index // 2), 30 * (index % 2) + 30, 20 * (index // 2) + 20))
    page = visitor.tab()
    choose(page, [FilePayload(name="corners.png", mimeType="image/png", buffer=encoded(picture, "PNG"))])
    page.get_by_label("What to make").select_option("A recipe of my own")
    page.get_by_role("button", name="Rotate right").click()
    page.get_by_role("button", name="Flip").click()
    transposed = [CORNERS[0], CORNERS[2], CORNERS[1], CORNERS[3]]
    page.get_by_role("button", name="Adjust crop of corners.png").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("slider", name="From the left").fill("0.25")
    dialog.get_by_role("slider", name="From the top").fill("0.1")
    dialog.get_by_role("button", name="Done").click()
    page.get_by_label("Format").select_option("png")
    page.get_by_label("Fit").select_option("inside")
    frame = card(page, "corners.png").locator(".upload-frame")
    expect(frame.locator("img")).to_have_js_property("complete", True)
    assert corners(opened(frame.screenshot())) == transposed
    page.get_by_label("Fit").select_option("cover")
    send(page)
    all_done(page, 1)
    (submission,) = [request for request in visitor.watch.requests if request.method == "POST"]
    recipe = json.loads(parse_qs(urlsplit(submission.url).query)["recipe"][0])
    assert (recipe["rotate"], recipe["flip"]) == (90, "horizontal")
    # Sent as a point of the photo as it was: what was from the left is from the top there.
    assert recipe["variants"][0]["gravity"] == {"x": 0.1, "y": 0.25}


@pytest.mark.parametrize("leave", ["Escape", "Cancel"])
def test_a_crop_that_is_not_confirmed_changes_nothing(visitor: Visitor, leave: str) -> None:
    page = visitor.tab()
    choose(page, [photo(100)])
    page.get_by_label("What to make").select_option("avatar")
    adjust = page.get_by_role("button", name="Adjust crop of photo-100.jpg", exact=True)
    adjust.click()
    dialog = page.get_by_role("dialog")
    slider = dialog.get_by_role("slider", name="From the left")
    slider.fill("0.1")
    if leave == "Escape":
        page.keyboard.press("Escape")
    else:
        dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    adjust.click()
    expect(slider).to_have_value("0.5")


def test_the_kept_part_is_dragged_without_a_jump_and_a_click_moves_it(visitor: Visitor) -> None:
    page = visitor.tab()
    choose(page, [photo(100)])
    page.get_by_label("What to make").select_option("avatar")
    page.get_by_role("button", name="Adjust crop of photo-100.jpg", exact=True).click()
    slider = page.get_by_role("dialog").get_by_role("slider", name="From the left")
    expect(page.locator(".crop-picture .upload-cut")).to_be_visible()
    box = page.locator(".crop-picture").bounding_box()
    assert box is not None
    left, middle = box["x"], box["y"] + box["height"] / 2
    page.mouse.move(left + 0.6 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(left + 0.7 * box["width"], middle, steps=4)
    page.mouse.up()
    expect(slider).to_have_value("0.6")
    page.mouse.click(left + 0.5 * box["width"], middle)
    expect(slider).to_have_value("0.5")


def test_a_file_without_a_preview_says_so_before_it_is_sent(visitor: Visitor) -> None:
    page = visitor.tab()
    bad: FilePayload = {"name": "bad.jpg", "mimeType": "image/jpeg", "buffer": b"no photo"}
    choose(page, [photo(), bad])
    expect(card(page, "bad.jpg")).to_contain_text("No preview: the file may be damaged")
    expect(card(page, "photo-0.jpg")).not_to_contain_text("No preview")


def test_a_photo_of_which_a_part_is_missing_is_shown_and_doubted_before_it_is_sent(visitor: Visitor) -> None:
    page = visitor.tab()
    body = jpeg(640, 480)
    cut: FilePayload = {"name": "cut.jpg", "mimeType": "image/jpeg", "buffer": body[: len(body) * 3 // 4]}
    choose(page, [cut])
    expect(card(page, "cut.jpg")).to_contain_text("cannot read the whole file")
    expect(card(page, "cut.jpg").locator("img")).to_be_visible()


def test_everything_can_be_done_with_a_keyboard_alone(visitor: Visitor) -> None:
    page = visitor.tab()
    expect(page.get_by_role("button", name="Choose photos")).to_be_visible()
    page.on("filechooser", lambda chooser: chooser.set_files([photo(0), photo(1)]))
    press_until(page, "Tab", "Choose photos")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Upload 2 photos")).to_be_enabled()
    press_until(page, "Tab", "Upload 2 photos")
    page.keyboard.press("Enter")
    all_done(page, 2)
    press_until(page, "Tab", "photo-0.jpg")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="photo-0.jpg")).to_be_visible()
    assert page.url.removeprefix(f"{visitor.address}#/images/") in {image["id"] for image in images_of(visitor)}


def press_until(page: Page, key: str, words: str, *, most: int = 60) -> None:
    """Presses the key until the element with these words has the focus, and shows it."""
    for _ in range(most):
        page.keyboard.press(key)
        focused = page.evaluate(
            """() => {
                const one = document.activeElement;
                const style = getComputedStyle(one);
                const isShown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
                return { words: one.getAttribute("aria-label") ?? one.innerText, isShown, name: one.tagName };
            }"""
        )
        assert focused["name"] == "BODY" or focused["isShown"], f"nobody sees that {focused['words']!r} has the focus"
        if (focused["words"] or "").strip() == words:
            return
    raise AssertionError(f"{key} never reaches {words!r}")


def test_a_pasted_link_is_fetched_and_developed(visitor: Visitor) -> None:
    body = jpeg(70, 50)
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    page = visitor.tab()
    expect(page.get_by_role("button", name="Choose photos")).to_be_visible()
    settle(page)  # what listens for a paste comes with the screen
    with serving(answering(answer)) as server:
        page.evaluate(
            """(url) => {
                const clipboardData = new DataTransfer();
                clipboardData.setData("text/plain", url);
                document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
            }""",
            f"http://127.0.0.1:{server.port}/harbour.jpg?token=s3cr3t",
        )
        shown = card(page, f"127.0.0.1:{server.port}/harbour.jpg")
        expect(shown).to_contain_text("a link")
        send(page)
        all_done(page, 1)
    expect(shown).not_to_contain_text("s3cr3t")
