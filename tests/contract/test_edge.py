"""What the edge is given and told: objects with their headers, images that it must forget, URLs that are signed."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import boto3
import pytest

from darkroom.aws.images.objects import CACHE_CONTROL, OutputsBucket
from darkroom.aws.images.queues import EdgeQueue
from darkroom.aws.images.url_signer import UrlSigningFunction
from darkroom.domain.images.pictures import EdgeUrls
from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.kernel.visibility import Visibility
from tests.contract.conftest import Aws
from tests.support.images import NOW

ID = "0" * 26


@pytest.mark.guards("edge-objects-tagged")
@pytest.mark.parametrize(
    ("prefix", "viewer_seconds", "cache_control"),
    [
        ("outputs", 60, CACHE_CONTROL),
        ("public", None, "public, max-age=86400, immutable"),
        ("public", 31_536_000, "public, max-age=31536000, immutable"),
        ("signed", None, "private, max-age=86400, immutable"),
    ],
)
def test_an_object_says_who_may_keep_it_and_by_which_tag_the_edge_forgets_it(
    aws: Aws, prefix: str, viewer_seconds: int | None, cache_control: str
) -> None:
    outputs, key = OutputsBucket(boto3.client("s3"), aws.outputs_bucket), f"{prefix}/{ID}/1/thumb.jpg"
    sha256 = hashlib.sha256(b"b").hexdigest()
    outputs.put_if_absent(key, b"b", sha256=sha256, media_type="image/jpeg", viewer_seconds=viewer_seconds)
    head = boto3.client("s3").head_object(Bucket=aws.outputs_bucket, Key=key)
    assert (head["CacheControl"], head["Metadata"]) == (
        cache_control,
        {} if prefix == "outputs" else {"cache-tag": ID},
    )
    assert head.get("ContentDisposition") == (None if prefix == "outputs" else 'inline; filename="thumb.jpg"')
    assert outputs.get(key) == (b"b", "image/jpeg")
    assert [outputs.keys_of(ID, (visibility,)) for visibility in Visibility] == [
        [key] if prefix == name else [] for name in ("outputs", "public", "signed")
    ]


def test_the_edge_is_told_by_a_message_for_each_image_in_its_tenants_share(aws: Aws) -> None:
    sqs = boto3.client("sqs")
    queue = EdgeQueue(sqs, aws.usage_queue_url)
    queue.forget(
        {str(number) * 26: "acme" for number in range(8)} | {"8" * 26: "globex", "9" * 26: "globex", ID: "acme"}
    )
    queue.forget({"1" * 26: "acme"}, delay_seconds=900)
    told: dict[str, str] = {}
    while messages := sqs.receive_message(
        QueueUrl=aws.usage_queue_url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["MessageGroupId"]
    ).get("Messages"):
        told |= {json.loads(one["Body"])["image_id"]: one["Attributes"]["MessageGroupId"] for one in messages}
    assert told == {str(number) * 26: "globex" if number > 7 else "acme" for number in range(10)}
    with pytest.raises(Retryable):
        EdgeQueue(boto3.client("sqs", endpoint_url="http://127.0.0.1:9"), aws.usage_queue_url).forget({ID: "acme"})


class SigningFunction:
    """A client of Lambda whose function signs, or fails."""

    def __init__(self, answer: Any, **others: Any) -> None:
        self.asked: list[dict[str, Any]] = []
        self._answer, self._others = answer, others

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 -- as boto3 names them
        self.asked.append(json.loads(Payload) | {"function": FunctionName})
        return {"Payload": io.BytesIO(json.dumps(self._answer).encode()), **self._others}


ANSWER = {
    "policy": "p",
    "signature": "s",
    "key_pair_id": "KEYPAIR",
    "hash_algorithm": "SHA256",
    "expires_at": rfc3339(NOW),
}


def test_one_policy_is_signed_for_all_variants_of_an_image() -> None:
    function = SigningFunction(ANSWER)
    made: list[SigningFunction] = []

    def client() -> Any:
        made.append(function)
        return function

    signer = UrlSigningFunction(client, "arn", base="https://d1.example")
    assert made == [], "most images are not signed"
    signed = signer.sign(ID)
    assert (
        signer.sign(ID)
        == signed
        == EdgeUrls(
            base="https://d1.example",
            signature="Policy=p&Signature=s&Key-Pair-Id=KEYPAIR&Hash-Algorithm=SHA256",
            expires_at=NOW,
        )
    )
    assert (len(made), function.asked[0]) == (1, {"resource": f"https://d1.example/signed/{ID}/*", "function": "arn"})


DAMAGED: dict[str, tuple[Any, dict[str, str]]] = {
    "it failed": ({"errorMessage": "no key"}, {"FunctionError": "Unhandled"}),
    "a text": ("policy", {}),
    "nothing": (None, {}),
    "a list": ([ANSWER], {}),
    "no signature": ({name: value for name, value in ANSWER.items() if name != "signature"}, {}),
    "no time": (ANSWER | {"expires_at": 1}, {}),
    "another time": (ANSWER | {"expires_at": "tomorrow"}, {}),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_an_answer_that_is_no_signature_is_an_outage_which_says_nothing_of_it(damage: str) -> None:
    answer, others = DAMAGED[damage]
    function: Any = SigningFunction(answer, **others)
    with pytest.raises(Retryable) as outage:  # a warning, and a document without a picture (`edge_urls`)
        UrlSigningFunction(lambda: function, "arn", base="https://d1.example").sign(ID)
    assert not [word for word in ("Policy", "KEYPAIR", "tomorrow") if word in str(outage.value)]
