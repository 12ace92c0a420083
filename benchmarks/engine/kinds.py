"""What a variant's own header says about its encoding, to verify that the engines' settings are equal."""

from __future__ import annotations

from PIL import Image, JpegImagePlugin

_SUBSAMPLINGS = {0: "4:4:4", 1: "4:2:2", 2: "4:2:0"}
_STANDARD_HUFFMAN_BYTES = 416
"""The four tables of ITU-T T.81, annex K.3, in DHT segments; tables made for one picture are far smaller."""


def kind_of(opened: Image.Image, body: bytes) -> str:
    """The kind of file."""
    if isinstance(opened, JpegImagePlugin.JpegImageFile):
        subsampling = _SUBSAMPLINGS.get(JpegImagePlugin.get_sampling(opened), "another subsampling")
        tables = "standard" if huffman_bytes(body) == _STANDARD_HUFFMAN_BYTES else "optimised"
        process = "progressive" if opened.info.get("progressive") else "baseline"
        return f"JPEG {subsampling} {process}, {tables} Huffman tables"
    lossless = opened.format == "PNG" or b"VP8L" in body[:64]
    return f"{opened.format} {opened.mode}, {'lossless' if lossless else 'lossy'}"


def huffman_bytes(body: bytes) -> int:
    """How many bytes a JPEG's Huffman tables take before its first scan (ITU-T T.81, annex B.2.4.2)."""
    at, total = 2, 0
    while body[at + 1] != 0xDA:  # SOS: the tables of a baseline file all come before it
        length = int.from_bytes(body[at + 2 : at + 4])
        if body[at + 1] == 0xC4:  # DHT
            total += length - 2
        at += 2 + length
    return total
