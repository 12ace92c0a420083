"""A client's own words on an image: they mean nothing to the stack, which gives them back, finds images by them, and
erases them with the image."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.sizes import excess_in_words

MAX_REFERENCE_CHARACTERS = 128
MAX_TAGS, MAX_TAG_CHARACTERS = 10, 64
MAX_METADATA_BYTES = 1024
"""Of UTF-8, without spaces between its parts: so much is written again with every write of a row."""

REFERENCE_PATTERN = r"[^\x00-\x20\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\x9f])?"
"""No control characters, and no space at an end, which nobody would see."""

TAG_PATTERN = REFERENCE_PATTERN.replace("[^", "[^,")
"""The same without commas, which separate tags in a query."""

_REFERENCE, _TAG = re.compile(REFERENCE_PATTERN), re.compile(TAG_PATTERN)


@dataclass(frozen=True, kw_only=True)
class Annotations:
    """What a client has written on an image; `metadata` is a JSON object as text, as short as possible."""

    reference: str | None = None
    tags: tuple[str, ...] = ()
    metadata: str | None = None

    @property
    def asked_for(self) -> str:
        """What makes the words of two requests under one Idempotency-Key the same; empty if there are none."""
        tags = ",".join(sorted(self.tags)) or None
        parts = (("reference", self.reference), ("tags", tags), ("metadata", self.metadata))
        return "".join(f"\0{name}:{value}" for name, value in parts if value is not None)


NO_ANNOTATIONS = Annotations()


def reference_of(text: str) -> str:
    """The reference that a client gives, or asks for. Raises Rejected (`invalid_reference`)."""
    if len(text) <= MAX_REFERENCE_CHARACTERS and _REFERENCE.fullmatch(text) and _is_unicode(text):
        return text
    raise Rejected(
        "invalid_reference",
        f"reference is 1 to {MAX_REFERENCE_CHARACTERS} characters, without control characters and without a space at "
        "either end.",
    )


def tag_of(text: str) -> str:
    """The tag that a client gives, or asks for. Raises Rejected (`invalid_tags`)."""
    if len(text) <= MAX_TAG_CHARACTERS and _TAG.fullmatch(text) and _is_unicode(text):
        return text
    raise Rejected(
        "invalid_tags",
        f"A tag is 1 to {MAX_TAG_CHARACTERS} characters, without commas, control characters and a space at either end.",
    )


def tags_of(texts: Iterable[str]) -> tuple[str, ...]:
    """The tags that a client gives. Raises Rejected (`invalid_tags`)."""
    tags = tuple(map(tag_of, texts))
    if len(tags) > MAX_TAGS or len(set(tags)) < len(tags):
        raise Rejected("invalid_tags", f"An image has at most {MAX_TAGS} tags, each once.")
    return tags


def metadata_of(value: Any) -> str:
    """The text of the JSON object that a client gives, or of what it wrote in its place. Raises Rejected
    (`invalid_metadata`)."""
    try:
        written = json.loads(value) if isinstance(value, str) else value
        # Numbers are those of IEEE 754 then, which every reader of JSON understands (RFC 8259, section 6).
        text = json.dumps(written, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size_bytes = len(text.encode())
    except (ValueError, RecursionError) as error:
        raise _invalid_metadata("this is no JSON") from error
    if not isinstance(written, dict):
        raise _invalid_metadata("this is none")
    if size_bytes > MAX_METADATA_BYTES:
        raise _invalid_metadata(f"this has {excess_in_words(size_bytes, MAX_METADATA_BYTES)} are allowed")
    return text


def _invalid_metadata(reason: str) -> Rejected:
    return Rejected("invalid_metadata", f"metadata is a JSON object of your own: {reason}.")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which no table takes
        return False
    return True
