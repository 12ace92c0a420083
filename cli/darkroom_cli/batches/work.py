"""The work of the commands on batches, once the command line is parsed."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import typer

from darkroom_cli.batches import pages
from darkroom_cli.stack.target import ApiTarget
from darkroom_cli.terminal import display
from darkroom_client import BatchTerms

if TYPE_CHECKING:
    from darkroom.http.bulk.batches import BatchDocument


def list_(target: ApiTarget, *, limit: int, as_json: bool) -> None:
    """`batches ls`: a list says nothing of a batch's images, so each batch is read."""
    with target.open() as api:
        batches = [api.batch(listed["id"]) for listed in islice(api.batches(), limit)]
    if as_json:
        display.print_json({"batches": batches})
    else:
        pages.show_list(display.output(), batches, options=target.options)


def show(target: ApiTarget, batch_id: str, *, as_json: bool) -> None:
    """`batches show`."""
    with target.open() as api:
        batch = api.batch(batch_id)
    _show(target, batch, as_json=as_json)


def _show(target: ApiTarget, batch: BatchDocument, *, as_json: bool) -> None:
    if as_json:
        display.print_json(batch)
    else:
        pages.show(display.output(), batch, options=target.options)


def create(target: ApiTarget, terms: BatchTerms, *, key: str | None, as_json: bool) -> None:
    """`batches create`: the id, or the document, is all that goes to standard output."""
    with target.open() as api:
        batch = api.create_batch(idempotency_key=key, **terms)
    if as_json:
        display.print_json(batch)
    else:
        display.line(display.output(), batch["id"])
    display.line(display.errors(), f"Fill it:  ./darkroom upload FILE… --batch {batch['id']}{target.options}")


def close(target: ApiTarget, batch_id: str, *, as_json: bool) -> None:
    """`batches close`."""
    with target.open() as api:
        batch = api.close_batch(batch_id)
    _show(target, batch, as_json=as_json)


def wait(target: ApiTarget, batch_id: str, *, timeout_seconds: float, as_json: bool) -> None:
    """`batches wait`: exits with 1 unless the batch is completed without a failed or expired image."""
    told = False

    with target.open() as api, display.ProgressReport(display.errors()) as report:

        def follow(batch: BatchDocument) -> None:
            nonlocal told
            if batch["state"] == "open" and not told:
                report.say(f"It ends once it is closed:  ./darkroom batches close {batch_id}{target.options}")
                told = True
            counts = pages.summary(batch)
            report.show(batch_id, completed=batch["progress"], total=1.0, detail=f"{batch['state']}, {counts}")

        batch = api.wait_for_batch(batch_id, timeout_seconds=timeout_seconds or None, on_document=follow)
    _show(target, batch, as_json=as_json)
    if not pages.is_success(batch):
        raise typer.Exit(1)


def cancel(target: ApiTarget, batch_id: str, *, yes: bool, as_json: bool) -> None:
    """`batches cancel`."""
    with target.open() as api:
        if yes:  # guard: cli-batch-cancel-consent
            _show(target, api.cancel_batch(batch_id), as_json=as_json)
            return
        batch = api.batch(batch_id)
    if batch["ended_at"] is not None:
        display.line(display.output(), f"{batch_id} has ended, and stays {display.printable(batch['state'])}.")
        return
    waiting = "those of its images that are not begun"
    if batch["parallelism"] is not None:
        waiting += f" ({batch['images']['waiting']:,} wait for their turn)"
    display.line(
        display.output(), f"{batch_id} would begin nothing more, and {waiting} would be deleted. Add --yes to do it."
    )
