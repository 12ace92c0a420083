"""Packs bits into bytes, lowest first, as WebP's lossless format and GIF's LZW require."""

from __future__ import annotations


class BitWriter:
    """Collects numbers of a given number of bits each."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._held = 0
        self._count = 0

    def put(self, value: int, bits: int) -> None:
        """Append the lowest `bits` bits of `value`."""
        self._held |= value << self._count
        self._count += bits
        if self._count >= 8:
            byte_count = self._count // 8
            self._out += (self._held & (1 << 8 * byte_count) - 1).to_bytes(byte_count, "little")
            self._held >>= 8 * byte_count
            self._count -= 8 * byte_count

    def done(self) -> bytes:
        """Everything so far, padded with zeros to a whole byte."""
        return bytes(self._out) + (bytes([self._held]) if self._count else b"")
