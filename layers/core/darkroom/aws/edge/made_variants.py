"""The variants that were made on request: objects of the outputs' bucket, with a tag by which a rule removes them."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of, retryable
from darkroom.aws.kernel.missing import FORBIDDEN, MISSING
from darkroom.aws.kernel.removal import remove_objects
from darkroom.domain.edge.forgetting import made_of
from darkroom.domain.kernel.errors import demand_none
from darkroom.ports.edge import MadeVariant

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MADE_ON_REQUEST = "made=on-request"
"""The tag of the lifecycle rule of the outputs' bucket."""

CACHE_TAG = "cache-tag"
"""The name of the metadata by which the edge forgets all objects of an image."""


class MadeVariantsBucket:
    """Implements the `MadeVariants` port. The role may list nothing, so an object that is missing cannot be told from
    one that is forbidden: the call that then stores it fails if it is."""

    def __init__(self, client: S3Client, bucket_name: str) -> None:
        self._client = client
        self._bucket_name = bucket_name

    def get(self, key: str) -> MadeVariant | None:
        with retryable("fetching a variant"):
            try:
                answer = self._client.get_object(Bucket=self._bucket_name, Key=key, ChecksumMode="ENABLED")
            except ClientError as error:
                if code_of(error) not in MISSING | FORBIDDEN:
                    raise
                return None
            body = answer["Body"].read()
        return MadeVariant(
            key=key,
            image_id=answer["Metadata"][CACHE_TAG],
            media_type=answer["ContentType"],
            viewer_seconds=int(answer["CacheControl"].partition("max-age=")[2].partition(",")[0]),
            body=body,
        )

    def put_if_absent(self, variant: MadeVariant) -> bool:
        name = variant.key.rpartition("/")[2]
        try:
            with retryable("storing a variant"):
                self._client.put_object(
                    Bucket=self._bucket_name,
                    Key=variant.key,
                    Body=variant.body,
                    ContentType=variant.media_type,
                    CacheControl=cache_control_of(variant),
                    ContentDisposition=f'inline; filename="{name}"',
                    Metadata={CACHE_TAG: variant.image_id},  # guard: on-request-objects-tagged
                    Tagging=MADE_ON_REQUEST,  # guard: on-request-objects-expire
                    IfNoneMatch="*",  # guard: on-request-never-overwritten
                    ChecksumAlgorithm="SHA256",
                    ChecksumSHA256=base64.b64encode(hashlib.sha256(variant.body).digest()).decode(),
                )
        except ClientError as error:
            if code_of(error) != "PreconditionFailed":
                raise
            return False
        return True

    def remove(self, key: str) -> None:
        with retryable("removing a variant"):
            self._client.delete_object(Bucket=self._bucket_name, Key=key)

    def remove_all(self, image_id: str) -> None:
        with retryable("listing what was made of an image"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket_name,
                Prefix=made_of(image_id),  # guard: on-request-recipes-variants-kept
            )
            keys = [(item["Key"], "") for page in pages for item in page.get("Contents", ())]
        demand_none(remove_objects(self._client, self._bucket_name, keys, "removing what was made of an image"))


def cache_control_of(variant: MadeVariant) -> str:
    """What viewers are told: the bytes behind its URL never change."""
    return f"public, max-age={variant.viewer_seconds}, immutable"
