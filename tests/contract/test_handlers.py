"""The real handlers over AWS by moto: events in, answers and rows out."""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import boto3
import pytest
import time_machine

from darkroom.aws.images.images_table import ImagesTable
from darkroom.aws.images.throughput_table import ThroughputTable
from darkroom.domain.images.image import Cause, Status
from darkroom.domain.images.load_shedding import Work
from darkroom.domain.images.service_level import FAST_BURN, SLOW_BURN, SUCCEEDED, Outcomes, failed_attempt
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.fingerprint import fingerprint
from darkroom.domain.kernel.lanes import SLOW
from darkroom.domain.kernel.message import Message
from darkroom.settings import MissingSettings, SubmitImageSettings
from tests.contract.conftest import Aws
from tests.contract.functions import PHOTO, ROOT, Functions, call, document, http_event, problem, received
from tests.support.fakes.pictures import encoded, jpeg, picture
from tests.support.fakes.rows import accepted_image
from tests.support.faults import refuse
from tests.support.template import DELIVERY_FOLDERS


def test_a_photo_is_accepted_developed_and_read(functions: Functions) -> None:
    accepted = functions.post()
    assert accepted["statusCode"] == 202
    image_id = document(accepted)["id"]
    assert accepted["headers"]["Location"] == f"/images/{image_id}/status"
    assert accepted["headers"]["Retry-After"] == "1"
    assert document(accepted)["status"] == "pending"

    assert functions.work() == {"batchItemFailures": []}

    answer = functions.get(f"/images/{image_id}/status")
    assert answer["statusCode"] == 200
    assert document(answer)["status"] == "done"
    assert [variant["name"] for variant in document(answer)["variants"]] == ["thumb", "medium", "large", "webp"]
    assert "Retry-After" not in answer["headers"]


def test_the_status_comes_with_a_validator(functions: Functions) -> None:
    image_id = document(functions.post())["id"]
    first = functions.get(f"/images/{image_id}/status")
    assert first["headers"]["Retry-After"] == "1"
    again = functions.get(f"/images/{image_id}/status", if_none_match=first["headers"]["ETag"])
    assert again["statusCode"] == 304
    assert not again.get("body")
    assert again["headers"]["ETag"] == first["headers"]["ETag"]


def test_a_variant_is_a_redirect_to_a_signed_address(functions: Functions) -> None:
    image_id = document(functions.post())["id"]
    problem(functions.get(f"/images/{image_id}/variants/webp"), 409, "variant_not_ready")
    functions.work()
    answer = functions.get(f"/images/{image_id}/variants/webp")
    assert answer["statusCode"] == 307
    assert f"outputs/{image_id}/1/webp.webp" in answer["headers"]["Location"]
    assert "X-Amz-Signature" in answer["headers"]["Location"]
    assert "large" in problem(functions.get(f"/images/{image_id}/variants/huge"), 404, "unknown_variant")["detail"]


@pytest.mark.guards("api-variant-signed-for-head")
@time_machine.travel("2026-11-26T09:00:00Z", tick=False)
def test_a_variants_address_is_signed_for_the_method_that_asks(functions: Functions) -> None:
    image_id = document(functions.post())["id"]
    functions.work()
    variant, outputs = functions.row(image_id).variants[0], functions.read_image.ports.outputs
    addresses = [
        call(functions.read_image, http_event(method, f"/images/{image_id}/variants/thumb"))["headers"]["Location"]
        for method in ("GET", "HEAD")
    ]
    assert addresses == [outputs.url_of(variant), outputs.url_of(variant, for_head=True)]
    assert len(set(addresses)) == 2


@pytest.mark.guards("variant-missing-object-no-address")
def test_a_variant_whose_object_is_gone_is_reported_to_the_operator(functions: Functions, log: io.StringIO) -> None:
    image_id = document(functions.post())["id"]
    functions.work()
    key = f"outputs/{image_id}/1/webp.webp"
    boto3.client("s3").delete_object(Bucket=functions.aws.outputs_bucket, Key=key)
    problem(functions.get(f"/images/{image_id}/variants/webp"), 500, "variant_missing")
    (line,) = [line for line in map(json.loads, log.getvalue().splitlines()) if line["message"] == "variant missing"]
    assert (line["level"], line["image_id"], line["key"]) == ("ERROR", image_id, key)
    assert line["correlation_id"] == "gateway-request-1"
    assert functions.get(f"/images/{image_id}/variants/thumb")["statusCode"] == 307


def test_the_same_key_is_replayed_also_while_in_flight_and_after(functions: Functions) -> None:
    first = functions.post(idempotency_key="order-17")
    assert "Idempotent-Replayed" not in first["headers"]
    second = functions.post(idempotency_key="order-17")
    assert second["statusCode"] == 202 and second["headers"]["Idempotent-Replayed"] == "true"
    assert document(second)["id"] == document(first)["id"]
    functions.work()
    third = functions.post(idempotency_key="order-17")
    assert document(third)["status"] == "done" and document(third)["variants"][0]["url"].startswith("https://")
    problem(functions.post(jpeg(10, 10), idempotency_key="order-17"), 422, "idempotency_key_reused")


