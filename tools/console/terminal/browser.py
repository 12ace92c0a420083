"""Opens an address in the machine's browser."""

from __future__ import annotations

from console.terminal import display


def open_in_browser(url: str) -> None:
    """Opens it, or says that somebody has to: a machine may have no browser, or no screen."""
    import webbrowser  # noqa: PLC0415 -- it looks for browsers when it is imported

    if not webbrowser.open(url):
        display.complain(f"no browser was found on this machine. Open {url} in one.")
