"""`darkroom upload`: sends photos, several at a time, and follows them until they are developed."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from console.api.client import Api, ApiError, StatusDocument, Unavailable, Unreachable
from console.images.watch import Watch
from console.stack.target import ApiKeyOption, IamOption, UrlOption, resolve
from console.terminal import display
from console.terminal.interrupts import INTERRUPTED, Interrupted, Interrupts
from console.upload.order import NoOrder, Order, order_of
from console.upload.photos import NoFile, files_named
from console.upload.sender import KeySource, Outcome, Sender, send_file

EPILOG = """[bold]Examples[/bold]

  ./darkroom upload photo.jpg                 [dim]prints the image's id[/dim]
  ./darkroom upload photo.jpg --wait          [dim]and waits until it is developed[/dim]
  ./darkroom upload holiday/ 'more/**/*.png'  [dim]a folder and a pattern[/dim]
  ./darkroom upload photo.jpg --variants thumb,webp
  ./darkroom upload photo.jpg --recipe card.json
  ./darkroom upload photo.jpg --process-at 2027-03-01T09:00:00+01:00
  ./darkroom upload *.jpg --wait --json > report.json
  DARKROOM_URL=https://abc123.execute-api.eu-west-1.amazonaws.com \\
    ./darkroom upload *.jpg --iam             [dim]to a stack deployed with Access=iam[/dim]

[bold]A recipe[/bold]

  {"variants": [{"name": "card", "width": 600, "height": 400, "fit": "cover"},
                {"name": "wide", "width": 1920, "height": 1920, "format": "avif"}]}

[bold]Exit status[/bold]

  0    every file was accepted (with --wait: and developed)
  1    something failed; standard error says what
  2    the command was not understood, or a FILE or the recipe is none;
       nothing was sent
  130  interrupted; what was accepted is listed, and will be developed"""

_SECONDS_TO_FINISH = 10.0
_TICK_SECONDS = 0.25


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What an upload came to; the drain rate is `drained` images over `drain_seconds`."""

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


