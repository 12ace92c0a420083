"""The API of the page."""

from typing import Any


def __getattr__(name: str) -> Any:
    from darkroom.former_names import name_in  # noqa: PLC0415 -- for one release

    return name_in("darkroom.http.page.page", name)
