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


@pytest.mark.parametrize(
    ("parameter", "code", "values"),
    [
        ("urls", "unknown_urls", ["", "all", "thumb,large", "THUMB"]),
        ("reference", "invalid_reference", [""]),
        ("tag", "invalid_tags", ["a,b"]),
        ("limit", "invalid_limit", ["0", "101", "-1", "1.0", "", " 5", "٣", "9" * 5000, "1,2"]),
        ("status", "unknown_status", ["", "ready", "done,", "DONE", "cancelled"]),
        ("cursor", "invalid_cursor", ["", "x", "0" * 38 + "\n", "0" * 37, "0" * 39, "0" * 12 + "8" * 26]),
        ("cursor", "invalid_cursor", ["G" + "0" * 37, "٣" * 38]),
    ],
)
def test_what_no_list_can_have_is_refused_with_what_there_is(parameter: str, code: str, values: list[str]) -> None:
    there_is = {"urls": "thumb", "status": "awaiting_upload, fetching, scheduled, pending"}
    for value in values:
        with pytest.raises(Rejected, match=there_is.get(parameter)) as rejected:
            read_list_query(**{parameter: value})
        assert rejected.value.code == code, value
    assert Status.CANCELLED not in LISTED_STATUSES
