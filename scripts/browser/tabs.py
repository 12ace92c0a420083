"""Tabs of the page: their size, their colours, and who is signed in."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

NARROW, WIDE = 390, 1440
"""The widths of a phone and of a laptop, in CSS pixels."""

_HEIGHTS = {NARROW: 844}
_HEIGHT = 900


def new_context(browser: Browser, *, width: int = WIDE, dark: bool = False, **options: Any) -> BrowserContext:
    """A context with nothing in its cache; reduced motion, British dates and UTC, so that pictures do not differ."""
    return browser.new_context(
        viewport={"width": width, "height": _HEIGHTS.get(width, _HEIGHT)},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
        **options,
    )


def sign_in(page: Page, api_url: str, key: str) -> None:
    """From its next address on the tab has the key, as if it had been entered there; `api_url` is the only origin that
    gets it."""
    page.add_init_script(
        f"if (location.origin === {json.dumps(api_url)} && sessionStorage.getItem('darkroom.credential') === null) "
        f"sessionStorage.setItem('darkroom.credential', {json.dumps(key)});"
    )
