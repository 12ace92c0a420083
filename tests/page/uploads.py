"""Files for the upload screen, and how a reader gives them to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.page.visitor import Visitor
from tests.support.fakes.pictures import jpeg


def photo(number: int = 0, name: str | None = None) -> FilePayload:
    """A small photo; no two numbers have the same bytes."""
    return {"name": name or f"photo-{number}.jpg", "mimeType": "image/jpeg", "buffer": jpeg(64 + number, 48)}


def choose(page: Page, files: Sequence[FilePayload] | Sequence[Path]) -> None:
    """Picks files, as with the button for it."""
    page.get_by_label("Photos", exact=True).set_input_files(files)


def drop(page: Page, paths: Sequence[Path]) -> None:
    """Drops files or folders on the page once it invites to that, as a mouse does that comes from elsewhere
    (https://chromedevtools.github.io/devtools-protocol/tot/Input/#method-dispatchDragEvent)."""
    page.locator(".upload-invitation").wait_for()
    debugger = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        debugger.send("Input.dispatchDragEvent", {"type": kind, "x": 200, "y": 200, "data": data})
    debugger.detach()


def send(page: Page) -> None:
    """Sends what is in the list, at once or at the time that is chosen."""
    page.get_by_role("button", name=re.compile("^(Upload|Schedule) [0-9]+ photo")).click()


def card(page: Page, name: str) -> Locator:
    """The row of a file."""
    return page.get_by_role("list", name="Files").get_by_role("listitem").filter(has_text=name)


def all_done(page: Page, count: int) -> None:
    """Waits until every file of the list is an image that is done."""
    expect(page.get_by_role("region", name="Progress")).to_contain_text(f"{count} of {count} done", timeout=90_000)


def upload(page: Page, files: Sequence[FilePayload] | Sequence[Path], *, of: int | None = None) -> None:
    """Sends files, and waits until they are done, and with them all `of` the list, if it has others."""
    choose(page, files)
    send(page)
    all_done(page, of or len(files))


def submissions(page: Page) -> str:
    """The address of POST /images."""
    return f"{page.url.split('/app/')[0]}/images?*"


def images_of(visitor: Visitor) -> list[dict[str, Any]]:
    """The images that the visitor's tenant has, as the API lists them."""
    answer = httpx.get(
        f"{visitor.stack.api_url}/images",
        params={"limit": 100},
        headers={"Authorization": f"Bearer {visitor.account.key}"},
        trust_env=False,
        timeout=60,
    )
    listed: list[dict[str, Any]] = answer.raise_for_status().json()["images"]
    return listed


def delete_image(visitor: Visitor, image_id: str) -> None:
    """Deletes an image of the visitor's, as another program does."""
    answer = httpx.delete(
        f"{visitor.stack.api_url}/images/{image_id}",
        headers={"Authorization": f"Bearer {visitor.account.key}"},
        trust_env=False,
        timeout=60,
    )
    assert answer.is_success
