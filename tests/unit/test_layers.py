"""The lock files of the layers agree: the bytecode is that of the very packages."""

from __future__ import annotations

import re

from checks.report import ROOT

WITHOUT_MODULES = {"pyvips-binary"}


def pins(layer: str) -> dict[str, str]:
    """Each package of a layer, with its version and hashes."""
    text = (ROOT / "layers" / layer / "requirements.txt").read_text()
    return {block.partition("==")[0]: block.strip() for block in re.split(r"(?m)^(?=[a-z])", text) if "==" in block}


def test_the_bytecode_is_of_all_packages_and_of_the_same_versions() -> None:
    packages = pins("dependencies") | pins("imaging")
    assert pins("bytecode") == {name: pin for name, pin in packages.items() if name not in WITHOUT_MODULES}
