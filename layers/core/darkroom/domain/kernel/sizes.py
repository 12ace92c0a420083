"""Writes numbers of bytes for people."""

from __future__ import annotations

_DECIMAL = (1000, ("KB", "MB", "GB", "TB"))
_BINARY = (1024, ("KiB", "MiB", "GiB", "TiB"))


def size_in_words(size_bytes: float) -> str:
    """A size in decimal units, as file managers show it: "812 bytes", "1.5 MB", "25 MB"."""
    return _in_units(size_bytes, *_DECIMAL)


def limit_in_words(limit_bytes: int) -> str:
    """A limit in the units in which it is a whole number: "25 MB", "4 MiB"."""
    return _in_units(limit_bytes, *_units_of(limit_bytes))


def size_beside(size_bytes: int, limit_bytes: int) -> str:
    """A size in the units of a limit, and to the byte where it would read like the limit itself."""
    size = _in_units(size_bytes, *_units_of(limit_bytes))
    return size if size != limit_in_words(limit_bytes) else f"{size_bytes:,} bytes"


def excess_in_words(size_bytes: int, limit_bytes: int) -> str:
    """A size and the limit that it is over: "5.2 MiB; at most 4 MiB"."""
    return f"{size_beside(size_bytes, limit_bytes)}; at most {limit_in_words(limit_bytes)}"


def _units_of(limit_bytes: int) -> tuple[int, tuple[str, ...]]:
    is_binary = any(limit_bytes % 1024**power == 0 and 1 <= limit_bytes / 1024**power < 1000 for power in (1, 2, 3, 4))
    return _BINARY if is_binary and limit_bytes % 1000 else _DECIMAL


def _in_units(size_bytes: float, base: int, units: tuple[str, ...]) -> str:
    if size_bytes < 1000:
        return f"{size_bytes:.0f} byte{'' if size_bytes == 1 else 's'}"
    for unit in units:
        size_bytes /= base
        if size_bytes < 999.95 or unit == units[-1]:
            break
    return f"{size_bytes:.1f}".removesuffix(".0") + f" {unit}"