def test_a_duplicate_is_answered_with_what_is_there_until_it_is_deleted(functions: Functions) -> None:
    reuse = {"on_duplicate": "reuse"}
    first = functions.post(query=reuse)
    assert first["statusCode"] == 202 and "Idempotent-Replayed" not in first["headers"]
    functions.work()
    second = functions.post(query=reuse)
    assert (second["statusCode"], second["headers"]["Idempotent-Replayed"]) == (202, "true")
    assert (document(second)["id"], document(second)["status"]) == (document(first)["id"], "done")
    announced = functions.begin(PHOTO, on_duplicate="reuse")
    assert (announced["statusCode"], document(announced)["id"]) == (202, document(first)["id"])
    call(functions.delete_image, http_event("DELETE", f"/images/{document(first)['id']}"))
    assert document(functions.post(query=reuse))["id"] != document(first)["id"]
    problem(functions.post(query=reuse, idempotency_key="order-17"), 400, "conflicting_parameters")
    problem(functions.begin(PHOTO, on_duplicate="reuse", key="order-17"), 400, "conflicting_parameters")
    problem(functions.post(query={"on_duplicate": "replace"}), 400, "unknown_on_duplicate")
    problem(functions.begin(PHOTO, on_duplicate="replace"), 400, "unknown_on_duplicate")


def more(functions: Functions, image_id: str, asked: Any, **headers: str) -> dict[str, Any]:
    body = json.dumps(asked).encode()
    event = http_event(
        "POST", f"/images/{image_id}/variants", body=body, headers={"content-type": "application/json", **headers}
    )
    return call(functions.submit_image, event)


HERO = {"recipe": {"variants": [{"name": "hero", "width": 32, "format": "webp"}]}}


def test_an_image_that_is_done_gets_more_variants(functions: Functions) -> None:
    image_id = document(functions.post())["id"]
    early = problem(more(functions, image_id, HERO), 409, "not_done")
    assert "This one is pending: ask again when it is." in early["detail"]
    functions.work()
    accepted = more(functions, image_id, HERO, **{"idempotency-key": "hero-1"})
    assert (accepted["statusCode"], accepted["headers"]["Location"]) == (202, f"/images/{image_id}/status")
    assert (document(accepted)["status"], document(accepted)["work"]["status"]) == ("done", "pending")
    assert functions.get(f"/images/{image_id}/status")["headers"]["Retry-After"] == "1"
    busy = more(functions, image_id, HERO)
    assert (problem(busy, 409, "work_under_way")["status"], busy["headers"]["Retry-After"]) == (409, "1")
    again = more(functions, image_id, HERO, **{"idempotency-key": "hero-1"})
    assert (again["statusCode"], again["headers"]["Idempotent-Replayed"]) == (202, "true")
    functions.work()
    answer = functions.get(f"/images/{image_id}/status")
    assert [variant["name"] for variant in document(answer)["variants"]] == ["thumb", "medium", "large", "webp", "hero"]
    assert "Retry-After" not in answer["headers"]
    assert functions.row(image_id).variants[-1].key.startswith(f"outputs/{image_id}/2-")


@pytest.mark.guards("works-no-preset-by-default")
@pytest.mark.parametrize(
    ("asked", "code", "field"),
    [
        ({}, "invalid_variants", "body"),
        ({"variants": ["thumb"]}, "invalid_variants", "body"),
        ({"preset": None}, "invalid_variants", "body"),
        ({"recipe": {"variants": []}}, "invalid_recipe", "variants"),
        ({**HERO, "delay": "PT1H"}, "invalid_variants", "delay"),
        ({**HERO, "preset": "standard"}, "conflicting_parameters", None),
        ({"preset": "nobody"}, "unknown_preset", None),
        ({"preset": "standard", "variants": ["huge"]}, "unknown_variants", None),
        ([], "invalid_variants", "body"),
    ],
)
def test_a_request_for_more_variants_says_which(functions: Functions, asked: Any, code: str, field: str | None) -> None:
    image_id = document(functions.post())["id"]
    functions.work()
    refused = problem(more(functions, image_id, asked), 400, code)
    assert field is None or field in [error["field"] for error in refused["errors"]]
    assert functions.row(image_id).run == 1


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"only text", {}, 415, "unsupported_format"),
        (b"", {}, 400, "empty_upload"),
        (None, {}, 400, "empty_upload"),
        (PHOTO + bytes(4 * 1024 * 1024), {}, 413, "upload_too_large"),
        (PHOTO, {"idempotency_key": "é"}, 400, "invalid_idempotency_key"),
    ],
    ids=["text", "empty", "absent", "large", "key"],
)
def test_bad_uploads_are_problems_that_say_why(
    functions: Functions, body: bytes | None, headers: dict[str, Any], status: int, code: str
) -> None:
    problem(functions.post(body, **headers), status, code)


def test_a_parameter_that_is_given_twice_names_both_variants(functions: Functions) -> None:
    event = http_event("POST", "/images", body=PHOTO, query="variants=webp&variants=thumb")
    assert document(call(functions.submit_image, event))["progress"]["total"] == 2


def test_an_invalid_recipe_is_a_problem_that_names_each_field(functions: Functions) -> None:
    recipe = {"variants": [{"name": "a", "width": 9999}, {"name": "B", "height": 1}]}
    refusal = problem(functions.post(query={"recipe": json.dumps(recipe)}), 400, "invalid_recipe")
    assert refusal["errors"] == [
        {"field": "variants.0.width", "message": "must be at most 8192"},
        {"field": "variants.1.name", "message": "must be 1 to 32 of a-z, 0-9, - and _, starting with a letter"},
    ]
    assert "variants.0.width: must be at most 8192" in refusal["detail"]
    assert "errors" not in problem(functions.post(b""), 400, "empty_upload")


