"""The engine's version: whoever changes the bytes of an unchanged recipe counts it up."""

from __future__ import annotations

import hashlib
import platform

import pytest

from darkroom.domain.edge.instructions import ENGINE, FORMATS, spec_of
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import develop
from tests.support.fakes.pictures import encoded, jpeg, picture

BYTES = {1: "78b0e1c018adc0a2"}
"""By version, the first digits of the SHA-256 of all variants below. Other bytes: ENGINE is the next number, with a new
entry here, so that what the old version has made on request is made again, at other keys."""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the bytes of another processor may be others")
def test_other_bytes_are_another_version() -> None:
    seen = hashlib.sha256()
    for source in (jpeg(640, 480), encoded(picture(300, 200), "PNG")):
        for extension in FORMATS:
            for instructions in ("w_160", "w_64-h_64-f_cover-g_attention"):
                spec = spec_of(instructions, extension)
                assert isinstance(spec, VariantSpec)
                seen.update(develop(source, Recipe(variants=(spec,))).variants[0].body)
    assert seen.hexdigest()[:16] == BYTES[ENGINE]
