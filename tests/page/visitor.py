"""Somebody with a browser who visits the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

from browser.tabs import NARROW, WIDE, new_context, sign_in
from browser.watch import TabWatch
from tests.local.local_stack import LocalStack
from tests.support.planted import Account

PATIENCE_SECONDS = 30
"""How long a tab may take for what a test waits for, on a busy machine."""

SHOP = "http://shop.localhost"
"""A website of somebody else's, whose scripts may call the API."""

LOOKS = [(NARROW, True), (WIDE, False)]
"""Widths, and whether a tab is dark. What fits depends on the one, what can be read on the other: each comes once."""


@dataclass
class Visitor:
    """Somebody with a browser: opens tabs on the stack's page, signed in unless told otherwise."""

    browser: Browser
    stack: LocalStack
    account: Account
    watch: TabWatch
    _contexts: list[BrowserContext] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Of the page."""
        return f"{self.stack.api_url}/app/"

    def context(self, **options: Any) -> BrowserContext:
        """A fresh context, which is watched."""
        context = new_context(self.browser, **options)
        context.set_default_timeout(PATIENCE_SECONDS * 1000)
        self.watch.attach(context)
        self._contexts.append(context)
        return context

    def tab(self, screen: str = "#/", *, is_signed_in: bool = True, **options: Any) -> Page:
        """A tab in a fresh context that shows a screen."""
        page = self.context(**options).new_page()
        if is_signed_in:
            sign_in(page, self.stack.api_url, self.account.key)
        page.goto(self.address + screen)
        return page

    def close(self) -> None:
        """Closes every tab."""
        while self._contexts:
            self._contexts.pop().close()