def test_formats_beside_the_standard_ones_are_accepted_by_both_functions_once_they_are_set(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    photo = encoded(picture(64, 48), "AVIF")
    monkeypatch.setenv("EXTRA_INPUT_FORMATS", "avif")
    accepted = document(functions.post(photo))
    assert functions.work() == {"batchItemFailures": []}
    shown = document(functions.get(f"/images/{accepted['id']}"))
    assert (shown["status"], shown["source"]["media_type"]) == ("done", "image/avif")


def test_the_bounds_of_an_original_are_settings(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_MEGAPIXELS", "0.07")
    image_id = document(functions.post())["id"]
    assert functions.work() == {"batchItemFailures": []}, "a refused image is acknowledged"
    assert document(functions.get(f"/images/{image_id}/status"))["error"]["code"] == "too_many_pixels"


@pytest.mark.guards("bodies-text-file-refused")
@pytest.mark.parametrize("query", ["", "preset=standard"])
@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/xml", "application/json", "Text/HTML; charset=utf-8"]
)
@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "GIF", "WEBP", "AVIF"])
def test_a_photo_sent_as_text_is_refused_with_the_header_that_damaged_it(
    functions: Functions, file_format: str, content_type: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXTRA_INPUT_FORMATS", "avif")
    photo = encoded(picture(), file_format)
    event = http_event("POST", "/images", query=query, body=photo, headers={"content-type": content_type})
    assert not event["isBase64Encoded"]
    refusal = problem(call(functions.submit_image, event), 415, "unsupported_format")
    assert f'The Content-Type "{content_type}"' in refusal["detail"]
    assert "Content-Type: image/jpeg" in refusal["detail"] and "application/octet-stream" in refusal["detail"]


@pytest.mark.guards("bodies-damaged-json-as-json")
def test_json_that_is_not_utf_8_is_no_damaged_file(functions: Functions) -> None:
    body = '{"url": "https://photos.example/ü.jpg", "delay": 1}'.encode("latin-1")
    event = http_event("POST", "/images", body=body, headers={"content-type": "application/json"})
    assert "delay" in problem(call(functions.submit_image, event), 400, "invalid_fetch")["detail"]


@pytest.mark.parametrize("content_type", [None, "", "application/x-www-form-urlencoded", "image/png", "?"])
def test_a_photo_that_came_undamaged_is_accepted_whatever_its_type_is_called(
    functions: Functions, content_type: str | None
) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    assert call(functions.submit_image, http_event("POST", "/images", body=PHOTO, headers=headers))["statusCode"] == 202


@pytest.mark.parametrize("body", ["/9j/4", "/9j/ 4AA", "/9j/*A==", "é"])
def test_a_body_that_is_not_the_gateways_base64_is_refused(functions: Functions, body: str) -> None:
    event = http_event("POST", "/images", headers={"content-type": "image/jpeg"})
    event |= {"body": body, "isBase64Encoded": True}
    problem(call(functions.submit_image, event), 400, "unreadable_body")


def test_everything_that_no_route_takes_is_a_problem_whichever_function_it_reaches(functions: Functions) -> None:
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
        for path in ("/", "/image", "/images/", "/images/a/b", "/openapi.json/"):
            problem(call(functions.read_image, http_event(method, path)), 404, "unknown_path")
    for method, path, allowed in (
        ("PUT", "/images", "POST, GET, HEAD"),
        ("DELETE", "/images", "POST, GET, HEAD"),
        ("POST", f"/images/{'0' * 26}", "GET, HEAD, PATCH, DELETE"),
        ("DELETE", f"/images/{'0' * 26}/status", "GET, HEAD"),
        ("PATCH", f"/images/{'0' * 26}/variants/webp", "GET, HEAD"),
        ("POST", "/openapi.json", "GET, HEAD"),
        ("GET", "/uploads", "POST"),
        ("HEAD", "/uploads", "POST"),
        ("PUT", "/webhooks", "POST, GET, HEAD"),
        ("GET", "/webhooks/we_0000000000000000/ping", "POST"),
    ):
        answer = call(functions.read_image, http_event(method, path))
        problem(answer, 405, "method_not_allowed")
        assert answer["headers"]["Allow"] == allowed
    # Characters that Powertools' routes do not match: these requests reach a function, but none of its handlers.
    for function, method in (("read_image", "GET"), ("delete_image", "DELETE"), ("reschedule_image", "PATCH")):
        event = http_event(method, '/images/"x"', headers={"content-type": "application/json"})
        problem(call(getattr(functions, function), event), 404, "unknown_path")
    problem(call(functions.manage_webhooks, http_event("GET", '/webhooks/"x"')), 404, "unknown_path")


@pytest.mark.guards("api-unknown-parameter-refused")
@pytest.mark.parametrize("query", ["prest=avatar", "process-at=2027-03-01T09:00:00Z", "Preset=avatar", "x=", "=x"])
def test_a_parameter_that_nobody_knows_is_refused_before_anything_is_stored(functions: Functions, query: str) -> None:
    refusal = problem(
        call(functions.submit_image, http_event("POST", "/images", body=PHOTO, query=query)), 400, "unknown_parameter"
    )
    assert "preset, process_at, recipe, reference, tags, variants" in refusal["detail"]
    assert "KeyCount" not in boto3.client("s3").list_objects(Bucket=functions.aws.originals_bucket)
    answer = call(functions.read_image, http_event("GET", f"/images/{'0' * 26}/status", query=query))
    assert "no parameters" in problem(answer, 400, "unknown_parameter")["detail"]


def test_a_request_may_be_signed_in_its_query(functions: Functions) -> None:
    event = http_event(
        "POST", "/images", body=PHOTO, query="X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0a&preset=avatar"
    )
    assert document(call(functions.submit_image, event))["preset"] == "avatar"


def test_images_are_listed_page_by_page_as_they_are_now(functions: Functions) -> None:
    ids = [document(functions.post())["id"] for _ in range(3)]
    functions.work()
    first = functions.get("/images?limit=2")
    assert first["headers"]["Cache-Control"] == "private, no-cache"
    second = functions.get(f"/images?limit=2&cursor={document(first)['next']}")
    assert document(second)["next"] is None
    shown = document(first)["images"] + document(second)["images"]
    assert sorted(image["id"] for image in shown) == sorted(ids)
    assert [image["created_at"] for image in shown] == sorted((image["created_at"] for image in shown), reverse=True)
    assert {image["status"] for image in shown} == {"done"}
    for image in shown:
        paths = [variant["url"] for variant in image["variants"]]
        assert paths == [f"/images/{image['id']}/variants/{variant['name']}" for variant in image["variants"]]
        assert all(functions.get(path)["statusCode"] == 307 for path in paths)
    assert document(functions.get("/images?status=pending,processing")) == {"images": [], "next": None}
    assert len(document(functions.get("/images?status=pending&status=done"))["images"]) == 3


def test_images_are_found_by_what_their_client_has_written_on_them(functions: Functions) -> None:
    words = {"reference": "order-17/frönt & back", "tags": "shoes,a+b c", "metadata": '{"shelf": 17, "a": [1.5]}'}
    image_id = document(functions.post(query=words, idempotency_key="order-17"))["id"]
    announced = document(functions.begin(reference="order-18", tags=["shoes"], metadata={"shelf": 18}))
    assert (announced["reference"], announced["tags"], announced["metadata"]) == ("order-18", ["shoes"], {"shelf": 18})
    problem(functions.post(query={**words, "tags": "shoes"}, idempotency_key="order-17"), 422, "idempotency_key_reused")
    functions.work()
    for query in ({"reference": words["reference"]}, {"tag": "a+b c", "status": "done"}):
        (listed,) = document(functions.get(f"/images?{urlencode(query)}"))["images"]
        assert (listed["id"], listed["reference"], listed["tags"], listed["metadata"]) == (
            image_id,
            "order-17/frönt & back",
            ["shoes", "a+b c"],
            {"shelf": 17, "a": [1.5]},
        )
    assert len(document(functions.get("/images?tag=shoes"))["images"]) == 2
    for name, code in (("reference", "invalid_reference"), ("tags", "invalid_tags"), ("metadata", "invalid_metadata")):
        problem(functions.post(query={**words, name: " "}), 400, code)


def test_a_list_is_watched_by_its_tag_and_tells_what_is_left_to_wait(functions: Functions) -> None:
    image_id = document(functions.post())["id"]
    first = functions.get("/images?urls=thumb")
    (image,) = document(first)["images"]
    assert (image["id"], image["thumb"], image["estimated_seconds"]) == (image_id, None, None)
    assert first["headers"]["Retry-After"] == "1"
    again = functions.get("/images?urls=thumb", **{"if-none-match": first["headers"]["ETag"]})
    assert (again["statusCode"], again["headers"]["ETag"]) == (304, first["headers"]["ETag"])
    functions.work()
    last = functions.get("/images?urls=thumb", **{"if-none-match": first["headers"]["ETag"]})
    (image,) = document(last)["images"]
    assert (last["statusCode"], "Retry-After" in last["headers"]) == (200, False)
    assert image["thumb"]["name"] in {variant["name"] for variant in image["variants"]}
    assert "X-Amz-Signature" in image["thumb"]["url"]


def test_an_image_that_waits_tells_how_long_it_will_take(functions: Functions, aws: Aws) -> None:
    functions.post()
    functions.work()
    throughput = ThroughputTable(boto3.client("dynamodb"), aws.throughput_table)
    throughput.add("slow", Work(settled=60, busy_milliseconds=120_000), time.time_ns() // 1_000_000)
    waiting = document(functions.post())["id"]
    response = functions.get(f"/images/{waiting}/status")
    assert document(response)["estimated_seconds"] == 2
    assert response["headers"]["ETag"].endswith('-2"')
    newest = document(functions.get("/images?limit=1"))["images"][0]
    assert (newest["id"], newest["estimated_seconds"]) == (waiting, 2)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid_limit"),
        ("limit=2&limit=3", "invalid_limit"),
        ("status=", "unknown_status"),
        ("cursor=x", "invalid_cursor"),
        ("reference=", "invalid_reference"),
        ("tag=a&tag=b", "invalid_tags"),
    ],
)
def test_a_list_that_cannot_be_shown_is_a_problem(functions: Functions, query: str, code: str) -> None:
    problem(functions.get(f"/images?{query}"), 400, code)


