"""The values that say whose picture it is, and how long they may be."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html import escape

MAX_CHARACTERS = 1024
"""The most characters of a value. IPTC-IIM allows a notice 128 bytes, and real ones have a few hundred characters."""

MAX_CREATORS = 16

MAX_TOTAL_BYTES = 4096
"""The most bytes of all values, in UTF-8 and escaped for XML: a variant grows by at most three times that."""

_LONGEST_TEXT = 8 * MAX_CHARACTERS
"""No more of a text is looked at."""

_LINE_BREAKS = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
_DROPPED = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")
"""Control characters, marks that reorder what is shown, and what XML 1.0 has no form for."""

_URL = re.compile(r"https?://[^\s\"<>\\^`{|}]+", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Rights:
    """Who made a picture, who owns it, and who may use it how. What is not known is empty.

    The names are those of the IPTC Photo Metadata Standard (2025.1): creator, copyright notice, credit line, source,
    rights usage terms, web statement of rights, licensor URL; `licence_url` is Creative Commons' (cc:license).
    """

    creators: tuple[str, ...] = ()
    copyright: str = ""
    credit: str = ""
    source: str = ""
    usage_terms: str = ""
    web_statement: str = ""
    licence_url: str = ""
    licensor_url: str = ""


def plain(text: str) -> str:
    """A text on one line, without control characters and without marks that reorder what is shown."""
    return _DROPPED.sub("", _LINE_BREAKS.sub(" ", text[:_LONGEST_TEXT])).strip()  # guard: rights-control-characters


def decoded(text: bytes) -> str:
    """Text whose encoding is not known for certain: UTF-8 if it is valid, otherwise Windows-1252.

    EXIF says ASCII and IPTC-IIM often nothing at all, while software writes either of these two (Metadata Working
    Group, Guidelines for Handling Image Metadata 2.0, on text encodings). Windows-1252 is Latin-1 with letters and
    quotation marks in place of control characters; the five bytes that it leaves undefined are dropped as such.
    """
    text = text[:_LONGEST_TEXT]
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        # Old software cuts a text after so many bytes: a character that ends too early is no sign of another
        # encoding, if there are whole ones before it.
        characters = text[: error.start].decode()
        if error.reason == "unexpected end of data" and not characters.isascii():
            return characters
        return text.decode("cp1252", "ignore")  # guard: rights-encoding-fallback


def bounded(rights: Rights) -> tuple[Rights, bool]:
    """The rights within all limits, and whether anything was cut or left out for that.

    A URL is whole or absent, since half of one leads elsewhere; it begins with http:// or https://, so that nothing
    that shows it as a link runs it.
    """
    room = MAX_TOTAL_BYTES
    kept: dict[str, str | tuple[str, ...]] = {}
    for name, value in vars(rights).items():
        texts = value if isinstance(value, tuple) else (value,)
        fitting = []
        for text in texts[:MAX_CREATORS]:
            short = _url(text, room) if name.endswith(("_url", "_statement")) else _beginning(text, room)
            room -= _size(short)  # guard: rights-total-size-bound
            fitting.append(short)
        kept[name] = tuple(filter(None, fitting)) if isinstance(value, tuple) else fitting[0]
    within = replace(rights, **kept)  # type: ignore[arg-type]  # each value has the type that it had
    return within, within != rights


def _size(text: str) -> int:
    return len(escape(text).encode())


def _url(text: str, room: int) -> str:
    # guard: rights-safe-link-url
    return text if len(text) <= MAX_CHARACTERS and _size(text) <= room and _URL.fullmatch(text) else ""


def _beginning(text: str, room: int) -> str:
    text = text[:MAX_CHARACTERS]
    for index, character in enumerate(text):
        room -= _size(character)
        if room < 0:
            return text[:index].rstrip()
    return text