def command(
    *,
    arguments: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Photos, folders (searched for images), or quoted patterns."),
    ],
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Follow the images until each has ended; then show the drain rate."),
    ] = False,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset", metavar="P", show_default=False, help="Which variants to make. Default: the stack's own choice."
        ),
    ] = None,
    variants: Annotated[
        str | None,
        typer.Option(
            "--variants", metavar="A,B", show_default=False, help="Only these variants of the preset. Default: all."
        ),
    ] = None,
    recipe_file: Annotated[
        Path | None,
        typer.Option(
            "--recipe",
            metavar="PATH",
            show_default=False,
            help="Instead of a preset: a JSON file with the variants to make, see below.",
        ),
    ] = None,
    process_at: Annotated[
        str | None,
        typer.Option(
            "--process-at", metavar="T", show_default=False, help="Not before then: 2027-03-01T09:00:00+01:00."
        ),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(
            "--delay", metavar="D", show_default=False, help="Not before so much time has passed: PT15M, P2D."
        ),
    ] = None,
    expires_at: Annotated[
        str | None,
        typer.Option(
            "--expires-at", metavar="T", show_default=False, help="Not after then: what is not begun expires."
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", min=1, max=64, help="How many files to send at a time.")
    ] = 8,
    timeout_seconds: Annotated[
        float,
        typer.Option(
            "--timeout-seconds",
            metavar="N",
            min=0,
            help="With --wait: stop waiting N seconds after the last file was sent; 0 waits for ever.",
        ),
    ] = 900,
    key_source: Annotated[
        KeySource,
        typer.Option(
            "--idempotency-key-from",
            help="random: every file becomes an image of its own, sent before or not. "
            "content: the same photo with the same preset or recipe is one image, however often it is sent.",
        ),
    ] = KeySource.RANDOM,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document at the end: files, their images, a summary.")
    ] = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Send photos to be developed.

    Prints a line for each file: the image's id, then the file. A file that is
    refused is reported with the reason and does not stop the others. A file of
    more than 4 MB goes straight to the stack's storage.

    A request that meets a fault or a busy stack is repeated, after growing
    pauses. That never makes a second image: all attempts for one file carry
    the same Idempotency-Key.
    """
    try:
        files = files_named(arguments)
    except NoFile as error:
        raise typer.BadParameter(display.printable_lines(str(error)), param_hint="FILE") from error
    try:
        order = replace(
            order_of(preset, variants, recipe_file), process_at=process_at, delay=delay, expires_at=expires_at
        )
    except NoOrder as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from error
    target = resolve(url, api_key, iam)
    started_at = time.monotonic()
    screen = display.errors() if as_json else display.output()
    with (
        Interrupts() as interrupts,
        target.open(connections=concurrency + 1, pause=interrupts.pause) as api,
        display.Report(screen) as report,
    ):
        run = _Run(
            api,
            files,
            report,
            interrupts,
            order=order,
            key_source=key_source,
            concurrency=concurrency,
            wait=wait,
            print_ids=not as_json,
        )
        try:
            run.follow(timeout_seconds=timeout_seconds or float("inf"))
            run.finish()
        except KeyboardInterrupt:
            pass  # the second one: whatever is still on the way is told as unknown
    interrupted = interrupts.requested
    summary = summarise(
        run.outcomes,
        run.watch.documents,
        files=len(files),
        total_seconds=time.monotonic() - started_at,
    )
    problems = run.problems(summary)
    if as_json:
        typer.echo(json.dumps(_report(run, summary, interrupted=interrupted), indent=2))
    else:
        _show(display.output(), run, summary, hint_options=target.options, interrupted=interrupted)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    for problem in problems:
        display.complain(problem)
    if problems:
        raise typer.Exit(1)


class _Run:
    """One invocation as it goes: files are sent by threads; this, in the main thread, collects, asks and shows."""

    def __init__(
        self,
        api: Api,
        files: list[Path],
        report: display.Report,
        interrupts: Interrupts,
        *,
        order: Order,
        key_source: KeySource,
        concurrency: int,
        wait: bool,
        print_ids: bool,
    ) -> None:
        self.files = files
        self.outcomes: list[Outcome] = []
        self.watch = Watch(api)
        self.wait = wait
        self._ended_by: ApiError | None = None
        self._key_source = key_source
        self._file_of: dict[str, Path] = {}
        self._report = report
        self._interrupts = interrupts
        self._print_ids = print_ids
        self._total_bytes = sum(map(_size_bytes, files))
        self._sender = Sender(
            files,
            lambda file, on_sent: send_file(api, file, order=order, key_source=key_source, on_sent=on_sent),
            concurrency=concurrency,
        )

    def follow(self, *, timeout_seconds: float) -> None:
        """Until every file has its outcome and (to wait) every image has ended, or the time is over."""
        self._sender.start()
        all_sent_at: float | None = None
        while self._ended_by is None and not self._interrupts.requested:
            all_sent = len(self.outcomes) == len(self.files)
            wait_seconds = self.watch.seconds_until_next_poll() if self.wait else None
            if all_sent:
                all_sent_at = all_sent_at or time.monotonic()
                if wait_seconds is None or time.monotonic() - all_sent_at > timeout_seconds:
                    return
            tick_seconds = min(_TICK_SECONDS, _TICK_SECONDS if wait_seconds is None else wait_seconds)
            if all_sent:
                time.sleep(tick_seconds)
            else:
                self._collect(wait_seconds=tick_seconds)
            if self.wait and self.watch.seconds_until_next_poll() == 0:
                self._poll()
            self._show_progress()

    def finish(self) -> None:
        """Begins no further file, ends pauses between attempts, and gives the files on the way a moment to arrive."""
        self._sender.stop()
        self._interrupts.ending = True
        give_up_at = time.monotonic() + _SECONDS_TO_FINISH
        if self._interrupts.requested and self._sender.is_busy:
            self._report.complain("interrupted: waiting for the files on the way (Ctrl-C again leaves at once)")
        while time.monotonic() < give_up_at:
            was_busy = self._sender.is_busy
            self._collect(wait_seconds=_TICK_SECONDS / 5 if was_busy else 0)
            if not was_busy:
                return

    def on_the_way(self) -> list[Path]:
        """The files that may have been accepted without our knowing."""
        return self._sender.on_the_way()

    def problems(self, summary: Summary) -> list[str]:
        """What went wrong in all, in sentences: the invocation succeeded where there is none."""
        if self._ended_by is not None:
            return [str(self._ended_by)]
        problems = []
        if summary.accepted < summary.files:
            problems.append(f"{summary.files - summary.accepted} of {summary.files} files were not accepted.")
        if summary.distinct_ids < summary.accepted and self._key_source is KeySource.RANDOM:
            problems.append("Two files were given one id, which must never happen: please report it as a bug.")
        if summary.failed:
            problems.append(f"{summary.failed} of {summary.distinct_ids} images were not developed.")
        if self.wait and summary.unfinished:
            problems.append(
                f"{summary.unfinished} of {summary.distinct_ids} images had not ended. They are not lost: "
                "ask for them with `./darkroom status ID --wait`."
            )
        return problems

    def _collect(self, *, wait_seconds: float) -> None:
        for outcome in self._sender.outcomes(wait_seconds=wait_seconds):
            if outcome.ends_all:
                self._ended_by = self._ended_by or outcome.problem
                continue
            self.outcomes.append(outcome)
            file = display.printable(str(outcome.file))
            if outcome.answer is None:
                self._report.complain(f"not accepted: {file}: {display.printable(str(outcome.problem))}")
                continue
            self._file_of[outcome.answer.image_id] = outcome.file
            self.watch.add(outcome.answer)
            if self._print_ids:
                self._report.say(f"{outcome.answer.image_id}  {file}")

    def _poll(self) -> None:
        try:
            image_id = self.watch.poll()
        except Unavailable as error:
            # The images are safe, and the stack may be back before the time to wait is over.
            self._report.complain(f"cannot ask how the images are: {display.printable(str(error))}")
            return
        except Unreachable as error:
            self._ended_by = error
            return
        except Interrupted:
            return
        document = self.watch.documents[image_id]
        file = display.printable(str(self._file_of[image_id]))
        if image_id in self.watch.lost:
            self._report.complain(f"lost: {image_id}  {file}: {display.printable(str(self.watch.lost[image_id]))}")
        elif document["status"] in _ENDED_BADLY:
            self._report.complain(f"{document['status']}: {image_id}  {file}: {_reason(document)}")
        elif document["status"] == "done":
            for notice in document["notices"]:
                self._report.say(f"notice: {image_id}  {file}: {display.printable(notice)}", style="yellow")

    def _show_progress(self) -> None:
        self._report.show(
            "uploading",
            completed=self._sender.sent_bytes,
            total=self._total_bytes,
            detail=f"{len(self.outcomes)} of {len(self.files)} files, "
            f"{display.size(self._sender.sent_bytes)} of {display.size(self._total_bytes)}",
        )
        if self.wait and self._file_of:
            self._report.show(
                "developing",
                completed=len(self._file_of) - self.watch.unfinished,
                total=len(self.files),
                detail=display.counts(self.watch.counts()),
            )


def _size_bytes(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # It has vanished since it was named: its turn to be sent will tell.


_ENDED_BADLY = frozenset({"failed", "cancelled", "expired"})


def _reason(document: StatusDocument) -> str:
    error = document["error"]
    return display.printable(f"{error['message']} ({error['code']})" if error else "no reason was given")


def summarise(
    outcomes: Iterable[Outcome], documents: Mapping[str, StatusDocument], *, files: int, total_seconds: float
) -> Summary:
    """Counts what became of the files.

    The drain rate takes the server's own times, which no pace of asking blurs: images that this invocation made and
    that are done, over the seconds from the first acceptance (`created_at`) to the last completion (`completed_at`).
    An image that an earlier upload had made (`--idempotency-key-from content`) is not among them.
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
    failed = sum(states[state] for state in _ENDED_BADLY)
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


