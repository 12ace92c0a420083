"""`darkroom tenants` and `darkroom keys`, over the fakes: what they print, what is shown once, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from darkroom.domain.bulk.batches import batch_id_for_key, open_batch
from darkroom.domain.edge.instructions import on_request_bucket_of
from darkroom.domain.images.image import Image
from darkroom.domain.images.stored_by import stored_by
from darkroom.domain.kernel.sizes import size_in_words
from darkroom.domain.kernel.stored import Stored
from darkroom.domain.kernel.tenants import UNLIMITED, Quota, TenantState, Tier
from darkroom.domain.pauses.pauses import Pause
from darkroom.domain.tenants.api_keys import key_id_of, matches_key
from darkroom.domain.tenants.rate_limits import Policy, bucket_of
from darkroom.domain.usage.usage import Usage
from darkroom_cli.operator.operations.schedules.cancel_scheduled import REMOVALS_PER_SECOND
from darkroom_cli.tenants import erase
from darkroom_cli.terminal.interrupts import Interrupts
from repository.expand_template import resources
from tests.support.fakes.rows import accepted_image
from tests.support.fakes.tenants import FakeTenants
from tests.support.stack import FakeStack
from tests.support.webhooks import delivery, endpoint
from tests.unit.cli.conftest import Run

NOTHING_YET = ["0", "bytes", "of", "10", "GB", "0", "of", "20,000"]


@pytest.fixture
def stack(stack: FakeStack) -> FakeStack:
    """The clock advances by a second whenever it is read."""

    def tick() -> int:
        stack.world.advance(1)
        return int(stack.world.now)

    stack.world.clock = tick
    return stack


def test_a_tenant_is_added_and_what_comes_next_is_said(run: Run, stack: FakeStack) -> None:
    result = run("tenants", "add", "acme", "--tier", "paid", "--burst", "1000")
    assert result.exit_code == 0
    assert "Added acme: paid, 100 requests per second, 1,000 at once, 5 TB, 10,000,000 images." in result.stdout
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
        ("tenants", "move", "acme", "quick"),
        ("tenants", "change", "acme", "--max-unfinished", "0", "--usual-limits"),
        ("tenants", "change", "acme", "--burst", "5", "--usual-limits"),
        ("tenants", "change", "acme", "--max-images", "0", "--usual-limits"),
        ("tenants", "add", "acme", "--max-stored", "much"),
        ("tenants", "add", "acme", "--max-stored", "-1GB"),
        ("tenants", "add", "acme", "--max-stored", "2000TB"),
        ("tenants", "add", "acme", "--max-images", "10GB"),
        ("tenants", "add", "acme", "--max-images", "1.5"),
        ("keys", "create", "acme", "--label", ""),
        ("keys", "create", "acme", "--label", "x" * 101),
        ("keys", "create", "acme", "--expires", "soon"),
        ("keys", "create", "acme", "--expires", "0d"),
        ("keys", "create", "acme", "--scope", "everything"),
        ("keys", "rotate", "00000000", "--overlap", "a while"),
        ("keys", "rotate", "no-id"),
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
    assert "Changed acme: paid, 5 requests per second, 7 at once, 5 TB" in result.stdout
    assert "This takes effect within 60 seconds." in result.stdout
    result = run("tenants", "change", "acme", "--max-unfinished", "500")
    assert "10,000,000 images, 500 of them unfinished. This takes" in result.stdout
    assert json.loads(run("tenants", "ls", "--json").stdout)[0]["max_unfinished"] == 500
    assert "paid, 100 requests per second, 500 at once" in run("tenants", "change", "acme", "--usual-limits").stdout
    assert stack.tenants.tenants["acme"].max_unfinished is None
    assert "acme is suspended. This takes effect within 60 seconds." in run("tenants", "suspend", "acme").stdout
    assert state_of_acme() is TenantState.SUSPENDED
    run("tenants", "resume", "acme")
    assert state_of_acme() is TenantState.ACTIVE


@pytest.mark.guards("tenants-moved-home", "tenants-moved-to-served-lane")
def test_a_tenant_is_moved_to_a_lane_that_is_served_and_back_to_its_tiers(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme", "--tier", "paid")
    moved = run("tenants", "move", "acme", "bulk")
    assert "New work of acme goes to the lane bulk. This takes effect within 60 seconds." in moved.stdout
    assert stack.tenants.tenants["acme"].lane == "bulk", "and its limits are those of its tier"
    assert run("tenants", "ls").stdout.splitlines()[1].split()[1:6] == ["paid", "bulk", "active", "100", "500"]
    run("tenants", "move", "acme", "fast")
    run("tenants", "change", "acme", "--tier", "free")
    assert json.loads(run("tenants", "ls", "--json").stdout)[0]["lane"] == "slow", "its tier decides again"
    stack.parts = frozenset()
    refused = run("tenants", "move", "acme", "bulk")
    assert refused.exit_code == 1 and "Bulk=false" in refused.stderr
    assert json.loads(run("tenants", "ls", "--json").stdout)[0]["lane"] == "slow"
    assert [action for action, state in stack.audit_log.actions if state == "begun"] == [
        "add_tenant",
        *["change_tenant"] * 3,
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("tenants", "suspend", "acme"),
        ("tenants", "move", "acme", "fast"),
        ("keys", "create", "acme"),
        ("keys", "ls", "acme"),
    ],
)
def test_an_unknown_tenant_is_reported(run: Run, stack: FakeStack, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 1
    assert "There is no tenant acme in shop." in result.stderr and "./darkroom tenants ls --stack shop" in result.stderr


def test_a_key_is_all_that_goes_to_standard_output(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    result = run("keys", "create", "acme", "--label", "ci")
    key = result.stdout.removesuffix("\n")
    assert matches_key(key, stack.tenants.key(key_id_of(key) or ""))
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
    assert lines[0] == ["tenant", "tier", "lane", "state", "requests/s", "burst", "stored", "images", "keys", "since"]
    assert lines[1:] == [
        ["acme", "free", "slow", "active", "10", "50", *NOTHING_YET, "1", "2026-11-21"],
        ["globex", "free", "slow", "active", "10", "50", *NOTHING_YET, "0", "2026-11-21"],
    ]
    shown = run("keys", "ls").stdout
    assert [line.split() for line in shown.splitlines()[1:]] == [
        [key_id_of(key), "acme", "active", "everything", "9", "s", "never", "ci"],
        [key_id_of(old), "acme", "revoked", "2026-11-21", "everything", "6", "s", "never"],
    ]
    printed = run("keys", "ls", "--json").stdout + run("tenants", "ls", "--json").stdout + shown
    assert key[12:] not in printed and "digest" not in printed
    listed = json.loads(run("keys", "ls", "acme", "--json").stdout)
    assert [each["id"] for each in listed] == [key_id_of(key), key_id_of(old)]
    assert json.loads(run("keys", "ls", "globex", "--json").stdout) == []


@pytest.mark.parametrize(
    ("size", "stored_bytes"),
    [("10GB", 10 * 10**9), ("1.5 tb", 1_500_000_000_000), ("500000", 500_000), ("0", 0), ("unlimited", UNLIMITED)],
)
def test_a_tenants_quota_is_set_and_shown_with_what_it_stores(
    run: Run, stack: FakeStack, size: str, stored_bytes: int
) -> None:
    run("tenants", "add", "acme", "--max-stored", size, "--max-images", "7")
    assert stack.tenants.tenants["acme"].quota == Quota(stored_bytes=stored_bytes, images=7)
    stack.usage.store["acme"] = Stored(size_bytes=2_000_000, images=-1)
    shown = "2 MB" if size == "unlimited" else f"2 MB of {size_in_words(stored_bytes)}"
    assert f"{shown}  0 of 7" in " ".join(run("tenants", "ls").stdout.split(" "))
    (tenant,) = json.loads(run("tenants", "ls", "--json").stdout)
    assert (tenant["stored_bytes"], tenant["stored_images"], tenant["max_images"]) == (2_000_000, 0, 7)
    assert tenant["max_stored_bytes"] == (None if size == "unlimited" else stored_bytes)
    assert run("tenants", "change", "acme", "--max-images", "unlimited").exit_code == 0
    assert stack.tenants.tenants["acme"].quota == Quota(stored_bytes=stored_bytes)
    run("tenants", "change", "acme", "--usual-limits")
    assert stack.tenants.tenants["acme"].quota == Tier.FREE.quota


@pytest.mark.guards("on-request-name-kept")
def test_a_name_of_a_variant_on_request_keeps_its_meaning_or_is_given_up(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    steps = [
        ("w_320,card=w_40-h_30-f_cover", 0, "w_320,card=w_40-h_30-f_cover"),
        ("card=w_50", 1, "w_320,card=w_40-h_30-f_cover"),
        ("w_640", 0, "w_640,card="),
        ("card=w_50", 1, "w_640,card="),
        ("w_0", 2, "w_640,card="),
        ("", 0, "card="),
    ]
    for instructions, exit_code, kept in steps:
        assert run("tenants", "on-request", "acme", instructions).exit_code == exit_code
        assert stack.tenants.tenants["acme"].on_request == kept


def test_places_in_buckets_are_registered_and_those_left_out_are_given_up(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    steps: list[tuple[tuple[str, ...], int, tuple[str, ...]]] = [
        (("s3://photos", "s3://exports/acme/", "s3://photos/"), 0, ("s3://photos/", "s3://exports/acme/")),
        (("s3://exports/acme",), 2, ("s3://photos/", "s3://exports/acme/")),
        (("s3://exports/acme/",), 0, ("s3://exports/acme/",)),
        ((), 0, ()),
    ]
    for places, exit_code, kept in steps:
        ran = run("tenants", "import-from", "acme", *places)
        assert (ran.exit_code, stack.tenants.tenants["acme"].import_from) == (exit_code, kept)
        assert exit_code or (" ".join(kept) or "no bucket") in ran.stdout
    assert run("tenants", "import-from", "nobody", "s3://photos/").exit_code == 1


def test_what_was_never_counted_is_counted_from_the_rows(run: Run, stack: FakeStack) -> None:
    for number in range(3):
        stack.images.create(accepted_image(image_id=f"{number:026d}", tenant_id="acme", now=1))
    stack.usage.store |= {"acme": Stored(size_bytes=-5, images=-1), "globex": Stored(images=1)}
    stored = stored_by(accepted_image(now=1))
    dry = run("tenants", "recount")
    assert "acme" in dry.stdout and "globex" in dry.stdout and "tenants recount --yes --stack shop" in dry.stdout
    assert stack.usage.store["globex"] == Stored(images=1), "it only says so"
    assert "Corrected." in run("tenants", "recount", "--yes").stdout
    assert stack.usage.store == {"acme": stored + stored + stored, "globex": Stored()}
    assert "What is counted is what is stored." in run("tenants", "recount").stdout


def test_images_of_an_earlier_version_are_listed_again_and_that_is_in_the_audit_log(run: Run, stack: FakeStack) -> None:
    for number in range(3):
        stack.images.create(accepted_image(image_id=f"{number:026d}", tenant_id="acme", now=1))
    stack.images.of_before |= {f"{number:026d}" for number in (0, 1)}
    dry = run("tenants", "enlist").stdout
    assert "lacks 2 images" in dry and "tenants enlist --yes --stack shop" in dry
    assert len(stack.images.newest("acme", after=None, limit=9).cursors) == 1, "it only says so"
    assert "Listed 2 images." in run("tenants", "enlist", "--yes").stdout
    assert len(stack.images.newest("acme", after=None, limit=9).cursors) == 3
    assert "has every image" in run("tenants", "enlist").stdout
    assert [(line.entry.action, line.entry.counts) for line in stack.audit_log.lines][1:] == [("enlist", {"images": 2})]


def test_a_sum_that_changes_meanwhile_keeps_what_was_counted(run: Run, stack: FakeStack) -> None:
    stack.images.create(accepted_image(tenant_id="acme", now=1))
    correct, others = stack.usage.correct, [Stored(size_bytes=100, images=1)]

    def raced(tenant_id: str, before: Stored, after: Stored) -> bool:
        if others:
            stack.usage.store[tenant_id] = before + others.pop()
        return correct(tenant_id, before, after)

    stack.usage.correct = raced  # type: ignore[method-assign]
    assert "Corrected." in run("tenants", "recount", "--yes").stdout
    assert stack.usage.store["acme"] == stored_by(accepted_image(now=1)) + Stored(size_bytes=100, images=1)


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


# ── What keys may do, and for how long ───────────────────────────────────────────────────────────────────────────────


def test_a_key_can_be_made_for_some_things_and_some_time(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    made = run("keys", "create", "acme", "--scope", "images:read", "--expires", "90d")
    stored = stack.tenants.keys[key_id_of(made.stdout.strip()) or ""]
    assert stored.scopes == ("images:read",)
    assert stored.expires_at == stored.created_at + 90 * 86_400_000
    assert "It opens the API until 2027-02-19" in made.stderr
    assert run("keys", "create", "acme", "--scope", "images:write", "--scope", "images:read").exit_code == 0
    assert [key.scopes for key in stack.tenants.keys.values()][1] == ("images:read", "images:write")


def test_a_key_is_replaced_with_one_command_and_both_work_for_a_while(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    old = run("keys", "create", "acme", "--label", "ci").stdout.strip()
    rotated = run("keys", "rotate", old, "--overlap", "2d")
    assert rotated.exit_code == 0
    new = rotated.stdout.strip()
    assert matches_key(new, stack.tenants.keys[key_id_of(new) or ""])
    assert f"It replaces {key_id_of(old)}, which opens the API until 2026-11-23" in rotated.stderr
    shown = run("keys", "ls").stdout
    assert "until 2026-11-23" in shown and shown.count(" ci") == 2
    assert not any(secret in shown + rotated.stderr for secret in (old, new))


def test_the_list_says_what_each_key_may_do_its_age_and_its_last_use(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    ids = [key_id_of(run("keys", "create", "acme", *more).stdout.strip()) or "" for more in (
        (), ("--scope", "images:read"), ("--expires", "1d"), ()
    )]  # fmt: skip
    run("keys", "revoke", ids[3])
    stack.tenants.note_use(ids[0], "2026-11-22")
    stack.world.now += 2 * 86_400_000
    lines = {line.split()[0]: line for line in run("keys", "ls").stdout.splitlines()}
    assert lines["key"].split() == ["key", "tenant", "state", "may", "age", "last", "used", "label"]
    assert "everything" in lines[ids[0]] and "2026-11-22" in lines[ids[0]] and "2 d" in lines[ids[0]]
    assert "images:read" in lines[ids[1]] and "never" in lines[ids[1]]
    assert "expired 2026-11-22" in lines[ids[2]]
    closed = run("keys", "ls", "--revoked").stdout
    assert [key_id in closed for key_id in ids] == [False, False, True, True]
    keys = {key["id"]: key for key in json.loads(run("keys", "ls", "--json").stdout)}
    assert [keys[key_id]["state"] for key_id in ids] == ["active", "active", "expired", "revoked"]
    assert (keys[ids[0]]["last_used_on"], keys[ids[1]]["scopes"]) == ("2026-11-22", ["images:read"])


# ── Erasing one ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def acme(run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    """A tenant with two keys and 30 images, and another one with as many."""
    monkeypatch.setattr(erase, "AUTHORIZER_CACHE_SECONDS", 0)
    monkeypatch.setattr(erase, "_LAG_SECONDS", 0)
    monkeypatch.setattr(erase, "IMAGES_PER_SECOND", 1_000_000)
    for tenant in ("acme", "other"):
        run("tenants", "add", tenant)
        for _ in range(2):
            run("keys", "create", tenant)
        stack.usage.sums |= {(tenant, day): Usage(images=7) for day in ("2026-11-20", "2026-11-21", "stored")}
        for policy in Policy:
            stack.token_buckets.take(bucket_of(policy, tenant), Tier.FREE.allowance, 1)
        stack.token_buckets.take(on_request_bucket_of(tenant), Tier.FREE.allowance, 1)
        stack.pauses.pause(Pause(kind="tenant", name=tenant, since=1))
        stack.batches.create(open_batch(batch_id_for_key(tenant, "1"), tenant_id=tenant, now=1))
        add_webhook(stack, tenant)
    for number in range(60):
        add_image(stack, number, "acme" if number % 2 else "other")
    return stack


def add_webhook(stack: FakeStack, tenant: str) -> None:
    """A webhook of the tenant, with a delivery."""
    webhook = endpoint(tenant_id=tenant, number=len(tenant))
    stack.endpoints.create(webhook)
    stack.deliveries.create(delivery(to=webhook))


def add_image(stack: FakeStack, number: int, tenant: str) -> None:
    stack.images.create(accepted_image(now=stack.now, image_id=f"{number:026d}", tenant_id=tenant))


def of(stack: FakeStack, tenant: str) -> list[Image]:
    return [row for row in stack.images.rows.values() if row.tenant_id == tenant]


def test_an_erasure_is_told_before_it_is_done(run: Run, acme: FakeStack) -> None:
    result = run("tenants", "erase", "acme")
    assert result.exit_code == 0
    printed = " ".join(result.stdout.split())
    assert "acme has 30 images, 2 keys, 1 webhook and 2 days of usage. All of it would be erased" in printed
    assert "Nothing was changed." in result.stdout
    assert "./darkroom tenants erase acme --yes --stack shop --region eu-west-1" in result.stdout
    assert not any(row.is_deleted for row in acme.images.rows.values())
    assert acme.tenants.tenants["acme"].state is TenantState.ACTIVE


@pytest.mark.guards("erasure-tenant-token-buckets", "erasure-tenant-usage", "tenant-erasure-own-keys-only")
@pytest.mark.guards("erasure-tenant-pause", "erasure-tenant-batches", "erasure-unlisted-images")
def test_a_tenant_is_erased_with_its_images_and_keys_and_no_other(run: Run, acme: FakeStack) -> None:
    acme.world.clock = lambda: acme.world.now
    acme.images.of_before = {row.image_id for row in [*of(acme, "acme")[:7], *of(acme, "other")[:1]]}  # unlisted
    result = run("tenants", "erase", "acme", "--yes")
    assert result.exit_code == 0, result.stderr
    summary = "Erased acme: 30 images, 2 keys, 1 webhook with 1 delivery, 1 batch and 3 counts of usage."
    assert summary in " ".join(result.stdout.split())
    assert all(row.is_deleted for row in of(acme, "acme"))
    assert not any(row.is_deleted for row in of(acme, "other"))
    due = sorted(row.due_at or 0 for row in of(acme, "acme"))
    assert {at - due[0] for at in due} == {place * 1000 // REMOVALS_PER_SECOND for place in range(10)}, "one by one"
    assert set(acme.tenants.tenants) == {"other"}
    assert {key.tenant_id for key in acme.tenants.keys.values()} == {"other"}
    assert {tenant for tenant, _ in acme.usage.sums} == {"other"}
    assert set(acme.token_buckets.tats) == {"other", "other#on_request", "other#reads"}
    assert list(acme.pauses.pauses) == ["tenant#other"]
    assert [batch.tenant_id for batch in acme.batches.rows.values()] == ["other"]
    assert [webhook.tenant_id for webhook in acme.endpoints.rows.values()] == ["other"]
    assert list(acme.deliveries.endpoints_of(["acme"])) == []
    for store in ("objects", "tombstones", "backups", "logs", "the API's log", "counted events", "dead letters"):
        assert store in result.stdout


@pytest.mark.guards("tenant-erasure-resumed-waits", "tenant-erasure-suspends-first")
@pytest.mark.parametrize("before", [TenantState.ACTIVE, TenantState.SUSPENDED])  # as an interrupted erasure leaves it
def test_what_was_accepted_until_no_request_was_authorized_any_more_is_erased_too(
    run: Run, acme: FakeStack, monkeypatch: pytest.MonkeyPatch, before: TenantState
) -> None:
    waits = []
    acme.tenants.tenants["acme"] = replace(acme.tenants.tenants["acme"], state=before)

    def upload_meanwhile(self: Interrupts, seconds: float) -> None:
        waits.append(seconds)
        assert acme.tenants.tenants["acme"].state is TenantState.SUSPENDED
        add_image(acme, 77, "acme")

    monkeypatch.setattr(erase, "AUTHORIZER_CACHE_SECONDS", 60)
    monkeypatch.setattr(Interrupts, "wait", upload_meanwhile)
    result = run("tenants", "erase", "acme", "--yes")
    assert "Erased acme: 31 images, 2 keys" in result.stdout
    assert 60 in waits
    assert all(row.is_deleted for row in of(acme, "acme"))


@pytest.mark.guards("tenant-erasure-deliveries-once")
def test_tenants_that_are_erased_together_need_one_reading_of_all_deliveries_and_one_wait(
    run: Run, acme: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(erase, "AUTHORIZER_CACHE_SECONDS", 60)
    monkeypatch.setattr(Interrupts, "wait", lambda self, seconds: waits.append(seconds))
    monkeypatch.setattr(erase, "IMAGES_PER_SECOND", 10**9)
    printed = " ".join(run("tenants", "erase", "acme", "other", "acme").stdout.split())
    assert all(
        f"{tenant} has 30 images, 2 keys, 1 webhook and 2 days of usage." in printed for tenant in ("acme", "other")
    )
    assert "./darkroom tenants erase acme other --yes" in printed
    reads: list[int] = []
    all_keys = acme.tenants.all_keys
    acme.tenants.all_keys = lambda: reads.append(1) or all_keys()  # type: ignore[method-assign, func-returns-value]
    result = run("tenants", "erase", "acme", "other", "--yes")
    assert result.exit_code == 0, result.stderr
    printed = " ".join(result.stdout.split())
    for tenant in ("acme", "other"):
        erased = f"Erased {tenant}: 30 images, 2 keys, 1 webhook with 1 delivery, 1 batch and 3 counts of usage."
        assert erased in printed
    assert all(row.is_deleted for row in acme.images.rows.values())
    assert not (acme.tenants.tenants or acme.tenants.keys or acme.usage.sums or acme.endpoints.rows)
    assert not (acme.deliveries.rows or acme.token_buckets.tats)
    assert (acme.deliveries.scans, len(reads), sum(wait >= 60 for wait in waits)) == (1, 1, 1)


@pytest.mark.guards(
    "tenant-erasure-no-row-left", "tenant-erasure-unreadable-isolated", "tenant-erasure-unsuspended-spared"
)
@pytest.mark.parametrize("what", ["an image", "the tenant", "a name that is none"])
def test_what_cannot_be_erased_of_one_tenant_keeps_no_other_from_being_erased(
    run: Run, acme: FakeStack, what: str
) -> None:
    name, before, strange = "acme", acme.tenants.tenants["acme"], ""
    if what == "an image":
        strange = of(acme, "acme")[3].image_id
        acme.images.unreadable[strange] = acme.images.rows[strange]
    elif what == "the tenant":
        acme.tenants.unreadable_tenants.add("acme")
    else:
        name = "acne"
    foretold = run("tenants", "erase", name, "other")
    assert "other has 30 images" in foretold.stdout
    assert (foretold.exit_code, "acme cannot be suspended" in foretold.stderr) == (
        (1, True) if what == "the tenant" else (0, False)
    )
    result = run("tenants", "erase", name, "other", "--yes")
    assert result.exit_code == 1
    assert "Erased other: 30 images" in result.stdout
    assert set(acme.tenants.tenants) == {"acme"}
    assert all(row.is_deleted for row in of(acme, "other"))
    assert sum(row.is_deleted for row in of(acme, "acme")) == (29 if what == "an image" else 0)
    assert {key.tenant_id for key in acme.tenants.keys.values()} == {"acme"}
    assert (acme.tenants.tenants["acme"] == before) == (what != "an image"), "nothing else of it was changed"
    assert what != "an image" or acme.tenants.tenants["acme"].state is TenantState.SUSPENDED
    printed = " ".join(result.stderr.split())
    assert (f"{strange} is not erased" in printed) == (what == "an image")
    assert {
        "an image": "cannot be read, so acme stays suspended",
        "the tenant": "acme cannot be suspended, and nothing of it is erased",
        "a name that is none": "There is nothing of acne in shop.",
    }[what] in printed


@pytest.mark.guards("tenant-erasure-interrupt-no-forget")
def test_an_interrupted_erasure_of_tenants_says_what_is_done_and_is_finished_by_another(
    run: Run, acme: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Interrupts, seconds: float) -> None:
        self._asked.requested = seconds >= 60

    monkeypatch.setattr(erase, "AUTHORIZER_CACHE_SECONDS", 60)
    with monkeypatch.context() as patch:
        patch.setattr(Interrupts, "wait", interrupt)
        result = run("tenants", "erase", "acme", "other", "--yes")
    assert result.exit_code == 130
    printed = " ".join(result.stderr.split())
    assert "Interrupted, 60 images erased, whose objects are removed until 2026-" in printed
    assert "For the rest: ./darkroom tenants erase acme other --yes" in printed
    assert set(acme.tenants.tenants) == {"acme", "other"}
    assert (len(acme.deliveries.rows), len(acme.tenants.keys)) == (2, 4), "nothing was forgotten"
    monkeypatch.setattr(erase, "AUTHORIZER_CACHE_SECONDS", 0)
    assert run("tenants", "erase", "acme", "other", "--yes").exit_code == 0
    assert not (acme.tenants.tenants or acme.tenants.keys or acme.deliveries.rows)


@pytest.mark.guards("tenant-erasure-batch-bound")
def test_more_tenants_than_one_reading_compares_are_refused(run: Run, acme: FakeStack) -> None:
    names = [f"t{number}" for number in range(101)]
    assert run("tenants", "erase", *names[:100]).exit_code == 0
    refused = run("tenants", "erase", *names, "--yes")
    assert refused.exit_code == 2
    assert "at most 100 tenants" in " ".join(refused.stderr.split())
    assert acme.tenants.tenants["acme"].state is TenantState.ACTIVE


def test_an_erased_tenant_of_which_there_are_only_webhooks_or_usage_is_erased_again(run: Run, acme: FakeStack) -> None:
    assert run("tenants", "erase", "acme", "--yes").exit_code == 0
    again = run("tenants", "erase", "acme", "--yes")
    assert (again.exit_code, "There is nothing of acme in shop." in again.stderr) == (1, True)
    assert "There is nothing of acme in shop." in run("tenants", "erase", "acme").stdout
    acme.usage.sums["acme", "2026-11-21"] = Usage(images=1)  # an event that was late
    assert "acme has 0 images, 0 keys, 0 webhooks and 1 day of usage" in run("tenants", "erase", "acme").stdout
    assert run("tenants", "erase", "acme", "--yes").exit_code == 0
    add_webhook(acme, "acme")
    assert "1 webhook and 0 days" in run("tenants", "erase", "acme").stdout
    assert run("tenants", "erase", "acme", "--yes").exit_code == 0
    assert "There is nothing of acme" in run("tenants", "erase", "acme", "--yes").stderr


@pytest.mark.guards("erasure-usage-after-last-events")
def test_usage_is_forgotten_when_the_events_of_the_last_images_are_counted(
    run: Run, acme: FakeStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []

    def count_meanwhile(self: Interrupts, seconds: float) -> None:
        if seconds in (80, 20):
            waits.append(seconds)
            assert all(row.is_deleted for row in of(acme, "acme"))
            acme.usage.sums["acme", "2026-11-21"] = Usage(images=1)

    monkeypatch.setattr(erase, "AUTHORIZER_CACHE_SECONDS", 60)
    monkeypatch.setattr(erase, "_LAG_SECONDS", 20)
    monkeypatch.setattr(Interrupts, "wait", count_meanwhile)
    assert run("tenants", "erase", "acme", "--yes").exit_code == 0
    assert waits == [80, 20]
    assert {tenant for tenant, _ in acme.usage.sums} == {"other"}


def test_an_erasure_as_json_names_what_is_left(run: Run, acme: FakeStack) -> None:
    document = json.loads(run("tenants", "erase", "acme", "--yes", "--json").stdout)
    counts = {"images": 30, "keys": 2, "webhooks": 1, "deliveries": 1, "batches": 1, "usage": 3}
    assert document["tenants"] == [{"tenant": "acme", "unreadable": []} | counts]
    assert set(document["left"]["backups"]) == {"what", "until"}


def test_what_is_left_is_left_for_as_long_as_the_template_says() -> None:
    groups = resources("AWS::Logs::LogGroup")
    assert groups.pop("AuditLogs")["RetentionInDays"] == erase.AUDIT_DAYS
    assert {group["RetentionInDays"] for group in groups.values()} == {erase.LOG_DAYS}
    kept_days = {
        "DeadLetterArchiveBucket": erase.ARCHIVE_DAYS,
        "ObjectEventsBucket": erase.OBJECT_EVENT_DAYS,
        "HoldsBucket": erase.BATCH_DAYS,
    }
    for bucket, days in kept_days.items():
        rules = resources("AWS::S3::Bucket")[bucket]["LifecycleConfiguration"]["Rules"]
        assert days in {rule.get("ExpirationInDays") for rule in rules}
    queues = resources("AWS::SQS::Queue").items()
    kept = {name: queue["MessageRetentionPeriod"] for name, queue in queues if name.endswith("Queue") and queue}
    assert kept.pop("EditsQueue") == 3600
    assert {*kept.values()} == {erase.MESSAGE_DAYS * 86_400}
    point_in_time = resources("AWS::DynamoDB::Table")["ImagesTable"]["PointInTimeRecoverySpecification"]
    assert point_in_time == {"PointInTimeRecoveryEnabled": True}, "without a period it is AWS's 35 days"
    assert erase.BACKUP_DAYS == 35


def test_a_key_that_opens_nothing_is_not_replaced(run: Run, stack: FakeStack) -> None:
    run("tenants", "add", "acme")
    key_id = key_id_of(run("keys", "create", "acme").stdout.strip()) or ""
    run("keys", "revoke", key_id)
    refused = run("keys", "rotate", key_id)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f"{key_id} is revoked: it opens nothing" in refused.stderr
    assert "There is no key 00000000" in run("keys", "rotate", "00000000").stderr
