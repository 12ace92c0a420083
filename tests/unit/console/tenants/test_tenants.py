"""`darkroom tenants` and `darkroom keys`, over the fakes: what they print, what is shown once, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import pytest

from console.tenants import commands as tenants
from console.tenants import keys
from darkroom.domain.api_keys import key_id_of, opens
from darkroom.domain.tenants import TenantState, Tier
from proof.fakes.tenants import FakeTenants
from tests.unit.console.conftest import Run


@dataclass
class FakeStack:
    """A deployed stack over the fakes."""

    tenants: FakeTenants = field(default_factory=FakeTenants)
    access: str = "keys"
    name: str = "shop"
    options: str = " --stack shop --region eu-west-1"
    now: int = 1_795_251_600_000
    explained: Callable[[], AbstractContextManager[None]] = nullcontext

    def clock(self) -> int:
        self.now += 1000
        return self.now


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    fake = FakeStack()
    for module in (tenants, keys):
        monkeypatch.setattr(module, "reach", lambda *_: fake)
    return fake


def test_a_tenant_is_added_and_what_comes_next_is_said(run: Run, stack: FakeStack) -> None:
    result = run("tenants", "add", "acme", "--tier", "paid", "--burst", "1000")
    assert result.exit_code == 0
    assert "Added acme: paid, 100 requests per second, 1,000 at once." in result.stdout
    assert "./darkroom keys create acme --stack shop --region eu-west-1" in result.stdout
    assert stack.tenants.tenants["acme"].tier is Tier.PAID


def test_a_tenant_that_is_there_is_not_added_again(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme", "--tier", "paid")
    result = run("tenants", "add", "acme")
    assert result.exit_code == 1
    assert "The tenant acme already exists: paid" in result.stderr
    assert stack.tenants.tenants["acme"].tier is Tier.PAID


@pytest.mark.parametrize(
    "arguments",
    [
        ("tenants", "add", "a b"),
        ("tenants", "add", "acme", "--tier", "gold"),
        ("tenants", "add", "acme", "--requests-per-second", "0"),
        ("tenants", "change", "acme"),
        ("tenants", "change", "acme", "--burst", "5", "--usual-limits"),
        ("keys", "create", "acme", "--label", ""),
        ("keys", "create", "acme", "--label", "x" * 101),
        ("keys", "revoke", "no-id"),
        ("keys", "revoke", "dr_000g40r4_0m30e209185gr38e1w8124gk2gahc5rr2qq9bf"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(run: Run, stack: FakeStack, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2
    assert stack.tenants == FakeTenants()


def test_a_tenant_is_changed_suspended_and_resumed(run: Run, stack: FakeStack) -> None:
    def state_of_acme() -> TenantState:
        return stack.tenants.tenants["acme"].state

    run("tenants", "add", "acme", "--burst", "7")
    result = run("tenants", "change", "acme", "--tier", "paid", "--requests-per-second", "5")
    assert "Changed acme: paid, 5 requests per second, 7 at once. This takes effect within 60 seconds." in result.stdout
    assert "paid, 100 requests per second, 500 at once" in run("tenants", "change", "acme", "--usual-limits").stdout
    assert "acme is suspended. This takes effect within 60 seconds." in run("tenants", "suspend", "acme").stdout
    assert state_of_acme() is TenantState.SUSPENDED
    run("tenants", "resume", "acme")
    assert state_of_acme() is TenantState.ACTIVE


@pytest.mark.parametrize(
    "arguments", [("tenants", "suspend", "acme"), ("keys", "create", "acme"), ("keys", "ls", "acme")]
)
def test_an_unknown_tenant_is_reported(run: Run, stack: FakeStack, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert "There is no tenant acme in shop." in result.stderr and "./darkroom tenants ls --stack shop" in result.stderr


def test_a_key_is_all_that_goes_to_standard_output(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    result = run("keys", "create", "acme", "--label", "ci")
    key = result.stdout.removesuffix("\n")
    assert opens(key, stack.tenants.key(key_id_of(key) or ""))
    assert "shown only this once" in result.stderr and key not in result.stderr
    assert "does not work yet" not in result.stderr


def test_a_key_for_a_stack_that_asks_for_none_says_so(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    stack.access = "iam"
    assert "shop is deployed with Access=iam, not Access=keys" in run("keys", "create", "acme").stderr


def test_keys_and_tenants_are_listed_without_a_secret(run: Run, stack: FakeStack) -> None:
    assert "No tenants yet." in run("tenants", "ls").stdout and "No keys yet." in run("keys", "ls").stdout
    for tenant in ("acme", "globex"):
        run("tenants", "add", tenant)
    key = run("keys", "create", "acme", "--label", "ci").stdout.strip()
    old = run("keys", "create", "acme").stdout.strip()
    assert "was revoked at 2026-11-21" in run("keys", "revoke", old).stdout, "the whole key may be pasted"
    lines = [line.split() for line in run("tenants", "ls").stdout.splitlines()]
    assert lines[0] == ["tenant", "tier", "state", "requests/s", "burst", "keys", "since"]
    assert lines[1:] == [
        ["acme", "free", "active", "10", "50", "1", "2026-11-21"],
        ["globex", "free", "active", "10", "50", "0", "2026-11-21"],
    ]
    shown = run("keys", "ls").stdout
    assert [line.split() for line in shown.splitlines()[1:]] == [
        [key_id_of(key), "acme", "active", "2026-11-21", "ci"],
        [key_id_of(old), "acme", "revoked", "2026-11-21", "2026-11-21"],
    ]
    told = run("keys", "ls", "--json").stdout + run("tenants", "ls", "--json").stdout + shown
    assert key[12:] not in told and "digest" not in told
    assert [one["id"] for one in json.loads(run("keys", "ls", "acme", "--json").stdout)] == [
        key_id_of(key),
        key_id_of(old),
    ]
    assert json.loads(run("keys", "ls", "globex", "--json").stdout) == []


def test_an_unknown_key_cannot_be_revoked(run: Run, stack: FakeStack) -> None:
    result = run("keys", "revoke", "00000000")
    assert result.exit_code == 1 and "There is no key 00000000 here." in result.stderr


def test_a_key_is_never_repeated_in_an_error(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    key = run("keys", "create", "acme").stdout.strip()
    for arguments in (("keys", "create", "acme", "--label", key), ("keys", "revoke", key[:-1]), ("keys", "ls", key)):
        result = run(*arguments)
        assert result.exit_code != 0
        assert key[20:50] not in result.stdout + result.stderr, arguments


def test_a_row_that_cannot_be_read_is_complained_about_and_hides_no_other(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    run("keys", "create", "acme")
    stack.tenants.unreadable_tenants.add("next")
    stack.tenants.unreadable_keys.add("00000009")
    listed = run("tenants", "ls")
    assert (listed.exit_code, "acme" in listed.stdout) == (0, True)
    assert "the row of next cannot be read" in listed.stderr and "the row of 00000009 cannot" in listed.stderr
    assert "acme" in run("keys", "ls").stdout
