"""Upload tokens: their form, what of them is believed, and what one allows."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkroom.domain.images.order import order_of
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.kernel.field_problems import InvalidFields
from darkroom.domain.kernel.signature import sign
from darkroom.domain.kernel.tenants import Caller, Tier
from darkroom.domain.tenants.upload_tokens import (
    MAX_TOKEN_CHARACTERS,
    UploadToken,
    read_signed_token,
    signed_token,
    upload_token_in,
)
from darkroom.http.uploads.upload_tokens import read_token_request
from darkroom.operations.uploads.create_upload_token import (
    CreateUploadTokenPorts,
    TokenTerms,
    create_upload_token,
)
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg
from tests.support.fakes.secrets import FakeSecret

SECRET, KEY_ID = "s" * 64, "11111111-aaaa"
TOKEN = UploadToken(
    token_id="000g40r40m30e209",
    key_id="000g40r4",
    expires_at=1_795_251_660_000,
    count=2,
    max_bytes=10_000,
    order={"preset": "standard", "variants": ["thumb"]},
    origins=("https://shop.example.com",),
)
TEXT = signed_token(TOKEN, key_id=KEY_ID, secret=SECRET)


def verified(text: str, secret: str = SECRET) -> UploadToken | None:
    signed = read_signed_token(text)
    return upload_token_in(signed.payload) if signed is not None and signed.verifies(secret) else None


def test_a_token_says_what_it_allows_and_by_which_key_it_is_signed() -> None:
    assert TEXT.startswith("dru_MTExMTExMTEtYWFhYQ.eyJ2IjoxLCJ0b2tlbl9pZCI6IjAwMGc0MHI0MG0zMGUyMDki"), "must not move"
    signed = read_signed_token(TEXT)
    assert signed is not None and signed.signed_with == KEY_ID
    assert verified(TEXT) == TOKEN


@pytest.mark.guards("upload-token-signature")
@given(st.integers(4, len(TEXT) - 1), st.sampled_from("abcXYZ019-_"))
def test_a_token_with_any_other_character_is_not_believed(place: int, character: str) -> None:
    changed = TEXT[:place] + character + TEXT[place + 1 :]
    signed = read_signed_token(changed)
    # The id of the signing key only says where to look.
    assert changed == TEXT or verified(changed) is None or (signed and signed.signed_with) != KEY_ID or place < 26


@pytest.mark.guards("upload-token-signature")
def test_another_stack_does_not_believe_it_nor_anybody_who_raises_the_count() -> None:
    assert verified(TEXT, "t" * 64) is None
    head, payload, signature = TEXT.split(".")
    written = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    raised = urlsafe_b64encode(json.dumps(written | {"count": 1000}).encode()).decode().rstrip("=")
    assert verified(f"{head}.{raised}.{signature}") is None


def test_no_signature_of_a_message_is_one_of_a_token() -> None:
    payload = TEXT.split(".")[1]
    digest = bytes.fromhex(sign(key_id=KEY_ID, secret=SECRET, queue="fast", group="acme", body=payload).digest)
    assert verified(f"{TEXT.rpartition('.')[0]}.{urlsafe_b64encode(digest).decode().rstrip('=')}") is None


@pytest.mark.parametrize(
    "text", ["dru_", "dru_a.b.c", f"dr{TEXT}", TEXT[:-1], f"{TEXT}a", TEXT + "." + TEXT, f"{TEXT[:40]} {TEXT[41:]}"]
)
def test_anything_else_is_no_token(text: str) -> None:
    assert read_signed_token(text) is None


def test_a_payload_of_another_version_is_not_read() -> None:
    with pytest.raises(ValueError, match="another version"):
        upload_token_in(urlsafe_b64encode(b'{"v": 2}').decode().rstrip("="))


@pytest.mark.guards("upload-token-length")
def test_what_makes_a_token_too_long_for_a_header_is_refused() -> None:
    recipe = {"variants": [{"name": f"variant-{number}", "width": 600, "height": 400} for number in range(90)]}
    with pytest.raises(Rejected, match="Use a preset") as refusal:
        signed_token(replace(TOKEN, order={"recipe": recipe}), key_id=KEY_ID, secret=SECRET)
    assert refusal.value.code == "upload_token_too_long"
    assert len(TEXT) < MAX_TOKEN_CHARACTERS


# ── What a server asks for ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("upload-token-a-day-at-most", case="asked4-expires_in")
@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"count": 0}, "count"),
        ({"count": 1001}, "count"),
        ({"count": True}, "count"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"expires_in": "P1DT1S"}, "expires_in"),
        ({"expires_in": "PT0S"}, "expires_in"),
        ({"expires_in": "tomorrow"}, "expires_in"),
        ({"expires_in": 60}, "expires_in"),
        ({"origins": []}, "origins"),
        ({"origins": ["*"]}, "origins.0"),
        ({"origins": ["https://a.example/path"]}, "origins.0"),
        ({"origins": [f"https://a{number}.example" for number in range(11)]}, "origins"),
        ({"delay": "PT1H"}, "delay"),
        ({"on_duplicate": "reuse"}, "on_duplicate"),
    ],
)
def test_terms_that_no_token_can_have_are_refused_by_field(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidFields) as refusal:
        read_token_request(json.dumps(asked).encode())
    assert (refusal.value.code, [problem.field for problem in refusal.value.problems]) == (
        "invalid_upload_token",
        [field],
    )


def test_what_is_not_said_is_an_hour_for_one_image_of_the_usual_preset() -> None:
    assert read_token_request(b"{}") == TokenTerms(
        seconds=3600, count=1, max_bytes=None, origins=(), written_order={}, order=order_of()
    )
    assert read_token_request(b'{"expires_in": "P1D"}').seconds == 24 * 3600


CALLER = Caller(tenant_id="acme", tier=Tier.FREE, allowance=None, key_id="000g40r4")


def made(world: World, asked: dict[str, Any], caller: Caller = CALLER, secret: FakeSecret | None = None) -> Any:
    ports = world.ports(CreateUploadTokenPorts, message_keys=secret or FakeSecret(), max_bytes=25_000_000)
    return create_upload_token(ports, caller, read_token_request(json.dumps(asked).encode()))


def test_a_token_is_made_without_a_write_and_allows_no_larger_file_than_the_stack(world: World) -> None:
    token, text = made(world, {"count": 3, "max_bytes": 10**12, "preset": "avatar"})
    assert (token.key_id, token.count, token.max_bytes) == ("000g40r4", 3, 25_000_000)
    assert (token.expires_at, token.order) == (world.now + 3_600_000, {"preset": "avatar"})
    assert verified(text, "a" * 64) == token
    assert world.upload_token_uses.images == {}


@pytest.mark.guards("upload-token-notify-checked")
@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"preset": "huge"}, "unknown_preset"),
        ({"variants": ["huge"]}, "unknown_variants"),
        ({"recipe": {"variants": []}}, "invalid_recipe"),
        ({"preset": "avatar", "recipe": {"variants": [{"name": "a", "width": 1}]}}, "conflicting_parameters"),
        ({"notify": "we_0000000000000000"}, "unknown_notify"),
    ],
)
def test_an_order_that_would_be_refused_is_refused_when_the_token_is_made(
    world: World, asked: dict[str, Any], code: str
) -> None:
    with pytest.raises(Rejected) as refusal:
        made(world, asked)
    assert refusal.value.code == code


def test_who_has_no_key_makes_no_token(world: World) -> None:
    with pytest.raises(Rejected, match="API keys") as refusal:
        made(world, {}, replace(CALLER, key_id=None))
    assert refusal.value.code == "part_not_deployed"


@pytest.mark.guards("upload-token-new-secret-settling")
def test_a_new_secret_does_not_sign_before_every_reader_knows_it(world: World) -> None:
    secret = FakeSecret()
    before = secret.current()
    new = secret.replace("b" * 64, now=world.now)
    for seconds, version in ((59, before), (1, new)):
        world.advance(seconds)
        signed = read_signed_token(made(world, {}, secret=secret)[1])
        assert signed is not None and signed.signed_with == version.version_id


# ── Its uses ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PHOTO, OTHER = jpeg(), jpeg(32, 24)


def token_of(world: World, **terms: Any) -> UploadToken:
    usual: dict[str, Any] = {"expires_at": world.now + 60_000, "count": 2, "max_bytes": 10_000_000, "origins": ()}
    return replace(TOKEN, **usual | terms)


def refused(world: World, token: UploadToken, body: bytes = PHOTO, **more: Any) -> str:
    with pytest.raises(Rejected) as refusal:
        world.submit(body, upload_token=token, **more)
    with pytest.raises(Rejected) as other:
        world.begin(body, upload_token=token, **more)
    assert other.value.code == refusal.value.code
    return refusal.value.code


@pytest.mark.guards("upload-token-use-counted")
def test_a_token_is_for_so_many_images_and_a_repeated_one_counts_once(world: World) -> None:
    token = token_of(world)
    for _ in range(3):
        world.submit(PHOTO, upload_token=token, idempotency_key="1")
        world.begin(OTHER, upload_token=token, idempotency_key="2")
    assert refused(world, token) == "upload_token_used_up"
    assert len(world.images.rows) == 2
    assert len(world.originals.objects) == 1, "what is refused is not stored"
    assert {row.upload_token for row in world.images.rows.values()} == {token.token_id}
    world.submit(PHOTO)  # who has a key needs no token


@pytest.mark.guards("upload-token-own-keys")
def test_a_tokens_keys_are_neither_its_tenants_nor_another_tokens(world: World) -> None:
    tokens = (None, token_of(world), token_of(world, token_id="another"))
    ids = {
        world.submit(body, upload_token=token, idempotency_key="order-17", tenant_id="acme").image.image_id
        for token, body in zip(tokens, (PHOTO, OTHER, PHOTO), strict=True)
    }
    assert len(ids) == 3


@pytest.mark.guards("upload-token-max-bytes")
def test_a_larger_file_than_the_token_allows_is_refused_and_does_not_count(world: World) -> None:
    token = token_of(world, max_bytes=len(PHOTO) - 1)
    assert refused(world, token) == "upload_too_large"
    assert world.upload_token_uses.images == {}
    world.submit(OTHER, upload_token=token)


@pytest.mark.guards("upload-token-expiry-exact")
def test_a_token_that_the_gateway_still_lets_in_is_refused_from_its_last_millisecond_on(world: World) -> None:
    token = token_of(world)
    world.advance(59.999)
    world.submit(PHOTO, upload_token=token, idempotency_key="1")
    world.advance(0.001)
    assert refused(world, token) == "upload_token_expired"
    assert world.submit(PHOTO, upload_token=token, idempotency_key="1").replayed, "what was accepted is told"
