"""The page in a real Chromium on the local stack: its first load, the wait for a picture, and a long scroll.

    make bench-page

The page is interactive when its form for files is there and enabled, counted from the start of the navigation by the
page's own clock; each load is in a fresh browser context, so nothing is in its cache, and the stack is warm. A picture
is on the screen when it is decoded (its `load` event), counted from the image's `completed_at`. A long task is a piece
of work of more than 50 ms on the page's one thread, in which it answers nobody (https://www.w3.org/TR/longtasks-1/);
the scroll goes over planted images, from the newest to the oldest, as fast as a wheel is turned. Prints a table and
writes build/reports/page.json.
"""

from __future__ import annotations

import io
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import httpx
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from benchmarks.forms import FOLDER, by_form
from benchmarks.stage import stack_of
from browser import chromium
from browser.layout import settle
from browser.tabs import new_context, sign_in
from repository.report import ROOT, Goal, write_report
from tests.support.planted import Account, image, plant, planted_account
from tests.support.running.stack import Stack

STATE = ROOT / "build" / "bench-page"
PHOTO = ROOT / "tests" / "photos" / "seeding-16mp.jpg"

MOST_KILOBYTES, MOST_REQUESTS = 60, 8
INTERACTIVE_MILLISECONDS = 500
PICTURE_SECONDS = 2.0
LONGEST_TASK_MILLISECONDS = 50

WHEEL_PIXELS, WHEEL_MILLISECONDS = 900, 40
SCROLL_SECONDS = 240

_INTERACTIVE = """
const isThere = () => {
    const form = document.querySelector("#choose-photos, input[type=file]");
    if (form && !form.disabled) window.interactiveAt ??= performance.now();
    return form;
};
new MutationObserver((_, observer) => isThere() && observer.disconnect())
    .observe(document, { childList: true, subtree: true });
"""

_PICTURES = """
window.pictures = [];
document.addEventListener("load", ({ target }) => {
    const address = target instanceof HTMLImageElement ? target.src : "";
    if (/^http/.test(address) && !address.startsWith(origin)) pictures.push([address, Date.now()]);
}, true);
"""

_LONG_TASKS = """
window.tasks = [];
new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: "longtask", buffered: true });
"""

LOADS, PHOTOS, IMAGES = by_form(short=(1, 1, 250), usual=(20, 10, 5000))
"""How often the page is loaded, how many photos are uploaded, and how many images the scroll goes over."""


def first_load(browser: Browser, stack: Stack, account: Account) -> dict[str, float]:
    """One load by somebody who has a key, with nothing in the cache."""
    context = new_context(browser)
    page = context.new_page()
    sign_in(page, stack.api_url, account.key)
    page.add_init_script(_INTERACTIVE)
    page.goto(f"{stack.api_url}/app/")
    page.wait_for_function("() => window.interactiveAt")
    settle(page)
    entries: list[dict[str, Any]] = page.evaluate(
        "() => ['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind))"
        ".map(({ name, transferSize, encodedBodySize }) => ({ name, transferSize, encodedBodySize }))"
    )
    # The icon is listed a second time where the browser took it from its cache.
    own = [entry for entry in entries if urlsplit(entry["name"]).path.startswith("/app/") and entry["transferSize"]]
    figures = {
        "interactive": page.evaluate("() => window.interactiveAt"),
        "requests": len(own),
        "kilobytes": sum(entry["encodedBodySize"] for entry in own) / 1000,
        "kilobytes_with_headers": sum(entry["transferSize"] for entry in own) / 1000,
    }
    context.close()
    return figures


def photos(folder: Path, count: int) -> list[Path]:
    """Photos of 2 megapixels, each another detail of a real one."""
    bodies = []
    with Image.open(PHOTO) as photograph:
        for number in range(count):
            file = folder / f"photo-{number}.jpg"
            left = number * (photograph.width - 1632) // max(1, count)
            body = io.BytesIO()
            photograph.crop((left, 400, left + 1632, 400 + 1224)).save(body, "JPEG", quality=85)
            file.write_bytes(body.getvalue())
            bodies.append(file)
    return bodies


def picture_waits(browser: Browser, stack: Stack, account: Account, count: int) -> list[float]:
    """Seconds from `completed_at` of each uploaded photo until its picture is on the screen, one photo at a time."""
    waits = []
    context = new_context(browser)
    page = context.new_page()
    sign_in(page, stack.api_url, account.key)
    page.add_init_script(_PICTURES)
    page.goto(f"{stack.api_url}/app/")
    with tempfile.TemporaryDirectory() as folder:
        for number, file in enumerate(photos(Path(folder), count)):
            page.locator("input[type=file]").first.set_input_files(file)
            page.get_by_role("button", name="Upload 1 photo").click()
            page.wait_for_function("(count) => pictures.length > count", arg=number, timeout=120_000)
            url, at = page.evaluate("() => pictures.at(-1)")
            waits.append(at / 1000 - completed_at(stack, account, url))
    context.close()
    return waits


