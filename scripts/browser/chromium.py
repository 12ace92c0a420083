"""The machine's Chromium, through Playwright."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from browser.installed import path


@contextmanager
def running() -> Iterator[Browser]:
    """A headless browser for the length of the block. Raises NoChromium."""
    executable = path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable)
        try:
            yield browser
        finally:
            browser.close()
