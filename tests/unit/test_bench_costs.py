"""`make bench-costs`: what it reads from logs, and the models of other ways by hand."""

from __future__ import annotations

import json

import pytest

from benchmarks.costs.counted import ENTRY_KILOBYTES, TIMING_SHARE, difference, logged
from benchmarks.costs.others import Load, cloudflare, cloudinary, darkroom, imgix, imgproxy, plain_lambda
from darkroom_cli.capacity.bill import Kept, bill


def load(images: int, month: int = 1) -> Load:
    """Images of the usual size."""
    return Load(images=images, month=month, kept=Kept())


def test_a_log_is_counted_as_if_it_were_sampled() -> None:
    emf = {
        "_aws": {"CloudWatchMetrics": [{"Dimensions": [["service"]], "Metrics": [{"Name": "ImagesAccepted"}]}]},
        "service": "darkroom",
    }
    accepted, timing = ({"message": name, "service": "darkroom"} for name in ("accepted", "timing"))
    report = {"type": "platform.report", "record": {}}
    lines = [json.dumps(line) for line in (accepted, emf, timing, report)]
    volume = logged([*lines, "a word of the runtime"])
    kilobytes = [len(line) / 1000 + ENTRY_KILOBYTES for line in lines]
    assert volume.sampled == pytest.approx(kilobytes[0] + kilobytes[1] + TIMING_SHARE * kilobytes[2])
    assert volume.more == pytest.approx(kilobytes[3] + (1 - TIMING_SHARE) * kilobytes[2])
    assert (volume.runs, volume.metrics, volume.lines["accepted"]) == (1, {("darkroom", "ImagesAccepted")}, 1)
    again = logged([*lines, *lines])
    assert difference(volume, again).sampled == pytest.approx(volume.sampled)


def test_other_ways_cost_what_their_price_lists_say() -> None:
    assert cloudflare(load(100_000)) == 5 + 10, "stored and seen ten times"
    assert cloudflare(load(100_000, month=12)) == 60 + 10
    assert [cloudinary(load(images)) for images in (1_000, 100_000)] == [0, 549], "8 and 810 credits"
    assert imgix(load(100_000)) == pytest.approx(25 + 0.25 * (120 + 150 + 800 - 100) + 0.5 + 100 * 0.023)
    variants = 100_000 * 0.15 * 10 / 1000
    assert plain_lambda(load(100_000)) == pytest.approx(
        0.1 * (25 + 0.4 + 0.2 + 0.2) + 100_000 * 863.77 * 0.0133334e-6 + 130 * 0.023 + variants * 0.09, rel=1e-4
    )
    assert imgproxy(load(1_000)) - imgproxy(load(500)) < 0.2, "two machines, whatever comes"
    assert imgproxy(load(10_000_000)) - imgproxy(load(1_000)) > 2 * 52.2, "four machines"


def test_darkroom_is_compared_with_its_whole_bill_and_the_views() -> None:
    usual = load(100_000)
    lines = bill(usual.demand, usual.kept, month=1)
    assert darkroom(usual) == pytest.approx(sum(line.dollars for line in lines) + 150 * 0.09)
