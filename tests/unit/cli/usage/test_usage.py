"""`darkroom usage`: what it shows."""

from __future__ import annotations

import json

import pytest

from darkroom.domain.usage.usage import Usage
from darkroom_cli.usage import commands
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run

DAY = Usage(images=2, image_bytes=1_500_000, runs=1, variant_bytes=30_000, variant_pixels=2_340_000)


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> FakeStack:
    fake = FakeStack()
    fake.usage.sums = {("other", "2026-11-20"): DAY, ("acme", "2026-11-20"): DAY, ("acme", "2026-10-31"): DAY}
    monkeypatch.setattr(commands, "reach", lambda *_: fake)
    return fake


def test_it_shows_this_month_by_day_and_tenant_and_adds_up(run: Run, stack: FakeStack) -> None:
    result = run("usage")
    assert (result.exit_code, [line.split() for line in result.stdout.splitlines()]) == (
        0,
        [
            ["day", "tenant", "images", "size", "runs", "variants'", "size", "megapixels"],
            ["2026-11-20", "acme", "2", "1.5", "MB", "1", "30", "KB", "2.3"],
            ["2026-11-20", "other", "2", "1.5", "MB", "1", "30", "KB", "2.3"],
            ["all", "4", "3", "MB", "2", "60", "KB", "4.7"],
        ],
    )


def test_programs_get_every_figure(run: Run, stack: FakeStack) -> None:
    result = run("usage", "--tenant", "acme", "--since", "2026-10-31", "--until", "2026-10-31", "--json")
    assert json.loads(result.stdout) == [
        {
            "day": "2026-10-31",
            "tenant": "acme",
            "images": 2,
            "image_bytes": 1_500_000,
            "runs": 1,
            "variant_bytes": 30_000,
            "variant_pixels": 2_340_000,
        }
    ]


def test_without_a_first_day_it_is_the_first_of_the_last_days_month(run: Run, stack: FakeStack) -> None:
    assert "2026-10-31" in run("usage", "--until", "2026-10-31").stdout
    assert run("usage", "--until", "2026-09-30").stdout == "Nothing was used from 2026-09-01 to 2026-09-30.\n"


@pytest.mark.parametrize("arguments", [("--since", "x"), ("--until", "2026-02-30"), ("--since", "2026-11-22")])
def test_what_is_not_understood_is_told(run: Run, stack: FakeStack, arguments: tuple[str, ...]) -> None:
    assert run("usage", *arguments).exit_code == 2
