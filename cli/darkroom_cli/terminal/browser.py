"""Opens an address in the machine's browser."""

from __future__ import annotations

from darkroom_cli.terminal import display


def open_in_browser(url: str, otherwise: str | None = None) -> None:
    """Opens it, or says that somebody has to: a machine may have no browser, or no screen. `otherwise` says what to
    open then. The url is an argument of a process, which every user of the machine can read: it holds no secret."""
    import webbrowser  # noqa: PLC0415 -- it looks for browsers when it is imported

    if not webbrowser.open(url):
        display.complain(f"no browser was found on this machine. {otherwise or f'Open {url} in one.'}")
