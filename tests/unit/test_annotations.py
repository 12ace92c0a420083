"""A client's own words on an image: what is taken, what is refused, and where they are found again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.events.event import body_of, events_of_image, without_details
from darkroom.domain.images.annotations import Annotations, metadata_of, reference_of, tags_of
from darkroom.domain.images.image import Image
from darkroom.domain.images.listing import ListQuery
from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.webhooks.row_events import event_of
from darkroom.http.images.documents import status_document
from darkroom.http.images.request_models import order_in
from darkroom.operations.images.list_images import ListImagesPorts, list_images
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.image_changes import NOW, accepted, claimed, done

WORDS = Annotations(reference="order-17/front", tags=("shoes", "summer 2027"), metadata='{"shelf":17}')


def annotated(image: Image, words: Annotations = WORDS) -> Image:
    return replace(image, reference=words.reference, tags=words.tags, metadata=words.metadata)


@pytest.mark.parametrize("text", ["x", "Größe 42", "a,b", "x" * 128, "👟" * 128, "a  b", '<b>"', "#1/2?&%"])
def test_a_reference_is_kept_as_it_is(text: str) -> None:
    assert reference_of(text) == text


@pytest.mark.parametrize("text", ["", " ", " x", "x ", "x\n", "a\tb", "a\0b", "a\x85b", "\ud800", "x" * 129])
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(Rejected, match="1 to 128 characters") as refusal:
        reference_of(text)
    assert refusal.value.code == "invalid_reference"


@pytest.mark.parametrize(
    "texts", [[""], ["a", ""], [" a"], ["a,b"], ["x" * 65], ["\ud800"], ["a", "b", "a"], [str(n) for n in range(11)]]
)
def test_what_are_no_tags_is_refused(texts: list[str]) -> None:
    with pytest.raises(Rejected) as refusal:
        tags_of(texts)
    assert refusal.value.code == "invalid_tags"
    assert tags_of([str(number) for number in range(10)] + []) == tuple("0123456789")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("{}", "{}"),
        (' {"b": 1, "a": [1.50, -0.0, 1e3, true, null]} ', '{"b":1,"a":[1.5,-0.0,1000.0,true,null]}'),
        ('{"a": 12345678901234567890123, "\\u00e4": "\\u0000"}', '{"a":12345678901234567890123,"ä":"\\u0000"}'),
        ({"a": {"b": "c"}}, '{"a":{"b":"c"}}'),
        ('{"a": "' + "ä" * 508 + '"}', '{"a":"' + "ä" * 508 + '"}'),
        ('{"a":' + " " * 5000 + "1}", '{"a":1}'),
    ],
)
def test_metadata_is_kept_as_the_shortest_text_of_the_same_json(given: Any, kept: str) -> None:
    assert metadata_of(given) == kept
    assert metadata_of(kept) == kept, "and read again it is the same"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        *(
            (text, "this is no JSON")
            for text in ("", "{", "{'a': 1}", '{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud800"}')
        ),
        ('{"a": ' * 9999, "this is no JSON"),
        ({"a": float("inf")}, "this is no JSON"),
        *((text, "this is none") for text in ("null", "[]", '"a"', "17")),
        ('{"a":"' + "ä" * 509 + '"}', "1,026 bytes; at most 1 KiB"),
    ],
)
def test_what_is_no_metadata_is_refused(given: Any, reason: str) -> None:
    with pytest.raises(Rejected, match=reason) as refusal:
        metadata_of(given)
    assert refusal.value.code == "invalid_metadata"


def test_words_are_read_from_a_query_and_from_json_alike() -> None:
    asked = {"reference": "order-17/front", "tags": "shoes,summer 2027", "metadata": '{ "shelf": 17 }'}
    written = {"reference": "order-17/front", "tags": ["shoes", "summer 2027"], "metadata": {"shelf": 17}}
    assert order_in(asked).annotations == order_in(written).annotations == WORDS


@pytest.mark.guards("annotations-in-fingerprint")
def test_other_words_are_another_request_and_none_the_same_as_before_there_were_any() -> None:
    signatures = [
        order_in(asked).request_signature
        for asked in ({}, {"reference": "a"}, {"tags": "a"}, {"metadata": '{"a":1}'}, {"tags": "b,a"})
    ]
    assert len(set(signatures)) == 5 and signatures[0] == "preset:standard"
    assert order_in({"tags": "a,b"}).request_signature == signatures[4], "their order means nothing"


def test_words_are_in_the_row_the_document_and_the_events_and_gone_with_the_image(world: World) -> None:
    image = world.submit(jpeg(), annotations=WORDS).image
    shown = status_document(image, lambda variant: variant.key)
    assert (shown["reference"], shown["tags"], shown["metadata"]) == (
        "order-17/front",
        ["shoes", "summer 2027"],
        {"shelf": 17},
    )
    for event in events_of_image(annotated(done(claimed(accepted())))):
        body = body_of(event, source="/darkroom/test")
        assert event.data["reference"] == "order-17/front" and "shoes" not in body and "shelf" not in body
        assert "order-17" not in without_details(body)
    world.delete(image.image_id)
    row = world.row(image.image_id)
    assert (row.reference, row.tags, row.metadata, row.reference_key) == (None, (), None, None)


@pytest.mark.guards("erasure-tombstone-no-reference", "erasure-tombstone-no-tags", "erasure-tombstone-no-metadata")
def test_a_tombstone_has_none_of_them_nor_has_the_event_of_the_deletion() -> None:
    image = annotated(done(claimed(accepted())))
    tombstone = delete(image, now=NOW)
    assert (tombstone.reference, tombstone.tags, tombstone.metadata) == (None, (), None)
    event = event_of(image, tombstone)
    assert event is not None and "reference" not in event.data


def test_a_list_has_the_images_of_a_reference_or_of_a_tag_and_of_both(world: World) -> None:
    given = [("a", "x"), ("a", "y"), ("b", "x"), (None, "x")]
    ids = [
        world.submit(jpeg(), annotations=Annotations(reference=reference, tags=(tag, "all"))).image.image_id
        for reference, tag in given
    ]
    world.submit(jpeg(), tenant_id="another", annotations=Annotations(reference="a", tags=("x",)))
    world.submit(jpeg())

    def listed(**asked: Any) -> list[int]:
        page = list_images(world.ports(ListImagesPorts), ListQuery(limit=9, **asked), tenant_id="default")
        return sorted(ids.index(image.image_id) for image in page.images)

    assert listed(reference="a") == [0, 1]
    assert (listed(tag="x"), listed(tag="all"), listed(tag="X")) == ([0, 2, 3], [0, 1, 2, 3], [])
    assert (listed(reference="a", tag="x"), listed(reference="A")) == ([0], [])
    world.delete(ids[0])
    assert (listed(reference="a"), listed(tag="x")) == ([1], [2, 3])


@pytest.mark.parametrize(
    ("asked", "read_units"), [({}, 32), ({"reference": "a"}, 32), ({"tag": "a"}, 560), ({"statuses": frozenset()}, 560)]
)
def test_a_filter_that_only_rows_answer_costs_what_it_may_read(asked: dict[str, Any], read_units: int) -> None:
    assert ListQuery(limit=20, **asked).read_units == read_units
