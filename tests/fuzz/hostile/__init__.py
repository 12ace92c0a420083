"""Files made to break a decoder, each with its acceptable outcomes.

Every file is generated and is the same each time. A name begins with the file's format, or with `none`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from tests.fuzz.hostile import (
    animations,
    containers,
    directories,
    gifs,
    impostors,
    jpegs,
    owners,
    pngs,
    profiles,
    webps,
)
from tests.fuzz.hostile.case import DEVELOPED, Case

__all__ = ["DEVELOPED", "Case", "hostile_cases"]


@functools.cache
def hostile_cases() -> Mapping[str, Case]:
    """The whole set, by name. The files themselves are generated on demand."""
    cases: dict[str, Case] = {}
    for module in (impostors, jpegs, pngs, webps, gifs, containers, profiles, directories, owners, animations):
        for case in module.cases():
            if case.name in cases:
                raise ValueError(f"two hostile files are called {case.name}")
            cases[case.name] = case
    return MappingProxyType(cases)
