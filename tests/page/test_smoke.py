"""The shortest way through the page: a photo is dropped, sent, developed and shown."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from browser import axe
from browser.layout import what_sticks_out
from tests.page.uploads import all_done, drop, images_of, send
from tests.page.visitor import Visitor
from tests.support.fakes.pictures import jpeg


def test_a_dropped_photo_is_sent_and_its_picture_appears(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(jpeg(640, 480))
    page = visitor.tab()
    expect(page.get_by_role("heading", level=1, name="Upload")).to_be_visible()
    drop(page, [tmp_path / "photo.jpg"])
    send(page)
    all_done(page, 1)
    picture = page.get_by_role("list", name="Files").locator(".picture img")
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("(image) => image.naturalWidth") > 0
    (image,) = images_of(visitor)
    assert image["status"] == "done"
    assert axe.findings(page) == []
    assert what_sticks_out(page) == []
