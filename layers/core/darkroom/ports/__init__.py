"""The ports: what operations need from outside, each implemented by a fake and an adapter that pass one contract
suite."""

from typing import Any


def __getattr__(name: str) -> Any:
    from darkroom.former_names import port_named  # noqa: PLC0415 -- for one release

    return port_named(name)
