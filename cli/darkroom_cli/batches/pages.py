"""Shows batches to people: how far they are, how they ended, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from darkroom_cli.terminal.display import advise, age, line, of, printable, table

if TYPE_CHECKING:
    from darkroom.http.bulk.batches import BatchDocument

_STYLES = {"open": "blue", "closed": "blue", "completed": "green", "failed": "red", "cancelled": "yellow"}

_STOPPED_BY = {"client": "by you", "failure": "one of its images, or its import, failed"}

_BAR_CELLS = 24


def is_success(batch: BatchDocument) -> bool:
    """Whether the batch is completed, and none of its images has failed or expired."""
    return batch["state"] == "completed" and not batch["images"]["failed"] + batch["images"]["expired"]


def summary(batch: BatchDocument) -> str:
    """How many of a batch's images are in each state that one is in: "3 working, 12 done"."""
    counted = (f"{number:,} {state}" for state, number in _counts(batch) if number)
    return ", ".join(counted) or "no images"


def _counts(batch: BatchDocument) -> list[tuple[str, int]]:
    images = batch["images"]
    return [
        ("waiting", images["waiting"]),
        ("working", images["working"]),
        ("done", images["done"]),
        ("failed", images["failed"]),
        ("cancelled", images["cancelled"]),
        ("expired", images["expired"]),
    ]


def bar(progress: float, cells: int = _BAR_CELLS) -> str:
    """A bar of the share that has ended, with its percentage: 100 only if all has."""
    full = int(progress * cells)
    return f"{'█' * full}{'░' * (cells - full)} {int(progress * 100):3} %"


def show_list(out: Console, batches: Sequence[BatchDocument], *, options: str) -> None:
    """Shows a line for each batch."""
    if not batches:
        line(out, f"No batches yet. The first one:  ./darkroom batches create{options}")
        return
    rows = [
        (batch["id"], batch["state"], bar(batch["progress"], 12), summary(batch), batch["name"] or "")
        for batch in batches
    ]
    table(out, ("batch", "state", "ended", "images", "name"), rows, right=frozenset())


def show(out: Console, batch: BatchDocument, *, options: str) -> None:
    """Shows one batch: how far it is, how it ended, and what to do next."""
    state = printable(batch["state"])
    out.print(Text.assemble((batch["id"], "bold"), "  ", (state, _STYLES.get(state, ""))), soft_wrap=True)
    for name, value in _facts(batch):
        line(out, f"  {name:<12} {printable(value)}")
    if batch["ended_at"] is None:
        line(out)
        advise(out, _advice(batch, options))


def _facts(batch: BatchDocument) -> list[tuple[str, str]]:
    facts = [("ended", bar(batch["progress"])), ("images", summary(batch))]
    if batch["remaining_seconds"] is not None:
        facts.append(("remaining", f"about {age(batch['remaining_seconds'])}"))
    if batch["name"] is not None:
        facts.append(("name", batch["name"]))
    if batch["parallelism"] is not None:
        facts.append(("parallelism", f"at most {of(batch['parallelism'], 'image')} at a time"))
    if batch["on_failure"] != "continue":
        facts.append(("on failure", batch["on_failure"]))
    if batch["notify"] is not None:
        facts.append(("notify", batch["notify"]))
    if batch["stopped_by"] is not None:
        facts.append(("stopped", _STOPPED_BY.get(batch["stopped_by"], batch["stopped_by"])))
    if "import" in batch["links"]:
        facts.append(("import", f"its images are made from a manifest: GET {batch['links']['import']} says how far"))
    facts.append(("created", batch["created_at"]))
    moments = (("closed", batch["closed_at"]), ("ended at", batch["ended_at"]))
    return facts + [(name, moment) for name, moment in moments if moment is not None]


def _advice(batch: BatchDocument, options: str) -> list[tuple[str, str]]:
    batch_id = batch["id"]
    following = [("Follow it:", f"./darkroom batches wait {batch_id}{options}")]
    if batch["state"] != "open" or "import" in batch["links"]:
        return following
    return [
        ("Fill it:", f"./darkroom upload FILE… --batch {batch_id}{options}"),
        ("Close it:", f"./darkroom batches close {batch_id}{options}"),
        *following,
    ]
