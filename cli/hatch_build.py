"""Puts the expanded template into the wheel: the machine on which the command is installed expands none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ExpandedTemplates(BuildHookInterface[Any]):
    """Expands it as each kind of start of the functions needs it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files; an editable installation reads the checkout itself."""
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root).parent / "scripts"))
        from repository.expand_template import expanded_template  # noqa: PLC0415 - it is found there

        self._folder = TemporaryDirectory()
        for snap_start in ("None", "PublishedVersions"):
            name = f"template.{snap_start}.json"
            file = Path(self._folder.name) / name
            file.write_text(json.dumps(expanded_template(snap_start=snap_start)))
            build_data["force_include"][str(file)] = f"darkroom_cli/data/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes them from this machine."""
        if version != "editable":
            self._folder.cleanup()
