"""How a request asks for a list of images."""

import pytest

from darkroom.domain.images.image import Status
from darkroom.domain.images.listing import LISTED_STATUSES, Cursor, ListQuery
from darkroom.domain.kernel.errors import Rejected
from darkroom.http.images.list_queries import cursor_text, read_list_query

NOW = 1_795_251_600_000


def test_words_become_a_list_query() -> None:
    place = Cursor(created_at=NOW, image_id="0" * 26)
    assert read_list_query() == ListQuery(limit=20)
    assert read_list_query(limit="100", status="pending,done, failed", cursor=cursor_text(place)) == ListQuery(
        limit=100, statuses=frozenset({Status.PENDING, Status.DONE, Status.FAILED}), after=place
    )
    assert read_list_query(reference="a,b", tag="c d") == ListQuery(limit=20, reference="a,b", tag="c d")


def test_a_list_with_addresses_costs_what_signing_them_costs() -> None:
    asked = read_list_query(urls="thumb", limit="100")
    assert asked == ListQuery(limit=100, with_thumbs=True)
    assert (asked.signing_units, ListQuery(limit=1, with_thumbs=True).signing_units) == (1, 1)
    assert ListQuery(limit=100).signing_units == 0


@pytest.mark.parametrize("urls", ["", "all", "thumb,large", "THUMB"])
def test_other_addresses_than_those_there_are_are_refused(urls: str) -> None:
    with pytest.raises(Rejected, match="thumb") as rejected:
        read_list_query(urls=urls)
    assert rejected.value.code == "unknown_urls"


@pytest.mark.parametrize(
    ("asked", "code"), [({"reference": ""}, "invalid_reference"), ({"tag": "a,b"}, "invalid_tags")]
)
def test_what_no_image_can_have_is_refused(asked: dict[str, str], code: str) -> None:
    with pytest.raises(Rejected) as rejected:
        read_list_query(**asked)
    assert rejected.value.code == code


@pytest.mark.parametrize("limit", ["0", "101", "-1", "1.0", "", " 5", "٣", "9" * 5000, "1,2"])
def test_an_unusable_limit_is_refused(limit: str) -> None:
    with pytest.raises(Rejected) as rejected:
        read_list_query(limit=limit)
    assert rejected.value.code == "invalid_limit"


@pytest.mark.parametrize("status", ["", "ready", "done,", "DONE", "cancelled"])
def test_a_status_that_no_listed_image_has_is_refused_with_those_there_are(status: str) -> None:
    with pytest.raises(Rejected, match="awaiting_upload, fetching, scheduled, pending") as rejected:
        read_list_query(status=status)
    assert rejected.value.code == "unknown_status"
    assert Status.CANCELLED not in LISTED_STATUSES


@pytest.mark.parametrize(
    "cursor", ["", "x", "0" * 38 + "\n", "0" * 37, "0" * 39, "0" * 12 + "8" * 26, "G" + "0" * 37, "٣" * 38]
)
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(Rejected) as rejected:
        read_list_query(cursor=cursor)
    assert rejected.value.code == "invalid_cursor"
