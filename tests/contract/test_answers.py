"""What every answer of the API has in common, whichever function made it and however it ended."""

from __future__ import annotations

import pytest

from darkroom.domain.kernel.errors import Retryable
from tests.contract.conftest import Aws
from tests.contract.functions import call, received
from tests.contract.gateway import MAKING, MOVE, Answer, Gateway
from tests.support.fakes.pictures import jpeg


def test_browsers_are_told_to_believe_the_content_type_of_every_answer(
    aws: Aws, bearer: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(aws, monkeypatch)
    answers: list[Answer] = []

    def sent(method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        named = bearer | {name.replace("_", "-"): value for name, value in headers.items()}
        answers.append(gateway.request(method, path, body=body, headers=named))
        return answers[-1]

    image = f"/images/{sent('POST', '/images?variants=thumb', MAKING['/images']).body['id']}"
    call(gateway.function("transcode_image"), received(aws.fast_queue_url))
    scheduled = sent("POST", "/images?delay=P2D", jpeg(60, 40)).body["id"]
    sent("POST", "/uploads", MAKING["/uploads"])
    tag = sent("GET", f"{image}/status").headers["ETag"]
    sent("GET", f"{image}/status", if_none_match=tag)
    sent("GET", f"{image}/variants/thumb")
    sent("PATCH", f"/images/{scheduled}", MOVE)
    sent("DELETE", f"/images/{scheduled}")
    sent("POST", "/images", b"no image")
    sent("GET", "/elsewhere")
    sent("PUT", "/images")
    for failure in (Retryable("away"), RuntimeError("a bug")):
        monkeypatch.setattr(gateway.function("read_image"), "read_image", _raising(failure))
        sent("GET", image)
    assert {answer.status for answer in answers} >= {200, 201, 202, 204, 307, 404, 405, 415, 500, 503}
    for answer in answers:
        assert answer.headers["X-Content-Type-Options"] == "nosniff", answer


def _raising(failure: Exception) -> object:
    def fail(*_: object, **__: object) -> None:
        raise failure

    return fail
