"""`darkroom differences`: what it lists, and what it says to do."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from darkroom.domain.bulk.reconciliation import Difference, DifferenceKind, Reconciliation
from darkroom_cli.differences import work
from tests.support.fakes.reconciliation import FakeReconciliations


class KnownStack:
    name, options = "darkroom-prod", " --stack darkroom-prod"

    def __init__(self) -> None:
        self.reconciliations = FakeReconciliations()

    def explained(self) -> Any:
        return nullcontext()


def seen(kind: DifferenceKind, confirmed_at: int | None = None) -> Difference:
    return Difference(kind=kind, image_id="i", key=f"key of {kind}", first_seen=0, confirmed_at=confirmed_at)


def test_nothing_is_known_and_nothing_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    stack: Any = KnownStack()
    work.list_(stack, as_json=False)
    assert "no differences" in (out := capsys.readouterr().out) and "no night has ended yet" in out
    work.list_(stack, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"nights": 0, "ended_at": None, "found": 0, "differences": []}


@pytest.mark.parametrize("kind", DifferenceKind)
def test_what_is_confirmed_says_what_to_do(kind: DifferenceKind, capsys: pytest.CaptureFixture[str]) -> None:
    stack: Any = KnownStack()
    stack.reconciliations.create(Reconciliation(nights=2, ended_at=86_400_000, found=1, due_at=0))
    stack.reconciliations.put(seen(kind))
    work.list_(stack, as_json=False)
    out = capsys.readouterr().out
    assert "not yet" in out and "1970-01-02" in out and work.REMEDIES[kind][:10] not in out
    stack.reconciliations.put(seen(kind, confirmed_at=5))
    work.list_(stack, as_json=False)
    assert work.REMEDIES[kind][:15] in capsys.readouterr().out
    work.list_(stack, as_json=True)
    (document,) = json.loads(capsys.readouterr().out)["differences"]
    assert (document["kind"], document["confirmed_at"]) == (kind, "1970-01-01T00:00:00.005Z")