def completed_at(stack: Stack, account: Account, url: str) -> float:
    """When the image of a picture's address was done, in seconds since 1970."""
    listed = httpx.get(
        f"{stack.api_url}/images",
        params={"limit": 100},
        headers={"Authorization": f"Bearer {account.key}"},
        trust_env=False,
        timeout=60,
    )
    (image,) = [image for image in listed.raise_for_status().json()["images"] if image["id"] in url]
    return datetime.fromisoformat(image["completed_at"]).timestamp()


def scroll(browser: Browser, stack: Stack, account: Account, count: int) -> dict[str, float]:
    """The long tasks of a scroll over `count` images, and the most elements that the document had meanwhile."""
    context = new_context(browser)
    page = context.new_page()
    sign_in(page, stack.api_url, account.key)
    page.goto(f"{stack.api_url}/app/#/browse")
    expect(page.get_by_role("list", name="Images").get_by_role("listitem").first).to_be_visible()
    settle(page)
    page.evaluate(_LONG_TASKS)  # what came before the scroll belongs to the load
    end = page.get_by_text(f"That is all: {count:,} images.")
    most = turn_the_wheel(page, end)
    tasks: list[float] = page.evaluate("() => tasks")
    context.close()
    return {"tasks": len(tasks), "longest": max(tasks, default=0.0), "elements": most}


def turn_the_wheel(page: Page, end: Locator) -> int:
    """Scrolls until the list's end is in view; returns the most elements that the document had."""
    most: int = 0
    page.mouse.move(700, 500)
    for _ in range(SCROLL_SECONDS * 1000 // WHEEL_MILLISECONDS):
        page.mouse.wheel(0, WHEEL_PIXELS)
        page.wait_for_timeout(WHEEL_MILLISECONDS)
        most = max(most, int(page.evaluate("() => document.getElementsByTagName('*').length")))
        if end.count() and end.is_visible():
            return most
    raise RuntimeError("The scroll did not reach the end of the list.")


def main() -> int:
    """Measures, prints and writes the report; returns the exit status."""
    with stack_of(STATE, "--access", "keys") as stack, chromium.running() as browser:
        account = planted_account(stack)
        for _ in range(2):  # the stack's functions start, and the browser fills its own caches
            first_load(browser, stack, account)
        loads = [first_load(browser, stack, account) for _ in range(LOADS)]
        waits = picture_waits(browser, stack, account, PHOTOS)
        crowd = planted_account(stack)
        plant(stack, (image(crowd.tenant_id, number) for number in range(IMAGES)))
        scrolled = scroll(browser, stack, crowd, IMAGES)
    kilobytes = max(load["kilobytes"] for load in loads)
    requests = max(load["requests"] for load in loads)
    interactive = median(load["interactive"] for load in loads)
    rows = [
        {"what": "first load, KB compressed", "value": round(kilobytes, 1)},
        {"what": "with headers, KB", "value": round(max(load["kilobytes_with_headers"] for load in loads), 1)},
        {"what": "requests at first load", "value": requests},
        {"what": f"interactive, ms (median of {len(loads)})", "value": round(interactive)},
        {"what": "the slowest of them, ms", "value": round(max(load["interactive"] for load in loads))},
        {"what": f"done until the picture is seen, s (median of {len(waits)})", "value": round(median(waits), 2)},
        {"what": "the longest of them, s", "value": round(max(waits), 2)},
        {"what": f"long tasks in a scroll over {IMAGES:,} images", "value": scrolled["tasks"]},
        {"what": "the longest of them, ms", "value": round(scrolled["longest"])},
        {"what": "elements in the document, at most", "value": scrolled["elements"]},
    ]
    for row in rows:
        print(f"{row['what']:<60}{row['value']:>10,}")
    figures = (
        ("first load (KB)", kilobytes, MOST_KILOBYTES),
        ("requests at first load", requests, MOST_REQUESTS),
        ("interactive (ms)", interactive, INTERACTIVE_MILLISECONDS),
        ("picture after done (s)", max(waits), PICTURE_SECONDS),
        ("longest task while scrolling (ms)", scrolled["longest"], LONGEST_TASK_MILLISECONDS),
    )
    goals = [Goal(name=name, value=value, limit=limit) for name, value, limit in figures]
    write_report("page", seed=None, rows=rows, goals=goals, folder=FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
