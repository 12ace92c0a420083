"""`darkroom ls` and `rm`: which images are listed, and which are deleted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from darkroom.domain.images.image import Attempt, Cause, Failure, Image, Status
from darkroom.domain.images.transitions import delete
from darkroom.domain.kernel.tenants import Tenant, Tier
from darkroom.domain.usage.usage import Usage
from tests.support.fakes.rows import accepted_image
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi, problem

HOUR = 3_600_000


def put(stack: FakeStack, number: int, *, hours_ago: float = 0, **changes: Any) -> str:
    """An image whose id ends with that number."""
    now = stack.clock() - round(hours_ago * HOUR)
    tenant_id = changes.pop("tenant_id", "default")
    row = accepted_image(now=now, image_id=f"{number:026d}", tenant_id=tenant_id)
    stack.images.rows[row.image_id] = replace(row, **changes)
    return row.image_id


def listed(run: Run, *options: str) -> list[str]:
    result = run("ls", "--json", *options)
    assert result.exit_code == 0, result.output
    return [image["id"] for image in json.loads(result.stdout)["images"]]


def retried(error_type: str) -> dict[str, Any]:
    cause = Cause(error_type=error_type, message="'large'", stack="…")
    return {"attempt": 1, "attempts": (Attempt(run=1, number=1, request_id="r", started_at=1, cause=cause),)}


def test_images_of_all_tenants_are_listed_newest_first(run: Run, stack: FakeStack) -> None:
    stack.tenants.add_tenant(Tenant(tenant_id="acme", tier=Tier.PAID, created_at=1))
    stack.usage.sums = {("token's", "2026-11-21"): Usage(images=1)}
    third = put(stack, 1, hours_ago=3)
    first = put(stack, 2, hours_ago=1, tenant_id="token's")
    second = put(stack, 3, hours_ago=2, tenant_id="acme")
    assert listed(run) == [first, second, third]
    assert listed(run, "--tenant", "acme") == [second]


def test_images_are_found_by_their_clients_words(run: Run, stack: FakeStack) -> None:
    stack.tenants.add_tenant(Tenant(tenant_id="acme", tier=Tier.PAID, created_at=1))
    first = put(stack, 1, hours_ago=1, reference="order-17", tags=("a",))
    second = put(stack, 2, hours_ago=2, tenant_id="acme", reference="order-17")
    put(stack, 3, hours_ago=30, reference="order-17")
    fourth = put(stack, 4, hours_ago=3, tags=("b", "a"))
    assert listed(run, "--reference", "order-17") == [first, second]
    assert listed(run, "--tag", "a") == [first, fourth]
    assert listed(run, "--reference", "order-17", "--tag", "a", "--tenant", "default") == [first]


@pytest.mark.guards("ls-since-bound")
def test_what_is_older_or_deleted_is_left_out(run: Run, stack: FakeStack) -> None:
    new = put(stack, 1, hours_ago=1)
    old = put(stack, 2, hours_ago=3)
    gone = put(stack, 3)
    stack.images.rows[gone] = delete(stack.images.rows[gone], now=stack.clock())
    assert listed(run, "--since", "2h") == [new]
    assert listed(run, "--since", "4h") == [new, old]
    assert run("ls", "--since", "30m").stdout == "No such image was accepted since 2026-11-21T08:30:00.000Z.\n"


def test_a_status_or_a_cause_narrows_the_list(run: Run, stack: FakeStack) -> None:
    put(stack, 1)
    failed = put(
        stack, 2, status=Status.FAILED, error=Failure(code="truncated", message="It ends early.", retryable=False)
    )
    waiting = put(stack, 3, **retried("KeyError"))
    assert listed(run, "--status", "failed") == [failed]
    assert listed(run, "--status", "failed", "--status", "done") == [failed]
    assert listed(run, "--cause", "KeyError") == [waiting]
    assert listed(run, "--cause", "truncated") == [failed]


def test_people_see_why_an_image_failed_or_is_retried(run: Run, stack: FakeStack) -> None:
    put(stack, 3, hours_ago=2, **retried("KeyError"))
    head, row = run("ls").stdout.splitlines()
    assert head.split() == ["accepted", "id", "tenant", "lane", "status", "attempt", "cause"]
    image, why = ("2", "h", "0", "min", "ago", f"{3:026d}", "default", "slow", "pending", "1"), ("KeyError:", "'large'")
    assert row.split() == [*image, *why]


def test_late_images_are_listed_by_how_long_they_wait_whenever_they_were_accepted(run: Run, stack: FakeStack) -> None:
    put(stack, 1)
    late = put(stack, 2, hours_ago=1)
    latest = put(stack, 3, hours_ago=50, **retried("KeyError"))
    assert listed(run, "--late") == [latest, late]
    assert listed(run, "--late", "--since", "2h") == [late]
    assert listed(run, "--late", "--cause", "KeyError") == [latest]
    assert listed(run, "--late", "--tenant", "somebody") == []
    head, row, _ = run("ls", "--late").stdout.splitlines()
    assert (head.split()[0], row.split()[:5]) == ("waiting", ["2", "d", "2", "h", latest])
    stack.images.rows.clear()
    assert run("ls", "--late").stdout == "No such image is late.\n"


def test_a_list_that_is_longer_says_so(run: Run, stack: FakeStack) -> None:
    for number in range(250):
        put(stack, number, hours_ago=number / 20)
    result = run("ls", "--limit", "249")
    assert len(result.stdout.splitlines()) == 250
    assert result.stderr == "There are more: --limit 498 shows twice as many.\n"
    assert run("ls", "--limit", "250").stderr == ""
    assert json.loads(run("ls", "--limit", "249", "--json").stdout)["complete"] is False


@pytest.mark.parametrize(("option", "value"), [("--status", "broken"), ("--since", "yesterday"), ("--limit", "0")])
def test_what_cannot_be_meant_is_a_usage_error(run: Run, stack: FakeStack, option: str, value: str) -> None:
    assert run("ls", option, value).exit_code == 2


def test_an_unreadable_row_hides_no_other(run: Run, stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> None:
    readable, unreadable = put(stack, 1), put(stack, 2)
    get_all = stack.images.get_all

    def without(ids: list[str]) -> dict[str, Image]:
        return {image_id: row for image_id, row in get_all(ids).items() if image_id != unreadable}

    monkeypatch.setattr(stack.images, "get_all", without)
    assert listed(run) == [readable]


def test_images_are_deleted_one_by_one_and_a_refusal_stops_no_other(run: Run, api: FakeApi) -> None:
    ids = [f"{number:026d}" for number in range(3)]
    api.images.update({image_id: {"status": "done"} for image_id in ids})
    api.faults["DELETE"].append(problem(404, "unknown_image", "There is no image with this id."))
    result = run("rm", *ids)
    assert result.exit_code == 1
    assert result.stdout == "".join(f"{image_id}  deleted\n" for image_id in ids[1:])
    assert f"{ids[0]}  not deleted: There is no image with this id." in result.stderr
    assert list(api.images) == ids[:1]