def _show(out: Console, run: _Run, summary: Summary, *, hint_options: str, interrupted: bool) -> None:
    display.line(out)
    repeated = summary.accepted - summary.distinct_ids
    accepted = f"{summary.accepted} of {summary.files} files"
    ids = f"{summary.distinct_ids} distinct" + (f" ({repeated} of them given again)" if repeated else ", none twice")
    facts = [("accepted", accepted)]
    if summary.accepted:
        facts.append(("ids", ids))
    if run.wait:
        facts += [("done", str(summary.done)), ("failed", str(summary.failed))]
        if summary.unfinished:
            facts.append(("unfinished", str(summary.unfinished)))
    facts.append(("total time", display.seconds(summary.total_seconds)))
    if run.wait and summary.drain_images_per_second is not None and summary.drain_seconds is not None:
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
        for file in run.on_the_way():
            display.line(out, f"unknown     {display.printable(str(file))} (it may have been accepted)")
    elif summary.accepted and not run.wait:
        display.line(out, f"Wait for one:  ./darkroom status ID --wait{hint_options}")


def _report(run: _Run, summary: Summary, *, interrupted: bool) -> dict[str, Any]:
    documents = run.watch.documents
    return {
        "uploads": [
            {
                "file": str(outcome.file),
                "image": None if outcome.answer is None else documents[outcome.answer.image_id],
                "replayed": outcome.answer is not None and outcome.answer.replayed,
                "problem": None if outcome.problem is None else str(outcome.problem),
            }
            for outcome in run.outcomes
        ],
        "unknown": [str(file) for file in run.on_the_way()],
        "interrupted": interrupted,
        "summary": asdict(summary),
    }
