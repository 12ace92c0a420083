"""The page's screens name what the API knows: statuses, types of events, limits."""

from __future__ import annotations

import re
from pathlib import Path

from darkroom.domain.bulk.batches import BatchState
from darkroom.domain.events.event import PATTERNS
from darkroom.domain.images.listing import LISTED_STATUSES, MAX_PAGE_IMAGES
from darkroom.domain.webhooks.delivery import MAX_PAGE_DELIVERIES, DeliveryStatus
from darkroom.domain.webhooks.endpoint import MAX_DESCRIPTION_CHARACTERS
from darkroom.domain.webhooks.endpoint_ids import MAX_ENDPOINTS
from darkroom.http.bulk.batches import MAX_PAGE_BATCHES

SCREENS = Path(__file__).parents[2] / "layers" / "page" / "web" / "screens"


def source(name: str) -> str:
    """A screen's module."""
    return (SCREENS / name).read_text(encoding="utf-8")


def listed(module: str, constant: str) -> list[str]:
    """The words of a constant that is an array of words."""
    body = re.search(rf"const {constant} = \[(.*?)\];", source(module), re.DOTALL)
    assert body is not None, f"{module} has no {constant}"
    return re.findall(r'"([^"]+)"', body[1])


def number(module: str, constant: str) -> int:
    """The number that a constant is."""
    value = re.search(rf"const {constant} = (\d+);", source(module))
    assert value is not None, f"{module} has no {constant}"
    return int(value[1])


def test_the_gallery_can_be_filtered_by_every_status_and_reads_the_largest_pages_that_the_api_gives() -> None:
    assert sorted(listed("browse/list.js", "STATUSES")) == sorted(LISTED_STATUSES)
    assert number("browse/list.js", "PAGE_IMAGES") == MAX_PAGE_IMAGES


def test_the_page_knows_the_states_of_batches() -> None:
    states = re.search(r"@property \{(.*?)\} state", source("batches.js"))
    assert states is not None and re.findall(r'"(\w+)"', states[1]) == list(BatchState)
    assert number("batches.js", "PAGE_BATCHES") <= MAX_PAGE_BATCHES


def test_the_page_offers_as_many_webhooks_events_and_statuses_of_deliveries_as_the_api_takes() -> None:
    events = re.findall(r'^    \["([^"]+)", "', source("webhooks/form.js"), re.MULTILINE)
    assert sorted(events) == sorted(PATTERNS)
    assert number("webhooks.js", "MOST") == MAX_ENDPOINTS
    assert f'maxlength="{MAX_DESCRIPTION_CHARACTERS}"' in source("webhooks/form.js")
    assert listed("webhook.js", "STATUSES") == list(DeliveryStatus)
    assert number("webhook.js", "PAGE_DELIVERIES") == MAX_PAGE_DELIVERIES
