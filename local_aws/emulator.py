"""What the corrections know about the emulator that they correct."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Emulator:
    """The running emulator: its addresses, and how it runs functions."""

    gateway_url: str
    function_python: Path
    data_dir: Path
    layers_dir: Path | None = None  # of unpacked layers, which other emulators may use; None: in `data_dir`
    edge_url: str = ""
    clock: Mapping[str, str] = field(default_factory=dict)  # variables that make functions' clocks move with it
    concurrency: int | None = None  # per function; None: derived from the machine
    idle_seconds: float = 300  # after which a function's process is stopped
    initialised_ahead: Sequence[str] = ()  # logical ids of functions
