"""When a client's copy of a document is current."""

from dataclasses import replace

import pytest

from darkroom.http.images.entity_tags import entity_tag, matches_entity_tag
from tests.support.images import NOW, pending


def test_the_entity_tag_changes_with_every_write_and_every_five_minutes() -> None:
    image = pending()
    tag = entity_tag(image, NOW)
    assert entity_tag(image, NOW + 299_999) == tag
    assert entity_tag(image, NOW + 300_000) != tag
    assert entity_tag(replace(image, version=2), NOW) != tag


@pytest.mark.parametrize(
    ("header", "matches"),
    [
        ('W/"1-2"', True),
        ('"1-2"', True),
        ('"x", W/"1-2"', True),
        ("*", True),
        ('"1-3"', False),
        ("", False),
        (None, False),
        ("1-2", False),
    ],
)
def test_if_none_match_is_compared_weakly(header: str | None, matches: bool) -> None:
    assert matches_entity_tag(header, 'W/"1-2"') is matches
