"""Which credentials open the API, and for whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.tenants import (
    Allowance,
    Caller,
    Tenant,
    TenantState,
    Tier,
    caller_from,
    context_of,
)
from darkroom.domain.tenants import upload_tokens
from darkroom.domain.tenants.api_keys import RANDOM_BYTES, ApiKey, Scope, digest_of, key_from_bits, key_id_of
from darkroom.domain.tenants.upload_tokens import UploadToken, signed_token, upload_token_in
from darkroom.operations.tenants.authorize_request import AuthorizeRequestPorts, Denied, authorize_request
from darkroom.ports.kernel import SecretVersion
from tests.failures import ANY_FAILURE
from tests.support.fakes.secrets import FakeSecret
from tests.support.fakes.tenants import FakeTenants
from tests.support.faults import raising

KEY = key_from_bits(bytes(range(RANDOM_BYTES)))
KEY_ID = key_id_of(KEY) or ""
ACME = Tenant(tenant_id="acme", tier=Tier.PAID, created_at=1)
STORED = ApiKey(key_id=KEY_ID, tenant_id="acme", digest=digest_of(KEY), created_at=1)


NOW = 1_795_251_600_000
TODAY, YESTERDAY = "2026-11-21", "2026-11-20"


def ports(tenants: FakeTenants, now: int = NOW, keys: FakeSecret | None = None) -> AuthorizeRequestPorts:
    return AuthorizeRequestPorts(tenants=tenants, message_keys=keys or FakeSecret(is_down=True), clock=lambda: now)


@pytest.fixture
def tenants() -> FakeTenants:
    return FakeTenants(tenants={"acme": ACME}, keys={KEY_ID: STORED})


def test_what_was_agreed_with_the_tenant_is_handed_on(tenants: FakeTenants) -> None:
    tenants.tenants["acme"] = replace(ACME, tier=Tier.FREE, requests_per_second=3, burst=4)
    caller = authorize_request(ports(tenants), f"Bearer {KEY}")
    assert isinstance(caller, Caller)
    assert (caller.tier, caller.allowance) == (Tier.FREE, Allowance(requests_per_second=3, burst=4))


@pytest.mark.guards("key-typo-checksum")
@pytest.mark.parametrize(
    "header",
    ["", "Bearer", KEY, f"Basic {KEY}", f"Bearer {KEY[:-1]}", f"Bearer {KEY[:-1]}z", "Bearer eyJhbGciOiJub25lIn0.e30."],
)
def test_what_is_no_key_is_denied_without_a_look_at_the_table(header: str) -> None:
    # And the log contains none of it: it may be part of a secret.
    assert authorize_request(ports(FakeTenants(keys=NotLookedAt())), header) == Denied(reason="malformed")


class NotLookedAt(dict[str, ApiKey]):
    def get(self, *_: object) -> None:  # type: ignore[override]
        raise AssertionError("the table was asked")


def test_a_key_that_nobody_has_is_denied() -> None:
    assert authorize_request(ports(FakeTenants()), f"Bearer {KEY}") == Denied(reason="unknown", key_id=KEY_ID)


@pytest.mark.guards("key-secret-comparison")
def test_a_key_with_the_id_of_another_one_is_denied(tenants: FakeTenants) -> None:
    forged = key_from_bits(bytes(range(5)) + bytes(20))
    assert key_id_of(forged) == KEY_ID
    assert authorize_request(ports(tenants), f"Bearer {forged}") == Denied(reason="unknown", key_id=KEY_ID)


@pytest.mark.guards("key-revoked-denied")
def test_a_revoked_key_is_denied(tenants: FakeTenants) -> None:
    tenants.revoke_key(KEY_ID, 9)
    assert authorize_request(ports(tenants), f"Bearer {KEY}") == Denied(reason="revoked", key_id=KEY_ID)


@pytest.mark.guards("key-of-suspended-tenant-denied")
def test_the_keys_of_a_suspended_tenant_are_denied(tenants: FakeTenants) -> None:
    tenants.change_tenant(ACME, replace(ACME, state=TenantState.SUSPENDED))
    assert authorize_request(ports(tenants), f"Bearer {KEY}") == Denied(reason="suspended", key_id=KEY_ID)


def test_a_key_whose_tenant_is_gone_is_denied(tenants: FakeTenants) -> None:
    del tenants.tenants["acme"]
    assert authorize_request(ports(tenants), f"Bearer {KEY}") == Denied(reason="suspended", key_id=KEY_ID)


@pytest.mark.parametrize("silent", ["key", "tenant"])
def test_while_the_table_does_not_answer_nobody_is_let_in_or_told_that_their_key_is_wrong(
    tenants: FakeTenants, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenants, silent, raising(Retryable("reading the tenants: timeout")))
    with pytest.raises(Retryable):
        authorize_request(ports(tenants), f"Bearer {KEY}")


# ── Scopes, expiry, use ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_opens_for_what_it_was_made_for(tenants: FakeTenants) -> None:
    tenants.keys[KEY_ID] = replace(STORED, scopes=("images:read", "invented:later"))
    caller = authorize_request(ports(tenants), f"Bearer {KEY}")
    assert isinstance(caller, Caller)
    assert caller.scopes == frozenset({"images:read", "invented:later"})


@pytest.mark.guards("key-expired-denied")
@pytest.mark.parametrize(("expires_at", "opens"), [(NOW + 1, True), (NOW, False), (NOW - 1, False)])
def test_a_key_opens_until_it_expires(tenants: FakeTenants, expires_at: int, opens: bool) -> None:
    tenants.keys[KEY_ID] = replace(STORED, expires_at=expires_at)
    answer = authorize_request(ports(tenants), f"Bearer {KEY}")
    assert isinstance(answer, Caller) if opens else answer == Denied(reason="expired", key_id=KEY_ID)


@pytest.mark.guards("key-use-noted-daily")
def test_the_day_of_its_use_is_noted_once_a_day(tenants: FakeTenants) -> None:
    noted: list[tuple[str, str]] = []
    note_use = tenants.note_use

    def noting(key_id: str, day: str) -> None:
        noted.append((key_id, day))
        note_use(key_id, day)

    tenants.note_use = noting  # type: ignore[method-assign]
    for _ in range(3):
        authorize_request(ports(tenants), f"Bearer {KEY}")
    assert noted == [(KEY_ID, TODAY)]
    assert tenants.keys[KEY_ID].last_used_on == TODAY
    tenants.keys[KEY_ID] = replace(STORED, last_used_on=YESTERDAY)
    authorize_request(ports(tenants), f"Bearer {KEY}")
    assert tenants.keys[KEY_ID].last_used_on == TODAY


@pytest.mark.parametrize("change", [{"revoked_at": 1}, {"expires_at": 1}])
def test_a_key_that_opens_nothing_is_not_noted_as_used(tenants: FakeTenants, change: dict[str, int]) -> None:
    tenants.keys[KEY_ID] = replace(STORED, **change)  # type: ignore[arg-type]
    authorize_request(ports(tenants), f"Bearer {KEY}")
    assert tenants.keys[KEY_ID].last_used_on is None


@pytest.mark.guards("key-use-note-failure-tolerated")
@pytest.mark.guards("bookkeeping-failure-contained", case="denied")
@ANY_FAILURE
def test_a_use_that_cannot_be_noted_lets_the_request_pass(
    tenants: FakeTenants, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    monkeypatch.setattr(tenants, "note_use", raising(failure))
    assert isinstance(authorize_request(ports(tenants), f"Bearer {KEY}"), Caller)


# ── Upload tokens ────────────────────────────────────────────────────────────────────────────────────────────────────

KEYS = FakeSecret()
TOKEN = UploadToken(token_id="0" * 16, key_id=KEY_ID, expires_at=NOW + 60_000, count=1, max_bytes=1000)


def bearer_of(token: UploadToken = TOKEN, secret: FakeSecret = KEYS) -> str:
    version = secret.current()
    return f"Bearer {signed_token(token, key_id=version.version_id, secret=version.text)}"


@pytest.mark.guards("upload-token-earlier-functions")
def test_an_upload_token_opens_for_the_tenant_of_its_key_and_for_no_scope(tenants: FakeTenants) -> None:
    caller = authorize_request(ports(tenants, keys=KEYS), bearer_of())
    assert isinstance(caller, Caller)
    assert (caller.tenant_id, caller.key_id, caller.allowance) == ("acme", KEY_ID, Tier.PAID.allowance)
    assert upload_token_in(caller.upload_token or "") == TOKEN
    # A function that knows of no tokens takes its caller for one whose key may do nothing.
    assert caller.scopes is not None and caller.scopes.isdisjoint(Scope)
    assert caller_from(context_of(caller)) == caller
    assert '"' not in str(context_of(caller)["upload_token"]), "the gateway's cache has spoilt JSON in a context"


def secret_of(version_id: str, text: str) -> FakeSecret:
    return FakeSecret([SecretVersion(version_id=version_id, text=text, created_at=1)])


@pytest.mark.guards("upload-token-signature")
@pytest.mark.parametrize(
    "header",
    [
        bearer_of(secret=secret_of(KEYS.current().version_id, "b")),
        bearer_of(secret=secret_of("another stack's", KEYS.current().text)),
        "Bearer dru_",
        f"{bearer_of()[:-1]}!",
        f"{bearer_of().partition('.')[0]}.e30.{'a' * 43}",
    ],
)
def test_a_token_that_was_not_signed_here_is_denied_without_a_look_at_the_table(header: str) -> None:
    denied = authorize_request(ports(FakeTenants(keys=NotLookedAt()), keys=KEYS), header)
    assert isinstance(denied, Denied) and denied.reason in ("malformed", "forged") and denied.key_id is None


@pytest.mark.guards("upload-token-expired-denied")
@pytest.mark.parametrize(("now", "opens"), [(NOW + 59_999, True), (NOW + 60_000, False)])
def test_a_token_opens_until_it_expires(tenants: FakeTenants, now: int, opens: bool) -> None:
    answer = authorize_request(ports(tenants, now, KEYS), bearer_of())
    assert isinstance(answer, Caller) if opens else answer == Denied(reason="expired", key_id=KEY_ID)


@pytest.mark.guards("key-revoked-denied", "key-expired-denied", "upload-token-key-scope")
@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (None, "unknown"),
        (replace(STORED, revoked_at=9), "revoked"),
        (replace(STORED, expires_at=NOW), "expired"),
        (replace(STORED, scopes=("images:read",)), "out of scope"),
        (replace(STORED, tenant_id="gone"), "suspended"),
    ],
)
def test_a_token_ends_with_its_key(tenants: FakeTenants, key: ApiKey | None, reason: str) -> None:
    tenants.keys = {} if key is None else {KEY_ID: key}
    denied = authorize_request(ports(tenants, keys=KEYS), bearer_of())
    assert isinstance(denied, Denied) and (denied.reason, denied.key_id) == (reason, KEY_ID)


@pytest.mark.guards("key-of-suspended-tenant-denied")
def test_the_tokens_of_a_suspended_tenant_are_denied(tenants: FakeTenants) -> None:
    tenants.change_tenant(ACME, replace(ACME, state=TenantState.SUSPENDED))
    assert authorize_request(ports(tenants, keys=KEYS), bearer_of()) == Denied(reason="suspended", key_id=KEY_ID)


def test_a_token_outlives_one_replacement_of_the_secret_and_no_second_one(tenants: FakeTenants) -> None:
    secret = FakeSecret()
    header = bearer_of(secret=secret)
    secret.replace("b" * 64, now=NOW)
    assert isinstance(authorize_request(ports(tenants, keys=secret), header), Caller)
    secret.replace("c" * 64, now=NOW)
    assert authorize_request(ports(tenants, keys=secret), header) == Denied(reason="forged")


def test_a_token_that_a_newer_version_has_made_is_denied(tenants: FakeTenants, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(upload_tokens, "_VERSION", 2)
        header = bearer_of()
    assert authorize_request(ports(tenants, keys=KEYS), header) == Denied(reason="malformed")


def test_while_the_secret_cannot_be_read_no_token_is_let_in_and_keys_are(tenants: FakeTenants) -> None:
    down = FakeSecret(is_down=True)
    with pytest.raises(Retryable):
        authorize_request(ports(tenants, keys=down), bearer_of())
    assert isinstance(authorize_request(ports(tenants, keys=down), f"Bearer {KEY}"), Caller)
