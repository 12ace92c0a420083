"""Finds the processes that a test started, by its folder."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Started:
    """What a test started in a folder of its own."""

    folder: Path

    def processes(self) -> dict[int, str]:
        """The command of every living process whose variables, command or folder name this folder."""
        commands = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                with suppress(OSError):
                    command = (entry / "cmdline").read_bytes()
                    marks = [command, (entry / "environ").read_bytes(), os.fsencode((entry / "cwd").readlink())]
                    if any(os.fsencode(self.folder) in mark for mark in marks):
                        commands[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
        return commands
