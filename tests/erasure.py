"""Looks in every store of an account for what describes a picture: after its deletion there must be nothing."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from PIL import Image as Picture

from darkroom.domain.images.image import Image

type Marks = dict[str, bytes]

_RECEIVES_IN_VAIN = 3


def unlike_any_other(seed: int) -> bytes:
    """A photo of coloured noise: neither its bytes nor its placeholder are another photo's."""
    chance = random.Random(seed)
    small = Picture.frombytes("RGB", (4, 3), bytes(chance.randrange(256) for _ in range(4 * 3 * 3)))
    file = io.BytesIO()
    small.resize((320, 240), Picture.Resampling.BICUBIC).save(file, "JPEG", quality=88)
    return file.getvalue()


def marks_of(photo: bytes, image: Image, outputs: Mapping[str, bytes]) -> Marks:
    """What describes the image, by name: parts of its files, their hashes in the ways in which stores write them, its
    placeholder, recipe and fingerprint, its client's words, and what its errors say."""
    marks = {}
    for name, body in {"the original": photo, **outputs}.items():
        marks[f"bytes of {name}"] = body[-50:-2]  # the picture itself: tables come before it
        for kind in ("sha256", "md5"):
            digest = hashlib.new(kind, body, usedforsecurity=False).digest()
            marks[f"{kind} of {name}"] = digest.hex().encode()
            marks[f"{kind} of {name}, in base64"] = base64.b64encode(digest)
    if image.recipe is not None:
        marks["the digest of its recipe"] = image.recipe.digest().encode()
        marks |= {f"its variant {variant.name}": variant.name.encode() for variant in image.recipe.variants}
    marks |= {f"its {name}": text.encode() for name, text in (image.placeholder or {}).items()}
    marks["its fingerprint"] = image.fingerprint.encode()
    words = (image.reference, image.metadata, *image.tags)
    marks |= {f"its client's word {number}": text.encode() for number, text in enumerate(words) if text}
    marks["its URL"] = (image.url or "").encode()
    for attempt in image.attempts:
        if attempt.cause is not None:
            marks |= {f"what {attempt.number} failed of": attempt.cause.message.encode()}
    return marks


def traces(marks: Marks, client: Callable[[str], Any]) -> list[str]:
    """Where the account has any of the marks, in words."""
    return sorted(
        f"{where} has {name}"
        for where, content in _contents(client)
        for name, mark in marks.items()
        if mark and mark in content
    )


def _contents(client: Callable[[str], Any]) -> Iterator[tuple[str, bytes]]:
    yield from _items(client("dynamodb"))
    yield from _objects(client("s3"))
    yield from _messages(client("sqs"))
    yield from _log_lines(client("logs"))


def _items(dynamodb: Any) -> Iterator[tuple[str, bytes]]:
    for table in dynamodb.list_tables()["TableNames"]:
        for page in dynamodb.get_paginator("scan").paginate(TableName=table):
            for item in page["Items"]:
                # What is stored as text in JSON is looked at both as it is and as the text that it stands for.
                text = json.dumps(item)
                yield f"the table {table}", (text + text.replace('\\"', '"').replace("\\\\", "\\")).encode()


def _objects(s3: Any) -> Iterator[tuple[str, bytes]]:
    for bucket in (each["Name"] for each in s3.list_buckets()["Buckets"]):
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            for version in page.get("Versions", ()):
                named = {"Bucket": bucket, "Key": version["Key"]}
                if version["VersionId"] != "null":
                    named["VersionId"] = version["VersionId"]
                stored = s3.get_object(**named, ChecksumMode="ENABLED")
                about = {name: value for name, value in stored.items() if name not in ("Body", "ResponseMetadata")}
                yield f"the object {version['Key']} in {bucket}", stored["Body"].read() + repr(about).encode()
            for marker in page.get("DeleteMarkers", ()):
                yield f"the delete marker of {marker['Key']} in {bucket}", repr(marker).encode()


def _messages(sqs: Any) -> Iterator[tuple[str, bytes]]:
    """Every message that can be received, which are visible again at once."""
    for url in sqs.list_queues().get("QueueUrls", ()):
        seen: dict[str, Any] = {}
        in_vain = 0
        while in_vain < _RECEIVES_IN_VAIN:
            messages = sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=10,
                VisibilityTimeout=60,
                MessageAttributeNames=["All"],
                AttributeNames=["All"],
            ).get("Messages", [])
            fresh = {message["MessageId"]: message for message in messages if message["MessageId"] not in seen}
            in_vain = 0 if fresh else in_vain + 1
            seen |= fresh
        for message in seen.values():
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
            yield f"the queue {url.rpartition('/')[2]}", json.dumps(message).encode()


def _log_lines(logs: Any) -> Iterator[tuple[str, bytes]]:
    for group in logs.describe_log_groups()["logGroups"]:
        for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"]):
            for event in page["events"]:
                yield f"the log {group['logGroupName']}", event["message"].encode()
