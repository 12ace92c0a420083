"""The local stack's clock: this machine's, until it is moved ahead for the emulator and all its functions at once.

libfaketime, which is loaded before the C library, adds an offset from a file to the time of day. The monotonic clock
(CLOCK_MONOTONIC, which sleeps and timeouts use) is unchanged.
https://github.com/wolfcw/libfaketime/blob/master/README
"""

import os
import platform
from pathlib import Path

LONGEST_WARP_SECONDS = 366 * 86_400
"""The furthest that the clock can be moved at once: a little more than the longest delay."""

SETTLE_SECONDS = 1.1
"""How long after a move a process may still use the old time: libfaketime reads the file when a second begins."""

_FILE = "FAKETIME_TIMESTAMP_FILE"
_FIX = "FAKETIME_FORCE_MONOTONIC_FIX"
VARIABLES = ("LD_PRELOAD", _FILE, "FAKETIME_CACHE_DURATION", "FAKETIME_DISABLE_SHM", "DONT_FAKE_MONOTONIC", _FIX)
"""The environment variables that make a process's clock move with the others'."""

_ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
_ELF_MACHINE_BYTES = slice(18, 20)


def variables(python: Path, file: Path) -> dict[str, str]:
    """The variables that let the emulator's clock move, by its environment's interpreter; none if it cannot."""
    library = _library(python)
    if library is None:
        return {}
    return {
        "LD_PRELOAD": str(library),
        _FILE: str(file),
        "FAKETIME_CACHE_DURATION": "0",  # more than so many whole seconds after the file was read, it is read again
        "FAKETIME_DISABLE_SHM": "1",
        "DONT_FAKE_MONOTONIC": "1",
        # Without it libfaketime parses glibc's version at every wait with a time limit, which is what a thread of
        # Python does whenever another one runs: that took twice the processor time. Both values are right here: they
        # differ only where the monotonic clock is moved too (libfaketime.c, pthread_cond_timedwait_common).
        _FIX: "0",
    }


def obstacle(python: Path) -> str | None:
    """Why the clock cannot be moved here, or None if it can."""
    if _library(python) is not None:
        return None
    return (
        "The clock of this stack cannot be moved: libfaketime's package holds a library for x86_64 Linux alone, and "
        "none is loaded from a folder whose name has a space or a colon."
    )


def set_ahead(file: Path, seconds: int) -> None:
    """Set every clock that follows `file` that far ahead of this machine's."""
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_text(f"{seconds:+d}\n")
    unfinished.replace(file)


def seconds_ahead(file: Path) -> int:
    """How far ahead of this machine's the clocks are; 0 if they have not been moved."""
    try:
        return int(file.read_text())
    except FileNotFoundError:
        return 0


def _library(python: Path) -> Path | None:
    """The library, if this machine can load it: for one built for another processor, the loader prints an error each
    time."""
    for library in (python.parent.parent / "lib").glob(
        "python3*/site-packages/libfaketime/vendor/*/src/libfaketime.so.1"
    ):
        machine = int.from_bytes(library.read_bytes()[_ELF_MACHINE_BYTES], "little")
        if machine == _ELF_MACHINES.get(platform.machine()) and not set(" :") & set(str(library)):
            return library
    return None
