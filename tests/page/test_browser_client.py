"""darkroom-upload.js on another website: the example page, and what the page's own uploads do not show of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from darkroom_client import Darkroom
from repository.report import ROOT
from tests.page.uploads import images_of, photo
from tests.page.visitor import SHOP, Visitor
from tests.support.fakes.pictures import jpeg

long = pytest.mark.long

EXAMPLE = ROOT / "docs" / "examples" / "upload.html"
CLIENT = ROOT / "layers" / "page" / "web" / "darkroom-upload.js"
CORS = {"Access-Control-Allow-Origin": SHOP, "Access-Control-Expose-Headers": "Retry-After"}

_UPLOAD = """async ([url, token, bytes]) => {
    const { DarkroomUploader } = await import("./darkroom-upload.js");
    const uploader = new DarkroomUploader({ url, token });
    return uploader.upload(new File([new Uint8Array(bytes)], "no photo")).catch(({ code, status, message }) => {
        return { code, status, message };
    });
}"""


def shop(visitor: Visitor, tokens: list[str] | None = None) -> Page:
    """The example page on a website whose server gives these tokens one after another, or always a good one."""
    visitor.watch.hosts = {*visitor.watch.hosts, urlsplit(SHOP).netloc}
    given = iter(tokens or repeat(visitor.account.key))
    html = EXAMPLE.read_text().replace("https://abc123.execute-api.eu-central-1.amazonaws.com", visitor.stack.api_url)
    # Browsers ask their user before a website may call this machine.
    page = visitor.context(permissions=["local-network-access"]).new_page()
    page.route(f"{SHOP}/", lambda route: route.fulfill(content_type="text/html", body=html))
    page.route(f"{SHOP}/darkroom-upload.js", lambda route: route.fulfill(path=CLIENT))
    page.route(f"{SHOP}/upload-token", lambda route: route.fulfill(body=next(given)))
    page.goto(f"{SHOP}/")
    return page


def large_photo(folder: Path) -> Path:
    """A file that is sent by a form."""
    path = folder / "large.jpg"
    path.write_bytes(jpeg(640, 480) + bytes(5_000_000))
    return path


def upload(page: Page, file: Path | None = None) -> None:
    page.get_by_label("Photo").set_input_files(file or photo())
    page.get_by_role("button", name="Upload").click()


def done(page: Page) -> None:
    """Waits until the photo's variant is on the page."""
    expect(page.get_by_role("status")).to_have_text("Done", timeout=60_000)
    expect(page.get_by_alt_text("The photo")).not_to_have_js_property("naturalWidth", 0)


def in_turn(*answers: Callable[[Route], None]) -> Callable[[Route], None]:
    """Answers each request to an address with the next of these, and then as the stack does."""
    left = iter(answers)

    def answer(route: Route) -> None:
        (next(left, Route.fallback) if route.request.method == "POST" else Route.fallback)(route)

    return answer


def refuse(status: int, **document: str) -> Callable[[Route], None]:
    headers = {**CORS, "Retry-After": "1"} if status in (429, 503) else CORS
    return lambda route: route.fulfill(status=status, headers=headers, json=document)


def lose_the_answer(route: Route) -> None:
    route.fetch()
    route.abort("connectionreset")


def test_a_copied_page_on_another_website_uploads_photos_and_shows_them(visitor: Visitor, tmp_path: Path) -> None:
    with Darkroom(visitor.stack.api_url, visitor.account.key) as darkroom:
        tokens = [darkroom.create_upload_token(preset="standard", origins=[SHOP])["token"] for _ in range(2)]
    page = shop(visitor, tokens)
    for file in (None, large_photo(tmp_path)):
        upload(page, file)
        done(page)
    assert [image["status"] for image in images_of(visitor)] == ["done", "done"]


@long
def test_a_busy_service_and_a_lost_answer_are_one_image_under_one_key(visitor: Visitor) -> None:
    page = shop(visitor)
    page.route(f"{visitor.stack.api_url}/images", in_turn(refuse(429), refuse(503), lose_the_answer))
    with visitor.watch.expecting("status of (429|503)", "ERR_CONNECTION_RESET"):
        upload(page)
        expect(page.get_by_role("status")).to_contain_text("Again in 2 s")
        done(page)
    sent = [one.headers["idempotency-key"] for one in visitor.watch.requests if one.url.endswith("/images")]
    assert (len(sent), len(set(sent)), len(images_of(visitor))) == (4, 1, 1)


@long
def test_an_expired_form_is_asked_for_again(visitor: Visitor, tmp_path: Path) -> None:
    page = shop(visitor)
    expired = "<Error><Code>AccessDenied</Code><Message>Invalid according to Policy: Policy expired.</Message></Error>"
    store = f"{visitor.stack.record.aws_endpoint_url}/**"
    page.route(store, in_turn(lambda route: route.fulfill(status=403, headers=CORS, body=expired)))
    with visitor.watch.expecting("status of 403"):
        upload(page, large_photo(tmp_path))
        done(page)
    announced = [one for one in visitor.watch.requests if one.url.endswith("/uploads") and one.method == "POST"]
    assert (len(announced), len(images_of(visitor))) == (2, 1)


@long
def test_a_refused_token_is_fetched_anew_and_a_second_refusal_is_final(visitor: Visitor) -> None:
    expired = refuse(403, code="upload_token_expired", detail="This upload token has expired.")
    page = shop(visitor, ["dr_expired", visitor.account.key, "dr_expired", "dr_revoked"])
    page.route(
        f"{visitor.stack.api_url}/images", in_turn(expired, Route.fallback, expired, refuse(403, message="Forbidden"))
    )
    with visitor.watch.expecting("status of 403"):
        upload(page)
        done(page)
        upload(page)
        expect(page.get_by_role("status")).to_have_text("Forbidden")
    assert len(images_of(visitor)) == 1


@long
def test_a_cancelled_upload_sends_nothing_more(visitor: Visitor) -> None:
    page = shop(visitor)
    with page.expect_request(f"{visitor.stack.api_url}/images"):
        page.route(f"{visitor.stack.api_url}/images", lambda route: None)
        upload(page)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("status")).to_have_text("Cancelled")
    assert images_of(visitor) == []


@long
def test_a_refusal_says_its_code_and_what_to_do_and_nothing_is_sent_again(visitor: Visitor) -> None:
    page = shop(visitor)
    with visitor.watch.expecting("status of 415"):
        refusal = page.evaluate(_UPLOAD, [visitor.stack.api_url, visitor.account.key, 100])
    assert (refusal["code"], refusal["status"]) == ("unsupported_format", 415)
    assert "JPEG" in refusal["message"]
    assert len([one for one in visitor.watch.requests if one.method == "POST"]) == 1


@long
def test_it_gives_up_after_eight_tries_without_an_answer(visitor: Visitor) -> None:
    page = shop(visitor)
    page.route(f"{visitor.stack.api_url}/images", lambda route: route.abort("connectionreset"))
    page.clock.install()
    with visitor.watch.expecting("ERR_CONNECTION_RESET"):
        upload(page)
        for _ in range(7):
            expect(page.get_by_role("status")).to_contain_text("Again in")
            page.evaluate("() => (document.querySelector('[role=status]').textContent = '')")
            page.clock.fast_forward(20_000)
        expect(page.get_by_role("status")).to_have_text("No answer came. Check the connection.")
    assert len([one for one in visitor.watch.requests if one.url.endswith("/images")]) == 8
