"""Rows and objects that are planted in a running stack, so that a gallery of thousands needs no developing."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import batched, product
from typing import Any

from PIL import Image as Picture

from darkroom.aws.images.images_table import to_item
from darkroom.aws.images.objects import CACHE_CONTROL
from darkroom.aws.webhooks.deliveries_table import DeliveriesTable
from darkroom.aws.webhooks.endpoints_table import EndpointsTable
from darkroom.domain.images.image import Failure, Image, Source, Status, Variant
from darkroom.domain.kernel.ids import image_id_for_key
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.tenants import Tier
from darkroom.domain.recipes.presets import PRESETS
from darkroom.domain.webhooks.delivery import Delivery, DeliveryAttempt, DeliveryStatus, delivery_id_of
from darkroom.domain.webhooks.endpoint import Endpoint
from darkroom_cli.operator.aws.tenant_registry import TenantRegistryTable
from darkroom_cli.operator.operations.tenants.add_tenant import AddTenantPorts, add_tenant
from darkroom_cli.operator.operations.tenants.create_key import CreateKeyPorts, create_key
from local_aws.stacks.running import LocalStack
from repository.report import ROOT
from tests.support.fakes.audit import trail_of
from tests.support.fakes.pictures import encoded

THUMBNAIL = (256, 192)
"""The width and height of every planted thumbnail."""

PICTURES = 24
"""How many different thumbnails there are."""

_PHOTO = ROOT / "tests" / "photos" / "seeding-16mp.jpg"
_THUMBHASH = "1QcSHQRnh493V4dIh4eXh1h4kJUI"
_MINUTE = 60_000
_BATCH = 25  # the most rows of one BatchWriteItem


def clock() -> Milliseconds:
    """The present."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, kw_only=True)
class Account:
    """A tenant of a stack with access keys, and one of its keys."""

    tenant_id: str
    key: str


def planted_account(stack: LocalStack, *, requests_per_second: int = 1000, burst: int = 5000) -> Account:
    """A new tenant, which usually may do as much as it likes, and its key."""
    tenant_id = f"visitor-{secrets.token_hex(6)}"
    tenants = TenantRegistryTable(stack.client("dynamodb"), stack.physical_id("TenantsTable"))
    add_tenant(
        AddTenantPorts(tenants=tenants, clock=clock, audit=trail_of()),
        tenant_id,
        tier=Tier.PAID,
        requests_per_second=requests_per_second,
        burst=burst,
    )
    ports = CreateKeyPorts(tenants=tenants, clock=clock, randomness=secrets.token_bytes, audit=trail_of())
    key, _ = create_key(ports, tenant_id, label="the page's tests")
    return Account(tenant_id=tenant_id, key=key)


def image(tenant_id: str, number: int, *, status: Status = Status.DONE, **stated: Any) -> Image:
    """The row of one image that has ended, the newer the lower its number; `stated` are other values of its fields."""
    created = clock() - number * _MINUTE
    variants = () if status is not Status.DONE else (thumbnail(tenant_id, number),)
    usual: dict[str, Any] = {
        "image_id": image_id_for_key(tenant_id, str(number)),
        "tenant_id": tenant_id,
        "lane": "fast",
        "status": status,
        "run": 1,
        "attempt": 1,
        "schedule": 0,
        "version": 3,
        "preset": "standard",
        "recipe": PRESETS["standard"],
        "fingerprint": "planted",
        "correlation_id": f"planted-{number}",
        "source": Source(version_id="planted", sha256="0" * 64, size_bytes=3_000_000, media_type="image/jpeg"),
        "created_at": created,
        "accepted_at": created,
        "accepted_version": 1,
        "completed_at": created + 4000,
        "completed_version": 3,
        "variants": variants,
        "placeholder": {"thumbhash": _THUMBHASH, "color": "#7a6a52"} if variants else None,
        "error": None if status is not Status.FAILED else _FAILURE,
    }
    return Image(**usual | stated)


