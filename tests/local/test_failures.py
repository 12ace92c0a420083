"""Real processes are killed, the wire is cut, stores fall silent, an engine has a bug: no accepted image suffers.

The short form of `python -m tests.chaos.faults`. Minutes pass in seconds here, by settings that the deployed functions
get from outside, so that a dead worker's message returns while the tests still run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from darkroom.domain.images.image import Status, Variant
from tests.chaos.faults.__main__ import Found, broken_of, run_all
from tests.chaos.faults.outage import STORES
from tests.chaos.faults.scenario import Plan, scenario_of
from tests.local.local_stack import LocalStack
from tests.support.fakes.rows import accepted_image
from tests.support.running.conditions import ACCEPTOR, FUNCTIONS, QUICK, have_workers
from tests.support.running.load import TENANT, Answer, Photo
from tests.support.running.outcome import Evidence, outcome_of
from tests.support.running.stack import LANE, Stack

pytestmark = pytest.mark.promise("killed-processes")

WORKERS = 4

PLAN = Plan(
    uploads=40,
    clients=5,
    # The long form kills acceptors too; the sweeper may take a minute to repair that, even at this pace.
    victims=frozenset(FUNCTIONS) - {ACCEPTOR},
    requests_a_kill=120,
    silence_seconds=6,
    seconds_an_upload=0.1,
    patience_seconds=300,
    seed=20261121,
    pace=QUICK,
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    """All scenarios on one stack, which nothing else uses."""
    local = LocalStack(state=tmp_path_factory.mktemp("failures"))
    stack = Stack(state=local.state)
    with local.serving():
        have_workers(stack, WORKERS)
        with scenario_of(stack, PLAN, folder=local.state / "logs") as scenario:
            yield run_all(scenario)


def test_killed_workers_a_disturbed_wire_and_duplicates_lose_double_and_strand_nothing(results: Found) -> None:
    fault_injection = results.fault_injection
    assert fault_injection.outcome.broken == []
    assert fault_injection.outcome.accepted == fault_injection.outcome.done == PLAN.uploads
    assert fault_injection.kills and fault_injection.faults and fault_injection.duplicates, "it was an fault_injection"


@pytest.mark.parametrize("store", STORES)
def test_a_silent_store_loses_nothing_that_was_accepted_and_the_rest_is_told_when_to_come_again(
    results: Found, store: str
) -> None:
    (outage,) = [outage for outage in results.outages if outage.store == store]
    assert outage.dishonest == ()
    assert outage.outcome.broken == []
    assert set(outage.statuses) == {202, 503}, "some were accepted, and some were not"


def test_a_bug_costs_one_image_alone_which_is_explained_alarmed_of_and_replayed_once_it_is_mended(
    results: Found,
) -> None:
    assert broken_of(results.bug) == []
    assert results.bug.outcome.broken == []


# ── The account itself: what it would say if a promise were broken ───────────────────────────────────────────────────

IMAGE_ID = "0" * 26
PHOTO = Photo(name="photo", body=b"")
ACCEPTED = Answer(photo=PHOTO, image_id=IMAGE_ID, status=202, seconds=0)
PENDING = accepted_image(image_id=IMAGE_ID, tenant_id=TENANT, lane=LANE, now=0)
THUMB = Variant(
    name="thumb", width=1, height=1, format="jpeg", size_bytes=1, sha256="abc", key=f"outputs/{IMAGE_ID}/1/t"
)
DONE = replace(PENDING, status=Status.DONE, run=1, attempt=1, due_at=None, variants=(THUMB,))
SOUND = Evidence(rows={IMAGE_ID: DONE}, tags={THUMB.key: "tag"}, ends={IMAGE_ID: Counter(done=1)}, messages=0)


@pytest.mark.parametrize(
    ("evidence", "broken"),
    [
        (SOUND, None),
        (replace(SOUND, rows={IMAGE_ID: replace(DONE, run=2)}, ends={IMAGE_ID: Counter(gave_up=1, done=1)}), None),
        (replace(SOUND, rows={}), "lost"),
        (replace(SOUND, rows={IMAGE_ID: replace(DONE, status=Status.FAILED)}), "lost"),
        (replace(SOUND, rows={IMAGE_ID: replace(DONE, status=Status.PENDING)}), "stuck"),
        (replace(SOUND, rows={IMAGE_ID: replace(DONE, due_at=1)}), "stuck"),
        (replace(SOUND, messages=1), "stuck"),
        (replace(SOUND, ends={IMAGE_ID: Counter(done=2)}), "doubled"),
        (replace(SOUND, ends={IMAGE_ID: Counter(gave_up=1, done=1)}), "doubled"),
        (replace(SOUND, tags={THUMB.key: "tag", f"outputs/{IMAGE_ID}/2/t": "tag"}), "doubled"),
        (replace(SOUND, tags={}), "differing"),
        (replace(SOUND, tags={THUMB.key: "another"}), "differing"),
    ],
)
def test_the_account_tells_a_kept_promise_from_a_broken_one(evidence: Evidence, broken: str | None) -> None:
    account = outcome_of(evidence, [ACCEPTED], undisturbed={"photo": {"thumb": "abc tag"}})
    promises = ("lost", "doubled", "stuck", "differing")
    assert [promise for promise in promises if getattr(account, promise)] == ([broken] if broken else [])
