"""Uploads that are interrupted: by a slow connection, a store or an edge that refuses, a key that is no longer taken,
storage that keeps nothing, or a part of the page that cannot be loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from browser import axe
from browser.layout import settle
from tests.page.uploads import all_done, card, choose, drop, images_of, photo, send, submissions, upload
from tests.page.visitor import Visitor
from tests.support.fakes.pictures import jpeg

pytestmark = pytest.mark.long

_RECORD_UPLOADS = """
window.sent = [];
const send = XMLHttpRequest.prototype.send;
XMLHttpRequest.prototype.send = function (body) {
    sent.push(this);
    return send.call(this, body);
};
"""

_PROGRESS = """(loaded) => sent.forEach((one) => one.upload.dispatchEvent(
    new ProgressEvent("progress", { lengthComputable: true, loaded, total: 2 })))"""
_COLOURS = """() => {
    const style = getComputedStyle(document.documentElement);
    const shown = getComputedStyle(document.querySelector(".upload-card progress")).accentColor;
    const probe = document.body.appendChild(document.createElement("i"));
    const names = ["--info", "--line-strong", "--good", "--warn", "--bad", "--accent"];
    const found = names.find((name) => {
        probe.style.color = style.getPropertyValue(name);
        return getComputedStyle(probe).color === shown;
    });
    probe.remove();
    return found;
}"""


def with_clock(visitor: Visitor) -> Page:
    """A tab whose clock the test moves, and whose uploads make progress when it says so."""
    page = visitor.tab()
    page.add_init_script(_RECORD_UPLOADS)
    page.clock.install()
    page.reload()
    return page


def pass_minutes_with_progress(page: Page) -> None:
    """Five minutes in which every upload goes on."""
    for _ in range(3):
        page.clock.fast_forward(100_000)
        page.evaluate(_PROGRESS, 1)


def holding(routes: list[Route]) -> Callable[[Route], None]:
    """Answers no request; `routes` has those that came."""

    def hold(route: Route) -> None:
        routes.append(route)

    return hold


def answer(status: int, document: object) -> dict[str, Any]:
    return {"status": status, "content_type": "application/json", "body": json.dumps(document)}


def large_photo(folder: Path) -> Path:
    """A file that is sent by a form."""
    path = folder / "large.jpg"
    path.write_bytes(jpeg(640, 480) + bytes(5_000_000))
    return path


def test_a_slow_upload_may_take_its_time_and_after_dead_ones_files_are_sent_one_at_a_time(visitor: Visitor) -> None:
    page = with_clock(visitor)
    held: list[Route] = []
    page.route(submissions(page), holding(held))
    choose(page, [photo(number) for number in range(2)])
    send(page)
    expect(page.get_by_text("Sending", exact=True)).to_have_count(2)
    pass_minutes_with_progress(page)
    expect(page.get_by_text("Sending, 50%")).to_have_count(2)
    assert page.evaluate(_COLOURS) == "--info"  # in work
    page.evaluate(_PROGRESS, 2)
    expect(page.get_by_text("Sent, waiting for the answer")).to_have_count(2)
    assert page.evaluate(_COLOURS) == "--line-strong"  # waits
    assert len(held) == 2
    with page.expect_request(submissions(page)):
        page.clock.fast_forward(130_000)
    expect(page.get_by_text("files are sent one at a time")).to_have_count(1)
    expect(page.get_by_text("Sending", exact=True)).to_have_count(1)
    assert len(held) == 3
    page.unroute_all()
    held[2].fallback()
    all_done(page, 2)
    assert len(images_of(visitor)) == 2


def test_a_slow_form_keeps_its_image_awaited_and_one_that_came_too_late_makes_another(
    visitor: Visitor, tmp_path: Path
) -> None:
    page = with_clock(visitor)
    forms: list[Route] = []
    keys: list[str] = []

    def announced(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) != 3:
            return route.fallback()
        document = route.fetch().json()
        error = {"code": "never_uploaded", "message": "It was not uploaded in time.", "retryable": False}
        return route.fulfill(**answer(200, document | {"status": "expired", "error": error, "upload": None}))

    def to_the_store(route: Route) -> None:
        forms.append(route)
        if len(forms) > 1:
            route.fallback()

    page.route("**/uploads", announced)
    store = f"{visitor.stack.record.aws_endpoint_url}/**"
    page.route(store, to_the_store)
    choose(page, [large_photo(tmp_path)])
    with visitor.watch.expecting("status of 400"):
        with page.expect_request(store):
            send(page)
        pass_minutes_with_progress(page)
        expect(card(page, "large.jpg")).to_contain_text("Sending, 50%")
        refused = "<Error><Code>RequestTimeout</Code></Error>"
        forms[0].fulfill(status=400, headers={"Access-Control-Allow-Origin": "*"}, body=refused)
        all_done(page, 1)
    renewed, repeated = keys[1:3]
    assert renewed == repeated == keys[0]
    assert keys[3] != keys[0]
    assert len(keys) == 4


def test_what_was_accepted_is_not_deleted_when_its_next_upload_is_cancelled(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.tab()
    announced: list[Route] = []

    def announce(route: Route) -> None:
        announced.append(route)
        if len(announced) == 1:
            return route.fallback()
        if len(announced) == 2:  # the bytes were there, and only the store's answer was lost
            error = {"code": "internal", "message": "Developing this image failed.", "retryable": True}
            document = route.fetch().json()
            return route.fulfill(**answer(200, document | {"status": "failed", "error": error, "upload": None}))
        return None

    page.route("**/uploads", announce)
    page.route(f"{visitor.stack.record.aws_endpoint_url}/**", lambda route: route.abort("connectionreset"))
    choose(page, [large_photo(tmp_path)])
    with visitor.watch.expecting("ERR_CONNECTION_RESET"):
        send(page)
        page.get_by_role("button", name="Upload again large.jpg").click()
    expect(card(page, "large.jpg")).to_contain_text("Sending")
    page.get_by_role("button", name="Cancel large.jpg").click()
    expect(card(page, "large.jpg")).to_contain_text("Cancelled")
    assert [request.url for request in visitor.watch.requests if request.method == "DELETE"] == []


def test_the_same_photo_twice_goes_on_when_the_first_one_is_cancelled_or_cleared(visitor: Visitor) -> None:
    page = visitor.tab()
    held: list[Route] = []
    page.route(submissions(page), holding(held))
    choose(page, [photo(0, "one.jpg"), photo(0, "two.jpg")])
    send(page)
    progress = page.get_by_role("region", name="Progress")
    expect(card(page, "two.jpg")).to_contain_text("The same photo as one.jpg")
    page.get_by_role("button", name="Cancel all").click()
    expect(progress).to_contain_text("0 of 2 done, 2 cancelled")
    before = len(held)
    page.get_by_role("button", name="Try the cancelled again").click()
    while len(held) == before:  # once it is held it can still be cancelled; a request is seen before that
        page.wait_for_timeout(20)
    expect(card(page, "two.jpg")).to_contain_text("The same photo as one.jpg")
    page.get_by_role("button", name="Cancel one.jpg").click()
    page.unroute_all()  # which lets what is held go on its way
    expect(progress).to_contain_text("1 of 2 done, 1 cancelled", timeout=90_000)
    choose(page, [photo(0, "three.jpg")])
    send(page)
    expect(card(page, "three.jpg")).to_contain_text("The same photo as two.jpg: its results are ready")
    page.get_by_role("button", name="Clear two.jpg").click()
    expect(card(page, "three.jpg").locator(".upload-stage")).to_contain_text("Done")
    assert len(images_of(visitor)) == 1


def test_a_key_is_asked_for_again_only_when_it_was_refused_itself(visitor: Visitor) -> None:
    page = visitor.tab()
    edge = {"status": 403, "content_type": "text/html", "body": "<h1>The request could not be satisfied</h1>"}
    page.route(submissions(page), lambda route: route.fulfill(**edge), times=1)
    status = re.compile("/images/[0-9a-z]+/status")
    page.route(status, lambda route: route.fulfill(**answer(403, {"message": "Forbidden"})))
    choose(page, [photo()])
    with visitor.watch.expecting("status of 403"):
        send(page)
        expect(page.get_by_role("alert")).to_contain_text("it was revoked")
    assert len(images_of(visitor)) == 1, "the edge's refusal was waited for, and the photo sent with the same key"
    page.unroute_all()

    def still_processing(route: Route) -> None:
        document = route.fetch().json()
        route.fulfill(**answer(200, document | {"status": "processing", "error": None}))

    page.route(status, still_processing)
    page.get_by_label("API key").fill(visitor.account.key)
    page.keyboard.press("Enter")
    expect(card(page, "photo-0.jpg")).to_contain_text("Processing")
    expect(page.get_by_text("it was revoked")).to_have_count(0)
    page.unroute_all()
    all_done(page, 1)


def test_a_late_refusal_of_the_key_before_leaves_the_new_one(visitor: Visitor) -> None:
    page = visitor.tab()
    after = page.evaluate(
        """async () => {
            const at = document.querySelector("script[type=module]").src;
            const core = await import(new URL("core.js", at));
            const { call } = await import(new URL("requests.js", at));
            let answer;
            window.fetch = () => new Promise((resolve) => (answer = resolve));
            const late = call("GET", "/images").catch(() => {});
            core.keep("dr_new");
            answer(new Response('{"message":"Unauthorized"}', { status: 401 }));
            await late;
            return core.credential();
        }"""
    )
    assert after == "dr_new"


def test_a_browser_that_keeps_nothing_for_the_page_can_upload(visitor: Visitor) -> None:
    page = visitor.tab(is_signed_in=False)
    page.add_init_script(
        """for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, {
            get() { throw new DOMException("Access is denied for this document.", "SecurityError"); },
        });"""
    )
    page.reload()
    page.get_by_label("API key").fill(visitor.account.key)
    page.keyboard.press("Enter")
    choose(page, [photo()])
    page.get_by_label("What to make").select_option("avatar")
    send(page)
    all_done(page, 1)


def test_upload_again_makes_another_image_also_where_storage_is_full(visitor: Visitor) -> None:
    page = visitor.tab()
    page.evaluate(
        """() => (Storage.prototype.setItem = () => {
            throw new DOMException("full", "QuotaExceededError");
        })"""
    )
    upload(page, [photo()])
    choose(page, [photo(0, "twin.jpg")])
    send(page)
    page.get_by_role("button", name="Upload again twin.jpg").click()
    expect(card(page, "twin.jpg").locator(".upload-stage")).to_have_text(re.compile("^Done"), timeout=90_000)
    assert len(images_of(visitor)) == 2


def test_what_cannot_be_loaded_names_reloading(visitor: Visitor) -> None:
    page = visitor.tab()
    page.route("**/upload/work.js", lambda route: route.fulfill(status=404))
    with visitor.watch.expecting("status of 404"):
        choose(page, [photo()])
        expect(page.get_by_role("alert")).to_contain_text("Reload the page, then add the files again.")
        assert axe.findings(page) == []
    page.unroute_all()
    page.get_by_role("button", name="Reload the page").click()
    page.route("**/upload/crop.js", lambda route: route.fulfill(status=404))
    choose(page, [photo()])
    page.get_by_label("What to make").select_option("avatar")
    with visitor.watch.expecting("status of 404"):
        page.get_by_role("button", name="Adjust crop of photo-0.jpg", exact=True).click()
        dialog = page.get_by_role("dialog", name="The crop could not be loaded")
        expect(dialog.get_by_role("button", name="Reload the page")).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)


def test_what_of_a_folder_cannot_be_read_is_said(visitor: Visitor, tmp_path: Path) -> None:
    folder = tmp_path / "holiday"
    folder.mkdir()
    (folder / "good.jpg").write_bytes(jpeg(64, 48))
    page = visitor.tab()
    expect(page.get_by_role("button", name="Choose photos")).to_be_visible()
    settle(page)  # what listens for a drop comes with the screen
    page.evaluate(
        """() => {
            const failure = new DOMException("denied", "NotReadableError");
            const locked = { name: "locked.jpg", isDirectory: false, file: (_, reject) => reject(failure) };
            const { webkitGetAsEntry } = DataTransferItem.prototype;
            DataTransferItem.prototype.webkitGetAsEntry = function () {
                const reader = webkitGetAsEntry.call(this).createReader();
                let isBegun = false;
                const readEntries = (resolve, reject) => {
                    if (isBegun) return reject(failure);
                    isBegun = true;
                    return reader.readEntries((entries) => resolve([...entries, locked]), reject);
                };
                return { isDirectory: true, createReader: () => ({ readEntries }) };
            };
        }"""
    )
    drop(page, [folder])
    expect(card(page, "good.jpg")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("2 files or folders could not be read")
    expect(page.get_by_text("left out")).to_have_count(0)