_FAILURE = Failure(code="unsupported_format", message="This file is no image of a known format.", retryable=False)


def thumbnail(tenant_id: str, number: int) -> Variant:
    """One of a tenant's planted thumbnails: to delete an image takes no other tenant's away."""
    body = _thumbnail(number % PICTURES)
    width, height = THUMBNAIL
    return Variant(
        name="thumb",
        width=width,
        height=height,
        format="jpeg",
        size_bytes=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        key=f"planted/{tenant_id}/{number % PICTURES}.jpg",
    )


def plant(stack: LocalStack, images: Iterable[Image]) -> None:
    """Writes the rows, and the thumbnails that they name."""
    images = list(images)
    s3, bucket = stack.client("s3"), stack.outputs["OutputsBucketName"]
    for tenant_id, number in product({image.tenant_id for image in images}, range(PICTURES)):
        s3.put_object(
            Bucket=bucket,
            Key=thumbnail(tenant_id, number).key,
            Body=_thumbnail(number),
            ContentType="image/jpeg",
            CacheControl=CACHE_CONTROL,
        )
    dynamodb, table = stack.client("dynamodb"), stack.outputs["ImagesTableName"]

    def write(rows: Sequence[Image]) -> None:
        requests = [{"PutRequest": {"Item": to_item(row)}} for row in rows]
        answer = dynamodb.batch_write_item(RequestItems={table: requests})
        if answer.get("UnprocessedItems"):
            raise RuntimeError("the table left rows out")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, batched(images, _BATCH, strict=False)))


def plant_webhook(stack: LocalStack, endpoint: Endpoint, deliveries: Iterable[Delivery] = ()) -> None:
    """Writes the row of an endpoint, and its deliveries."""
    client = stack.client("dynamodb")
    EndpointsTable(client, stack.physical_id("EndpointsTable")).create(endpoint)
    table = DeliveriesTable(client, stack.physical_id("DeliveriesTable"))
    for delivery in deliveries:
        table.create(delivery)


def endpoint(tenant_id: str, number: int = 0, **stated: Any) -> Endpoint:
    """The row of a tenant's endpoint, which has its place by its number: 0 to 9."""
    usual: dict[str, Any] = {
        "endpoint_id": f"we_{number}{image_id_for_key(tenant_id, 'webhook')[:15]}",
        "tenant_id": tenant_id,
        "url": "https://receiver.example/photos",
        "events": ("*",),
        "created_at": clock(),
    }
    return Endpoint(**usual | stated)


def delivery(of: Endpoint, number: int, **stated: Any) -> Delivery:
    """The row of a delivery that its receiver refused until none was left to try."""
    created = clock() - number * _MINUTE
    attempt = DeliveryAttempt(number=1, started_at=created, milliseconds=12, status=500, response="out of order")
    event_id = f"{image_id_for_key(of.tenant_id, str(number))}-3"
    usual: dict[str, Any] = {
        "endpoint_id": of.endpoint_id,
        "delivery_id": delivery_id_of(event_id, created),
        "tenant_id": of.tenant_id,
        "event_id": event_id,
        "event_type": "image.done",
        "body": '{"type":"image.done"}',
        "created_at": created,
        "status": DeliveryStatus.FAILED,
        "attempt": 1,
        "attempts": (attempt,),
        "ended_at": created + 1000,
    }
    return Delivery(**usual | stated)


@cache
def _thumbnail(number: int) -> bytes:
    """A detail of a real photo: what a browser decodes while it scrolls should be no easier than in life."""
    photo, (width, height) = _photo(), THUMBNAIL
    left, top = (number % 6) * (photo.width - width) // 5, (number // 6) * (photo.height - height) // 3
    return encoded(photo.crop((left, top, left + width, top + height)), "JPEG", quality=80)


@cache
def _photo() -> Picture.Image:
    with Picture.open(_PHOTO) as photo:
        photo.draft("RGB", (1200, 900))
        return photo.convert("RGB")
