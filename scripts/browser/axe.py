"""Accessibility: what axe-core finds on a page."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from playwright.sync_api import Page


def findings(page: Page) -> list[str]:
    """What violates one of axe's rules, those of good practice too: one line for each element."""
    if page.evaluate("() => !window.axe"):  # the document may have it from the screen before
        page.evaluate(_source())
    results = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']} ({rule['impact']}): {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in results["violations"]
        for node in rule["nodes"]
    ]


@cache
def _source() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text()
