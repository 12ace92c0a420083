"""Takes the README's pictures of the page: real photos, developed by a local stack, in light colours.

    python -m tests.page.screenshots

Writes docs/images/page-*.webp.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect

from browser import chromium
from browser.layout import settle
from browser.tabs import new_context, sign_in
from repository.report import ROOT
from tests.support.planted import Account, planted_account
from tests.support.running.serving import serving
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "screenshots"
PICTURES = ROOT / "docs" / "images"
PHOTO = ROOT / "tests" / "photos" / "seeding-16mp.jpg"

WIDTH, HEIGHT = 1200, 760
MOST_BYTES = 150_000
_QUALITIES = (85, 75, 65, 55, 45)

DETAILS = (
    # Parts of the photo, as its left, top, width and height in hundredths.
    *((0, 0, 100, 100), (0, 10, 45, 60), (40, 0, 60, 55), (20, 30, 50, 50), (55, 35, 40, 60), (5, 45, 60, 50)),
    *((30, 5, 35, 70), (60, 0, 35, 40), (0, 0, 50, 45), (25, 50, 65, 45), (45, 20, 30, 30), (10, 20, 80, 60)),
)


def photos(folder: Path) -> list[Path]:
    """Details of the photo, as files that a person might have."""
    files = []
    with Image.open(PHOTO) as photograph:
        photograph.draft("RGB", (2300, 1800))
        photo = photograph.convert("RGB")
    for number, (left, top, width, height) in enumerate(DETAILS, start=1):
        part = (left, top, left + width, top + height)
        box = [edge * side // 100 for edge, side in zip(part, photo.size * 2, strict=True)]
        file = folder / f"seeding-{number:02d}.jpg"
        photo.crop((box[0], box[1], box[2], box[3])).save(file, "JPEG", quality=88)
        files.append(file)
    return files


def take(page: Page, name: str) -> Path:
    """Keeps what the tab shows, as small as a README may be."""
    settle(page)
    page.evaluate("() => Promise.all([...document.images].map((one) => one.decode().catch(() => {})))")
    shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    file = PICTURES / f"page-{name}.webp"
    for quality in _QUALITIES:
        shot.save(file, "WEBP", quality=quality, method=6)
        if file.stat().st_size <= MOST_BYTES:
            break
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")
    return file


def upload(page: Page, files: list[Path]) -> None:
    """The upload screen with photos of which some are chosen and the others are done."""
    page.locator("input[type=file]").first.set_input_files(files)
    page.get_by_role("button", name=f"Upload {len(files)} photos").click()
    progress = page.get_by_role("region", name="Progress")
    expect(progress).to_contain_text(f"{len(files)} of {len(files)} done", timeout=240_000)


def crop(page: Page, file: Path) -> None:
    """A crop that is being adjusted."""
    page.locator("input[type=file]").first.set_input_files(file)
    page.get_by_label("What to make").select_option("avatar")
    page.get_by_role("button", name=f"Adjust crop of {file.name}", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()


def tab_of(stack: Stack, account: Account, new_tab: Callable[[], Page]) -> Page:
    """A tab that is signed in, on the upload screen."""
    page = new_tab()
    sign_in(page, stack.api_url, account.key)
    page.goto(f"{stack.api_url}/app/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    return page


def main() -> int:
    """Takes them all; returns the exit status."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with (
        serving(STATE, "--access", "keys") as stack,
        chromium.running() as browser,
        tempfile.TemporaryDirectory() as folder,
    ):
        account = planted_account(stack)
        context = new_context(browser)
        page = tab_of(stack, account, context.new_page)
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        files = photos(Path(folder))
        upload(page, files[:5])
        taken = [take(page, "upload")]
        page.reload()
        upload(page, files[5:])
        page.goto(f"{stack.api_url}/app/#/browse")
        expect(page.get_by_text(f"That is all: {len(files)} images.")).to_be_visible()
        taken.append(take(page, "browse"))
        page.get_by_role("list", name="Images").get_by_role("link").last.click()
        expect(page.get_by_role("heading", name="Variants")).to_be_visible()
        taken.append(take(page, "image"))
        page.goto(f"{stack.api_url}/app/#/")
        page.reload()
        crop(page, files[0])
        taken.append(take(page, "crop"))
    large = [file.name for file in taken if file.stat().st_size > MOST_BYTES]
    if large:
        print(f"over {MOST_BYTES:,} bytes: {', '.join(large)}", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
