"""The work of `darkroom restore`, once the command line is parsed."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import typer

from darkroom.aws.images.objects import OutputsBucket
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom_cli.operator.operations.kernel.retry_transient import TransientRetry
from darkroom_cli.operator.operations.schedules.cancel_scheduled import REMOVALS_PER_SECOND
from darkroom_cli.restore.copying import Copying, CopyingPorts, Decide, copy_rows
from darkroom_cli.restore.decisions import MEANINGS, RestoreOutcome, of_image, of_tenant, of_usage, of_webhook
from darkroom_cli.restore.since import Since, read_since
from darkroom_cli.restore.tables import TABLES, Copy, Stores, Stream, copy_named, recoverable, stream_of_images
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupts
from darkroom_client.client import ApiError

_SHOWN = 20
_PUBLISHER = "PublishEventsFunctionImagesTable"


# ── How to have copies ───────────────────────────────────────────────────────────────────────────────────────────────


def tell_how(stack: Stack, *, as_json: bool) -> None:
    """`restore` without a copy: how far back each table can be restored, and by which command."""
    with stack.explained():
        tables = recoverable(stack)
    commands = {table.name: _command(table.name, stack.region) for table in tables}
    if as_json:
        display.print_json(
            {
                "stack": stack.name,
                "tables": [
                    {
                        "table": table.logical_id,
                        "name": table.name,
                        "earliest": rfc3339(table.earliest),
                        "latest": rfc3339(table.latest),
                        "command": commands[table.name],
                    }
                    for table in tables
                ],
            }
        )
    else:
        out = display.output()
        display.table(
            out,
            ("table", "can be restored from", "until"),
            [(table.logical_id, rfc3339(table.earliest) or "off", rfc3339(table.latest) or "-") for table in tables],
            right=frozenset(),
        )
        display.line(out)
        display.line(out, "If rows went in the last 24 hours, this alone may bring back the images, to the last write:")
        display.line(out, f"  ./darkroom restore --from-stream{stack.options}")
        display.line(out)
        display.line(
            out, "AWS restores a table under another name. TIME is just before the damage: 2026-11-23T09:00:00Z"
        )
        for table in tables:
            display.line(out, f"  {commands[table.name]}")
        display.line(out)
        display.line(
            out, "The copy has no stream, expiry, recovery or protection, and needs none: rows are copied back."
        )
        display.line(out, f"When it is ACTIVE:  ./darkroom restore COPY...{stack.options}")
    off = [table.logical_id for table in tables if table.latest is None]
    if off:
        raise ApiError(
            f"Point-in-time recovery is off for {', '.join(off)}: what they lose is lost. "
            f"To have it on:  ./darkroom doctor --repair{stack.options}"
        )


def _command(name: str, region: str) -> str:
    return (
        f"aws dynamodb restore-table-to-point-in-time --source-table-name {name} --target-table-name {name}-restored "
        f"--restore-date-time TIME --global-secondary-index-override '[]' --region {region}"
    )


# ── Copying back ─────────────────────────────────────────────────────────────────────────────────────────────────────


def restore(
    stack: Stack, names: Sequence[str], *, keep: frozenset[str], originals_are_whole: bool, yes: bool, as_json: bool
) -> None:
    """`restore COPY...`, or `--from-stream` if there are no names."""
    with stack.explained():
        _require_silence(stack)
        sources: list[Copy | Stream] = [copy_named(stack, name) for name in names]
        sources = sources or [stream_of_images(stack)]
    # Keys and tenants first: what else comes back is theirs.
    sources.sort(key=lambda source: list(TABLES).index(source.live.logical_id) != 1)
    runs: list[tuple[Copy | Stream, Copying]] = []
    with Interrupts() as interrupts, display.ProgressReport(display.errors()) as report:
        for source in sources:
            if interrupts.requested:
                break
            with stack.explained():
                run = _copy(
                    stack, source, interrupts, report, keep=keep, originals_are_whole=originals_are_whole, yes=yes
                )
            runs.append((source, run))
    if as_json:
        display.print_json({"stack": stack.name, "done": yes, "tables": [_document(*run) for run in runs]})
    else:
        for source, run in runs:
            _print(source, run, yes=yes)
    _end(stack, runs, originals_are_whole=originals_are_whole, yes=yes, interrupted=interrupts.requested)


def _require_silence(stack: Stack) -> None:
    """The stack must be of a version that tells a row that is copied back from an image that was just accepted. Raises
    ApiError."""
    uuid = stack.physical_ids("AWS::Lambda::EventSourceMapping").get(_PUBLISHER)
    mapping = {} if uuid is None else stack.client("lambda").get_event_source_mapping(UUID=uuid)
    filters = mapping.get("FilterCriteria", {}).get("Filters", [])
    patterns = [json.loads(event_filter["Pattern"])["dynamodb"] for event_filter in filters]
    new = [pattern for pattern in patterns if pattern.get("OldImage", {}).get("image_id") == {"S": [{"exists": False}]}]
    if not new or not all("version" in pattern["NewImage"] for pattern in new):  # guard: restore-announcing-version
        raise ApiError(
            f"{stack.name} would publish the events of images that come back again: its version is too old. "
            "Deploy this version first; nothing was changed."
        )


def _copy(
    stack: Stack,
    source: Copy | Stream,
    interrupts: Interrupts,
    report: display.ProgressReport,
    *,
    keep: frozenset[str],
    originals_are_whole: bool,
    yes: bool,
) -> Copying:
    report.show("reading", completed=0, total=None, detail="what was deleted and erased since")
    since = read_since(stack.audit_log, stack.log_lines, source.point, now=stack.clock())
    half_erased = {name: at for name, at in since.half_erased.items() if name not in keep}
    decide = _decide(stack, source.live.logical_id, replace(since, half_erased=half_erased))
    action = stack.audit.action("restore", source.name, table=source.live.logical_id, point=source.point)

    def show(so_far: Copying) -> None:
        report.show(
            source.live.logical_id,
            completed=so_far.counts.total(),
            total=None,
            detail=f"{so_far.counts.total():,} rows, {so_far.lacking:,} were lacking",
        )

    with action if yes else nullcontext() as audited:
        run = copy_rows(
            CopyingPorts(
                source=source,
                decide=decide,
                clock=stack.clock,
                patience=TransientRetry(pause=interrupts.wait, stop=lambda: interrupts.requested),
                audited=audited,
                on_read=lambda writes: report.show(
                    "reading the stream", completed=writes, total=None, detail=f"{writes:,} writes"
                ),
            ),
            originals_are_whole=originals_are_whole,
            on_progress=show,
        )
        if audited is not None and not run.is_complete:
            audited.interrupt()
    if yes:
        # An erasure that began meanwhile has not seen the rows that came back behind it.
        later = read_since(stack.audit_log, stack.log_lines, source.point, now=stack.clock())
        run.erased_meanwhile = sorted(
            (later.erased.keys() | later.half_erased.keys()) - since.erased.keys() - since.half_erased.keys() - keep
        )
    return run


def _decide(stack: Stack, logical_id: str, since: Since) -> Decide:
    now = stack.clock()
    match logical_id:
        case "TenantsTable":
            return partial(of_tenant, since=since)
        case "EndpointsTable":
            return partial(of_webhook, since=since, now=now)
        case "UsageTable":
            return partial(of_usage, since=since)
    client = stack.client("s3")
    stores = Stores(
        client=client,
        originals=stack.physical_id("OriginalsBucket"),
        outputs=OutputsBucket(client, stack.physical_id("OutputsBucket")),
    )
    numbers, lock = itertools.count(), threading.Lock()

    def removal() -> Milliseconds:
        with lock:  # spread, as those of an erased tenant are, so that they make no client's deletion late
            return now + next(numbers) * 1000 // REMOVALS_PER_SECOND

    return partial(of_image, since=since, found_of=stores.objects_of, removal=removal, now=now)


# ── What is said ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _print(source: Copy | Stream, run: Copying, *, yes: bool) -> None:
    out = display.output()
    verb = "Restored" if yes else "Would restore"
    as_of = f" as of {rfc3339(source.point)}" if isinstance(source, Copy) else ""
    display.line(out, f"{verb} {source.live.logical_id} from {source.name}{as_of}:", style="bold")
    rows = [(f"{count:,}", MEANINGS[outcome]) for outcome in RestoreOutcome if (count := run.counts[outcome])]
    display.table(out, ("rows", "what"), rows or [("0", "the copy is empty")], right=frozenset({"rows"}))
    for name, reason in itertools.islice(run.held.items(), _SHOWN):
        display.complain(f"{name} is held back: {reason}")
    if (held := run.counts[RestoreOutcome.HELD]) > _SHOWN:
        display.complain(f"… and {held - _SHOWN:,} more; --json has them.")


def _document(source: Copy | Stream, run: Copying) -> dict[str, Any]:
    return {
        "table": source.live.logical_id,
        "copy": source.name,
        "point": rfc3339(source.point),
        "complete": run.is_complete,
        "originals_seem_lost": run.seems_lost,
        "rows": {outcome.value: run.counts[outcome] for outcome in RestoreOutcome},
        "held": [{"id": name, "reason": reason} for name, reason in run.held.items()],
    }


def _end(
    stack: Stack,
    runs: Sequence[tuple[Copy | Stream, Copying]],
    *,
    originals_are_whole: bool,
    yes: bool,
    interrupted: bool,
) -> None:
    """What to do next, and the exit status."""
    notes = display.errors()
    if interrupted:
        display.line(notes, "Interrupted. What was restored stays; run it again for the rest.", style="yellow")
        raise typer.Exit(INTERRUPTED)
    lost = any(run.seems_lost for _, run in runs) and not originals_are_whole
    held = any(run.counts[RestoreOutcome.HELD] for _, run in runs)
    if lost:
        display.complain(
            "More originals are gone than deletions explain: the bucket may have lost some. Their rows are not "
            "restored yet. Look at the bucket; if what is gone was deleted, add --originals-are-whole."
        )
    late = sorted({name for _, run in runs for name in run.erased_meanwhile})
    if late:  # guard: restore-erasure-meanwhile
        display.complain(
            f"Somebody erased {', '.join(late)} while rows came back. Erase again what came back after that:  "
            f"./darkroom tenants erase {' '.join(late)} --yes{stack.options}"
        )
    for text in _next_steps(stack, runs, yes=yes):
        display.line(notes, text)
    if lost or held or late:
        raise typer.Exit(1)


def _next_steps(stack: Stack, runs: Sequence[tuple[Copy | Stream, Copying]], *, yes: bool) -> Iterator[str]:
    if not yes:
        yield "Nothing was changed. --yes does it."
        return
    if any(source.live.logical_id in ("ImagesTable", "UsageTable") for source, _ in runs):
        yield f"Then count anew what tenants store:  ./darkroom tenants recount{stack.options}"
    for source, _ in runs:
        if isinstance(source, Copy):
            yield (
                f"When nothing is held back, delete the copy, which has erased rows too:  "
                f"aws dynamodb delete-table --table-name {source.name} --region {stack.region}"
            )
