"""The outcome of an upload: counted, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from darkroom_cli.terminal import display
from darkroom_cli.upload.photos import Photo
from darkroom_cli.upload.sender import FileOutcome
from darkroom_client.client import ReceivedStatus

ENDED_BADLY = frozenset({"failed", "expired"})


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The outcome of an upload in numbers; the drain rate is `drained` images over `drain_seconds`."""

    files: int
    accepted: int
    distinct_ids: int
    done: int
    failed: int
    unfinished: int
    total_seconds: float
    drained: int
    drain_seconds: float | None
    drain_images_per_second: float | None


def summarise(
    outcomes: Iterable[FileOutcome], documents: Mapping[str, ReceivedStatus], *, files: int, total_seconds: float
) -> Summary:
    """Counts what became of the files.

    The drain rate uses the server's own times, so polling does not distort it: images that this invocation made and
    that are done, over the seconds from the first acceptance (`created_at`) to the last completion (`completed_at`).
    Images that an earlier upload made (`--idempotency-key-from content`, `--reuse`) are not counted.
    """
    answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
    states = Counter(document["status"] for document in documents.values())
    made_before = {answer.image_id for answer in answers if answer.replayed and answer.is_terminal}
    made_now = [document for image_id, document in documents.items() if image_id not in made_before]
    completed = [
        display.instant(document["completed_at"])
        for document in made_now
        if document["status"] == "done" and document["completed_at"] is not None
    ]
    drain_seconds = None
    if completed:
        first_accepted = min(display.instant(document["created_at"]) for document in made_now)
        drain_seconds = (max(completed) - first_accepted).total_seconds()
    failed = sum(states[state] for state in ENDED_BADLY)
    return Summary(
        files=files,
        accepted=len(answers),
        distinct_ids=len(documents),
        done=states["done"],
        failed=failed,
        unfinished=len(documents) - states["done"] - failed,
        total_seconds=round(total_seconds, 3),
        drained=len(completed),
        drain_seconds=None if drain_seconds is None else round(drain_seconds, 3),
        drain_images_per_second=round(len(completed) / drain_seconds, 3) if drain_seconds else None,
    )


def show(
    out: Console, summary: Summary, *, unknown: Sequence[Photo], waited: bool, interrupted: bool, hint_options: str
) -> None:
    """Shows the outcome to people; `unknown` are files that may have been accepted before an interrupt."""
    display.line(out)
    repeated = summary.accepted - summary.distinct_ids
    accepted = f"{summary.accepted} of {summary.files} files"
    ids = f"{summary.distinct_ids} distinct" + (f" ({repeated} repeated)" if repeated else ", none twice")
    facts = [("accepted", accepted)]
    if summary.accepted:
        facts.append(("ids", ids))
    if waited:
        facts += [("done", str(summary.done)), ("failed", str(summary.failed))]
        if summary.unfinished:
            facts.append(("unfinished", str(summary.unfinished)))
    facts.append(("total time", display.seconds(summary.total_seconds)))
    if waited and summary.drain_images_per_second is not None and summary.drain_seconds is not None:
        facts.append(
            (
                "drain rate",
                f"{summary.drain_images_per_second:.2f} images/s = {summary.drained} done / "
                f"{summary.drain_seconds:.2f} s from the first acceptance to the last completion (the server's clock)",
            )
        )
    for name, value in facts:
        display.line(out, f"{name:<12}{value}")
    if interrupted:
        display.line(
            out,
            f"Interrupted. {summary.accepted} of {summary.files} files were accepted: "
            "the ids above, which will be developed.",
        )
        for file in unknown:
            display.line(out, f"unknown     {display.printable(str(file))} (it may have been accepted)")
    elif summary.accepted and not waited:
        display.line(out, f"Wait for one:  ./darkroom status ID --wait{hint_options}")


def report(
    outcomes: Iterable[FileOutcome],
    documents: Mapping[str, ReceivedStatus],
    summary: Summary,
    *,
    unknown: Sequence[Photo],
    interrupted: bool,
) -> dict[str, Any]:
    """The outcome for programs."""
    return {
        "uploads": [
            {
                "file": str(outcome.file),
                "image": None if outcome.answer is None else documents[outcome.answer.image_id],
                "replayed": outcome.answer is not None and outcome.answer.replayed,
                "problem": None if outcome.problem is None else str(outcome.problem),
            }
            for outcome in outcomes
        ],
        "unknown": [str(file) for file in unknown],
        "interrupted": interrupted,
        "summary": asdict(summary),
    }
