"""Watches a tab: whatever it reports, blocks, fetches from elsewhere, or executes although it should only show it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Request

CANARY = "canary"
"""A function of the window that hostile text tries to call."""

_REPORT = """
addEventListener("securitypolicyviolation", (event) => {
    const place = `${event.sourceFile}:${event.lineNumber}`;
    reportViolation(`${event.violatedDirective}: ${event.blockedURI} ${event.sample} at ${place}`);
});
"""


@dataclass
class TabWatch:
    """What happened in the tabs of a context that should not happen; `hosts` are the only ones that they may call.

    `requests` are all that were sent, `findings` what is wrong with the page.
    """

    hosts: Collection[str]
    findings: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    _expected: list[str] = field(default_factory=list)

    def attach(self, context: BrowserContext) -> None:
        """Watches every tab of the context, from now on."""
        context.expose_function("reportViolation", lambda what: self._found("blocked by the policy", what))
        context.expose_function(CANARY, lambda *_: self._found("executed", "hostile text"))
        context.add_init_script(_REPORT)
        context.on("console", self._console)
        context.on("weberror", lambda failed: self._found("error", str(failed.error)))
        context.on("dialog", self._dialog)
        context.on("request", self._request)

    @contextmanager
    def expecting(self, *patterns: str) -> Iterator[None]:
        """Console errors that match one of these patterns are what the block is about: Chromium logs each refused
        request."""
        self._expected += patterns
        try:
            yield
        finally:
            self._expected = [each for each in self._expected if each not in patterns]

    def _found(self, kind: str, what: str) -> None:
        self.findings.append(f"{kind}: {what}")

    def _console(self, message: ConsoleMessage) -> None:
        text = f"{message.text} ({message.location.get('url', '')})"
        if message.type in ("error", "warning") and not any(re.search(each, text) for each in self._expected):
            self._found(f"console {message.type}", text)

    def _dialog(self, dialog: Dialog) -> None:
        if dialog.type == "beforeunload":  # the page asks before it loses files that are not sent
            dialog.accept()
            return
        self._found("dialog", dialog.message)
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        self.requests.append(request)
        address = urlsplit(request.url)
        if address.scheme not in ("blob", "data") and address.netloc not in self.hosts:
            self._found("request elsewhere", request.url)
