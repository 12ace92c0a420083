"""The wiring of `count_batches`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from darkroom.aws.bulk.batches_table import BATCHES
from darkroom.aws.events.row_changes import changes_in
from darkroom.aws.images.images_table import from_item
from darkroom.operations.bulk.settle_batch import SettleBatchPorts
from darkroom.ports.events import RowChange
from darkroom.wiring.bulk.looks import ports_of
from darkroom.wiring.bulk.settings import CountBatchesSettings


def read_changes(event: Mapping[str, Any]) -> list[RowChange]:
    """The writes of images and batches in a stream's event, as `changes_in` reads them."""
    return changes_in(event, {"image_id": from_item, "batch_id": BATCHES.row_of})


def wire() -> tuple[SettleBatchPorts, Callable[[Mapping[str, Any]], list[RowChange]]]:
    """The ports of `count_batches`, from the function's environment, and what reads the streams' writes."""
    return ports_of(CountBatchesSettings.read()), read_changes
