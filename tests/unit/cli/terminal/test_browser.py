"""Opening a page in the machine's browser."""

from __future__ import annotations

import webbrowser

import pytest

from darkroom_cli.terminal.browser import open_in_browser

URL = "http://127.0.0.1:1/app/"


def test_without_a_browser_the_address_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    open_in_browser(URL)
    assert URL in capsys.readouterr().err