def form(*parts: tuple[str, bytes]) -> dict[str, Any]:
    """An upload as a browser sends a form with files."""
    about = 'Content-Disposition: form-data; name="{}"; filename="<IMG>.jpg"\r\nContent-Type: image/jpeg'
    sent = b"".join(f"--b0\r\n{about.format(name)}\r\n\r\n".encode() + body + b"\r\n" for name, body in parts)
    headers = {"content-type": "multipart/form-data; boundary=b0"}
    return http_event("POST", "/images", body=sent + b"--b0--\r\n", headers=headers)


def test_a_photo_in_a_form_is_the_same_upload_as_its_bytes(functions: Functions, log: io.StringIO) -> None:
    event = form(("file", PHOTO))
    event["headers"]["idempotency-key"] = "order-17"
    accepted = call(functions.submit_image, event)
    assert accepted["statusCode"] == 202
    assert functions.post(idempotency_key="order-17")["headers"]["Idempotent-Replayed"] == "true"
    shown = functions.get(f"/images/{document(accepted)['id']}")
    assert document(shown)["source"]["sha256"] == hashlib.sha256(PHOTO).hexdigest()
    assert "IMG" not in log.getvalue() + accepted["body"] + shown["body"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml"])
@pytest.mark.parametrize(
    ("function", "method", "path"),
    [("reschedule_image", "PATCH", f"/images/{'0' * 26}"), ("begin_upload", "POST", "/uploads")],
)
def test_a_body_that_is_not_called_json_is_refused(
    functions: Functions, function: str, method: str, path: str, content_type: str
) -> None:
    event = http_event(method, path, body=b'{"delay": "PT1H"}', headers={"content-type": content_type})
    answer = call(getattr(functions, function), event)
    problem(answer, 415, "unsupported_media_type")
    assert answer["headers"]["Accept"] == "application/json"


def test_no_browser_may_take_an_answer_for_something_else(functions: Functions) -> None:
    image_id = document(functions.post())["id"]
    tag = functions.get(f"/images/{image_id}")["headers"]["ETag"]
    answers = [
        functions.get(f"/images/{image_id}"),
        functions.get(f"/images/{image_id}", if_none_match=tag),
        functions.get("/nowhere"),
        functions.post(b""),
        call(functions.delete_image, http_event("DELETE", f"/images/{image_id}")),
    ]
    assert [answer["statusCode"] for answer in answers] == [200, 304, 404, 400, 204]
    assert {answer["headers"]["X-Content-Type-Options"] for answer in answers} == {"nosniff"}


@pytest.mark.promise("headers-not-echoed")
def test_nothing_that_a_header_says_comes_back_or_into_the_logs(functions: Functions, log: io.StringIO) -> None:
    mark = "<script>r4w</script>"
    answers = [
        functions.get("/images", if_none_match=mark, accept=mark, user_agent=mark),
        functions.post(idempotency_key=mark + "é"),
        functions.post(idempotency_key=mark),
        functions.post(content_type=mark),
    ]
    assert "r4w" not in json.dumps(answers) + log.getvalue()


@pytest.mark.guards("denied-answered-unavailable", "denied-call-alarms")
@pytest.mark.parametrize(
    ("function", "store", "request_"),
    [
        ("submit_image", "originals", ("POST", "/images", PHOTO)),
        ("submit_image", "images", ("POST", "/images", PHOTO)),
        ("begin_upload", "images", ("POST", "/uploads", json.dumps({"bytes": 9, "sha256": "0" * 64}).encode())),
        ("read_image", "images", ("GET", f"/images/{'0' * 26}/status", None)),
        ("read_image", "images", ("GET", "/images", None)),
        ("delete_image", "images", ("DELETE", f"/images/{'0' * 26}", None)),
        ("reschedule_image", "images", ("PATCH", f"/images/{'0' * 26}", b'{"delay": "PT1H"}')),
        ("manage_webhooks", "endpoints", ("GET", "/webhooks", None)),
        ("manage_webhooks", "endpoints", ("POST", "/webhooks", b'{"url": "https://hooks.example.com/"}')),
    ],
)
def test_a_refused_call_is_a_503_that_promises_nothing_and_alarms(
    functions: Functions, log: io.StringIO, function: str, store: str, request_: tuple[str, str, bytes | None]
) -> None:
    app = getattr(functions, function)
    refuse(getattr(app.ports, store)._client)
    method, path, body = request_
    answer = call(app, http_event(method, path, body=body))
    problem(answer, 503, "unavailable")
    assert answer["headers"]["Retry-After"] == "5"
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (line_of_error,) = [line for line in lines if line["message"] == "misconfigured"]
    assert (line_of_error["level"], line_of_error["errorType"]) == ("ERROR", "Misconfigured")
    assert re.fullmatch(r"AWS call: \w+, AccessDenied, (table|bucket) [\w-]+", line_of_error["cause"])


@pytest.mark.guards("denied-own-mistake-not-masked")
@pytest.mark.parametrize(
    ("code", "status", "answered"),
    [
        ("AccessDeniedException", 400, 503),
        ("ResourceNotFoundException", 400, 503),
        ("KMSDisabledException", 400, 503),
        ("Unheard-of", 403, 503),
        ("OverLimit", 403, 503),
        ("ValidationException", 400, 500),
        ("SignatureDoesNotMatch", 403, 503),
    ],
)
def test_what_an_operator_can_mend_is_a_503_and_our_own_mistake_a_500(
    functions: Functions, code: str, status: int, answered: int
) -> None:
    refuse(functions.read_image.ports.images._client, code=code, status=status)
    assert functions.get(f"/images/{'0' * 26}/status")["statusCode"] == answered


@pytest.mark.guards("bookkeeping-unsent-to-sweeper")
def test_once_the_row_is_written_a_refused_queue_is_no_error_to_its_client(
    functions: Functions, log: io.StringIO
) -> None:
    refuse(functions.submit_image.ports.lanes._client, code="AWS.SimpleQueueService.NonExistentQueue", status=400)
    refuse(functions.submit_image.ports.load_shedder.depths._client)
    answer = functions.post()
    assert answer["statusCode"] == 202
    row = functions.row(document(answer)["id"])
    assert row.due_at is not None and row.due_at <= functions.submit_image.ports.clock(), "the sweeper sends it"
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (line_of_error,) = [line for line in lines if line["message"] == "message not sent"]
    assert (line_of_error["level"], line_of_error["image_id"], line_of_error["errorType"]) == (
        "ERROR",
        row.image_id,
        "ClientError",
    )


def test_a_bug_is_a_500_that_shows_nothing_of_itself(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    def buggy(*_: object) -> None:
        raise ZeroDivisionError("a secret of ours")

    monkeypatch.setattr(functions.read_image.ports.images, "get", buggy)
    answer = functions.get(f"/images/{'0' * 26}/status")
    problem(answer, 500, "internal")
    assert "secret" not in answer["body"]


def cause_of_an_attempt(functions: Functions) -> Cause:
    """Why the latest attempt of one more image failed, as its row says it."""
    image_id = document(functions.post())["id"]
    functions.work()
    cause = functions.row(image_id).attempts[-1].cause
    assert cause is not None
    return cause


FAILURES: dict[str, tuple[Callable[[ModuleType], object], str]] = {
    "the bucket of a variable is wrong": (
        lambda worker: setattr(worker.ports.originals, "_bucket_name", "no-such-bucket"),
        "NoSuchBucket@aws/objects.py:get/GetObject/NoSuchBucket/no-such-bucket",
    ),
    "a read is denied": (
        lambda worker: refuse(worker.ports.originals._client, "GetObject", code="AccessDenied"),
        "ClientError@aws/objects.py:get/GetObject/AccessDenied/originals",
    ),
    "a read has another error": (
        lambda worker: refuse(worker.ports.originals._client, "GetObject", code="InvalidRequest", status=400),
        "ClientError@aws/objects.py:get/GetObject/InvalidRequest/originals",
    ),
    "a read is throttled": (
        lambda worker: refuse(worker.ports.originals._client, "GetObject", code="SlowDown", status=503),
        "Retryable@aws/objects.py:get/GetObject/SlowDown/originals",
    ),
    "a write is denied": (
        lambda worker: refuse(worker.ports.outputs._client, "PutObject", code="AccessDenied"),
        "ClientError@aws/objects.py:_put_if_absent/PutObject/AccessDenied/outputs",
    ),
}


@pytest.mark.guards("fingerprints-aws-call-noted", "fingerprints-stack-shortened")
@pytest.mark.parametrize("failure", FAILURES)
def test_each_failure_of_an_aws_call_is_a_defect_of_its_own_whatever_image_it_befalls(
    functions: Functions, log: io.StringIO, failure: str
) -> None:
    fail, name = FAILURES[failure]
    fail(functions.transcode_image)
    first, second = cause_of_an_attempt(functions), cause_of_an_attempt(functions)
    named = [fingerprint(cause.error_type, cause.stack) for cause in (first, second)]
    assert named == [name, name]
    operation, code, resource = name.split("/")[-3:]
    assert first.message.endswith(f"[AWS call: {operation}, {code}, bucket {resource}]")
    logged = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line["fingerprint"] for line in logged if line["message"] == "run"] == named, "the log has the row's"


@pytest.mark.guards("original-missing-object-only")
def test_a_bucket_that_is_missing_is_a_mistake_of_the_deployment_and_no_originals_loss(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_id = document(functions.post())["id"]
    monkeypatch.setattr(functions.transcode_image.ports.originals, "_bucket_name", "no-such-bucket")
    functions.work()
    assert (functions.row(image_id).status, functions.row(image_id).attempt) == (Status.PENDING, 1)


@pytest.mark.guards("retry-failed-record-reported")
def test_one_failing_record_does_not_cost_its_neighbours(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    good = document(functions.post())["id"]
    bad = document(functions.post())["id"]
    event = received(functions.aws.slow_queue_url)
    originals = functions.transcode_image.ports.originals
    get = originals.get

    def get_unless_bad(image_id: str, version_id: str) -> bytes:
        if image_id == bad:
            raise ZeroDivisionError("a bug")
        body: bytes = get(image_id, version_id)
        return body

    monkeypatch.setattr(originals, "get", get_unless_bad)
    answer = call(functions.transcode_image, event)
    failed = {item["itemIdentifier"] for item in answer["batchItemFailures"]}
    assert failed == {entry["messageId"] for entry in event["Records"] if bad in entry["body"]}
    assert functions.row(good).status is Status.DONE
    assert (functions.row(bad).status, functions.row(bad).attempt) == (Status.PENDING, 1)


@pytest.mark.guards("retry-record-isolated")
def test_a_batch_in_which_everything_fails_is_reported_and_does_not_raise(functions: Functions) -> None:
    boto3.client("sqs").send_message(QueueUrl=functions.aws.slow_queue_url, MessageBody="no message of ours")
    event = received(functions.aws.slow_queue_url)
    answer = call(functions.transcode_image, event)
    assert answer == {"batchItemFailures": [{"itemIdentifier": event["Records"][0]["messageId"]}]}


@pytest.mark.guards("claim-own-message-after-backoff")
def test_a_failed_attempt_comes_back_after_its_backoff(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    image_id = document(functions.post())["id"]
    event = received(functions.aws.slow_queue_url)
    hidden: list[dict[str, Any]] = []
    ports = functions.transcode_image.ports
    monkeypatch.setattr(
        functions.transcode_image.worker.sqs, "change_message_visibility", lambda **arguments: hidden.append(arguments)
    )
    monkeypatch.setattr(functions.transcode_image, "ports", replace(ports, jitter=lambda: 0.0))
    monkeypatch.setattr(ports.originals, "get", lambda *_: 1 / 0)
    call(functions.transcode_image, event)
    assert hidden == [
        {
            "QueueUrl": functions.aws.slow_queue_url,
            "ReceiptHandle": event["Records"][0]["receiptHandle"],
            "VisibilityTimeout": 21,
        }
    ]
    assert functions.row(image_id).status is Status.PENDING


def test_a_claimed_message_of_a_quick_lane_is_hidden_until_its_next_attempt_may_begin(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_id = document(functions.post())["id"]
    event = received(functions.aws.slow_queue_url)
    ports = functions.transcode_image.ports
    quick = {**ports.service, "slow": replace(SLOW, sla_seconds=30)}
    monkeypatch.setattr(functions.transcode_image, "ports", replace(ports, service=quick))
    hidden: list[dict[str, Any]] = []
    monkeypatch.setattr(
        functions.transcode_image.worker.sqs, "change_message_visibility", lambda **arguments: hidden.append(arguments)
    )
    call(functions.transcode_image, event)
    (asked,) = hidden
    assert asked["ReceiptHandle"] == event["Records"][0]["receiptHandle"]
    assert asked["QueueUrl"] == functions.aws.slow_queue_url and 60 < asked["VisibilityTimeout"] < 360
    assert functions.row(image_id).status is Status.DONE


def copied(functions: Functions, **attributes: Any) -> dict[str, Any]:
    """The event with which the fast lane's queue delivers what was sent to the slow lane's."""
    (sent,) = received(functions.aws.slow_queue_url)["Records"]
    boto3.client("sqs").send_message(
        QueueUrl=functions.aws.fast_queue_url, MessageBody=sent["body"], MessageAttributes=attributes
    )
    return received(functions.aws.fast_queue_url)


def test_a_message_in_another_lanes_queue_comes_back_there(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions.post()
    event = copied(functions)  # unsigned, as the version before signatures sends
    hidden: list[str] = []
    ports = functions.transcode_image.ports
    monkeypatch.setattr(
        functions.transcode_image.worker.sqs,
        "change_message_visibility",
        lambda **asked: hidden.append(asked["QueueUrl"]),
    )
    monkeypatch.setattr(ports.originals, "get", lambda *_: 1 / 0)
    call(functions.transcode_image, event)
    assert hidden == [functions.aws.fast_queue_url]


def test_a_receipt_that_is_no_longer_known_changes_nothing(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_id = document(functions.post())["id"]
    event = received(functions.aws.slow_queue_url)
    event["Records"][0]["receiptHandle"] = "forged"
    monkeypatch.setattr(functions.transcode_image.ports.originals, "get", lambda *_: 1 / 0)
    answer = call(functions.transcode_image, event)
    assert len(answer["batchItemFailures"]) == 1
    assert functions.row(image_id).status is Status.PENDING


@pytest.mark.guards("logs-keys-per-record", "logs-request-per-record")
def test_one_records_keys_are_not_on_anothers_log_lines(functions: Functions, log: io.StringIO) -> None:
    functions.post()
    first = received(functions.aws.slow_queue_url)["Records"]
    boto3.client("sqs").send_message(QueueUrl=functions.aws.slow_queue_url, MessageBody="unreadable")
    second = received(functions.aws.slow_queue_url)["Records"]
    call(functions.transcode_image, {"Records": first + second})
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (failed,) = [line for line in lines if line.get("message") == "delivery failed"]
    assert "image_id" not in failed and failed["correlation_id"] == failed["function_request_id"]


@pytest.mark.guards("removal-delete-markers")
def test_a_deleted_image_that_was_developed_leaves_nothing_in_the_buckets(functions: Functions) -> None:
    gone, kept = (document(functions.post())["id"] for _ in range(2))
    functions.work()
    s3, aws = boto3.client("s3"), functions.aws
    # What people do to a versioned bucket: another version, and a delete marker that hides the original.
    s3.put_object(Bucket=aws.originals_bucket, Key=f"originals/{gone}", Body=b"by hand")
    s3.delete_object(Bucket=aws.originals_bucket, Key=f"originals/{gone}")
    s3.put_object(Bucket=aws.outputs_bucket, Key=f"outputs/{gone}/0/of-an-earlier-run.jpeg", Body=b"orphan")

    def left(image_id: str) -> tuple[int, int]:
        versions = s3.list_object_versions(Bucket=aws.originals_bucket, Prefix=f"originals/{image_id}")
        originals = versions.get("Versions", []) + versions.get("DeleteMarkers", [])
        return len(originals), s3.list_objects_v2(Bucket=aws.outputs_bucket, Prefix=f"outputs/{image_id}/")["KeyCount"]

    assert (left(gone), left(kept)) == ((3, 5), (1, 4))
    assert call(functions.delete_image, http_event("DELETE", f"/images/{gone}"))["statusCode"] == 204

    # At once what the row names, and when no worker can write any more whatever is there.
    assert call(functions.sweep_due_images, {})["outcomes"] == {"removed": 1}
    assert (left(gone), left(kept)) == ((2, 1), (1, 4))
    table = ImagesTable(boto3.client("dynamodb"), aws.images_table)
    row = functions.row(gone)
    table.change(row, replace(row, deleted_at=1, due_at=1))

    allow = refuse(functions.sweep_due_images.ports.originals._client, "ListObjectVersions", code="SlowDown")
    assert call(functions.sweep_due_images, {})["outcomes"] == {"unreachable": 1}
    assert left(gone) == (2, 0), "half of it is done"
    allow()
    swept = {"outcomes": {"removed": 1}, "late_seconds": {}, "complete": True}
    assert call(functions.sweep_due_images, {}) == swept
    assert (left(gone), left(kept)) == ((0, 0), (1, 4))
    for path in ("", "/status", "/variants/thumb"):
        problem(functions.get(f"/images/{gone}{path}"), 404, "unknown_image")


def measured(output: str) -> dict[Any, float]:
    """The metrics in a function's log, by name, or by name and lane."""
    lines = [json.loads(line) for line in output.splitlines() if '"_aws"' in line]
    return {
        ((name, line["lane"]) if "lane" in line else name): line[name][0]
        for line in lines
        for name in line
        if name[0].isupper()
    }


def test_a_sweep_emits_what_is_late_failing_or_dead_by_the_worst_lane(
    functions: Functions, capsys: pytest.CaptureFixture[str]
) -> None:
    images = functions.sweep_due_images.ports.images
    now = functions.sweep_due_images.ports.clock()
    images.create(accepted_image(image_id=f"{1:026}", lane="fast", now=now - 60_000))
    images.create(accepted_image(image_id=f"{2:026}", lane="slow", now=now - 60_000))
    outcomes = sum((failed_attempt(name) for name in "xyz"), SUCCEEDED)
    functions.sweep_due_images.measuring.outcome_counts.add("slow", now // 60_000 * 60_000, outcomes)
    functions.sweep_due_images.ports.dead_letters.put(
        "slow", Message(image_id=f"{3:026}", tenant_id="acme", lane="slow", run=1, schedule=0), {}
    )
    capsys.readouterr()
    call(functions.sweep_due_images, {})
    metrics = measured(capsys.readouterr().out)
    assert 60 <= metrics["OldestUnfinishedSeconds", "slow"] < 100
    assert 2 <= metrics["LateRatio"] < 3.3, "of the fast lane, which promises 30 seconds"
    assert 0.2 <= metrics["StuckRatio"] < 0.33
    assert (metrics["AttemptsFailing"], metrics["DeadLetters"]) == (75, 1)


@pytest.mark.guards("alarms-fast-burn-pages", "alarms-slow-burn-warns")
@pytest.mark.parametrize(("burn", "late", "stuck"), [(FAST_BURN, FAST_BURN / SLOW_BURN, 1), (SLOW_BURN, 1, 0.42)])
def test_a_budget_that_burns_as_fast_as_it_may_counts_like_a_lane_that_is_stuck_or_late(
    functions: Functions, capsys: pytest.CaptureFixture[str], burn: float, late: float, stuck: float
) -> None:
    now = functions.sweep_due_images.ports.clock()
    outcomes = Outcomes(ended=10_000, late=round(burn * 10))
    functions.sweep_due_images.measuring.outcome_counts.add("slow", now // 60_000 * 60_000, outcomes)
    capsys.readouterr()
    call(functions.sweep_due_images, {})
    metrics = measured(capsys.readouterr().out)
    assert metrics["LateRatio"] == pytest.approx(late, abs=0.01)
    assert metrics["StuckRatio"] == pytest.approx(stuck, abs=0.01)


@pytest.mark.guards("alarms-noisy-tenant-warns")
def test_a_noisy_tenant_counts_like_a_lane_that_is_late(
    functions: Functions, capsys: pytest.CaptureFixture[str]
) -> None:
    measuring = functions.sweep_due_images.measuring
    minute = functions.sweep_due_images.ports.clock() // 60_000 * 60_000
    measuring.outcome_counts.add("slow", minute, SUCCEEDED)
    measuring.throughput.add_of_tenants("slow", {"acme": 5_400_000, "globex": 60_000}, minute)
    capsys.readouterr()
    call(functions.sweep_due_images, {})
    assert measured(capsys.readouterr().out)["LateRatio"] == 1


def test_a_sweep_tells_dead_letters_of_events(functions: Functions, capsys: pytest.CaptureFixture[str]) -> None:
    queues = functions.sweep_due_endpoints.dead_letters
    boto3.client("sqs").send_message(QueueUrl=queues._queue_urls["unpublished"], MessageBody="{}")
    capsys.readouterr()
    call(functions.sweep_due_endpoints, {})
    assert measured(capsys.readouterr().out)["EventDeadLetters"] == 1


@pytest.mark.guards("endpoint-sweep-missed-fails")
def test_a_sweep_of_endpoints_that_cannot_count_dead_letters_sweeps_all_the_same_and_fails(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def due(shard: str, *_: object) -> list[Any]:
        looked.append(shard)
        return []

    monkeypatch.setattr(functions.sweep_due_endpoints.dead_letters, "depth", lambda queue: 1 / 0)
    monkeypatch.setattr(functions.sweep_due_endpoints.ports.endpoints, "due", due)
    with pytest.raises(Retryable, match="the dead letters of usage"):
        call(functions.sweep_due_endpoints, {})
    assert looked


@pytest.mark.guards("endpoint-sweep-missed-fails")
def test_a_sweep_of_endpoints_fails_if_what_is_due_could_not_be_listed(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: object) -> None:
        raise Retryable("reading the due index: ThrottlingException")

    monkeypatch.setattr(functions.sweep_due_endpoints.ports.endpoints, "due", fails)
    with pytest.raises(Retryable, match="endpoints 00"):
        call(functions.sweep_due_endpoints, {})


SAMPLES = [path for path in sorted((ROOT / "events").glob("*.json")) if path.stem not in DELIVERY_FOLDERS]
"""Those of the delivery's functions are what their unit tests hand to them."""


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_event_is_one_that_its_function_takes(functions: Functions, path: Path) -> None:
    upload = json.loads((ROOT / "events" / "submit_image.json").read_text())
    if path.stem == "reschedule_image":  # only a scheduled image can be rescheduled
        upload["queryStringParameters"] = {**upload.get("queryStringParameters", {}), "delay": "P2D"}
    sample = call(functions.submit_image, upload)
    assert sample["statusCode"] == 202
    answer = call(getattr(functions, path.stem), json.loads(path.read_text()))
    assert answer.get("statusCode", 200) < 300
    assert answer.get("batchItemFailures", []) == []


def test_a_function_without_its_settings_does_not_start_and_says_which() -> None:
    with pytest.raises(MissingSettings, match=r"IMAGES_TABLE.*ORIGINALS_BUCKET"):
        SubmitImageSettings.read({"FAST_QUEUE_URL": "x", "SLOW_QUEUE_URL": "y", "OUTPUTS_BUCKET": "o"})
