"""The work of `darkroom upload`, once the command line is parsed."""

from __future__ import annotations

import time

import typer
from rich.console import Console

from darkroom.domain.kernel.sizes import size_in_words
from darkroom_cli.images import pages as image_pages
from darkroom_cli.images.watch import UploadWatch
from darkroom_cli.stack.target import ApiTarget
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupted, Interrupts
from darkroom_cli.upload import pages
from darkroom_cli.upload.order import UploadOrder
from darkroom_cli.upload.pages import ENDED_BADLY, Summary
from darkroom_cli.upload.photos import Photo
from darkroom_cli.upload.sender import FileOutcome, KeySource, Sender, send_file
from darkroom_client import Darkroom
from darkroom_client.client import ApiError, ReceivedStatus, Unavailable, Unreachable

_SECONDS_TO_FINISH = 10.0
_TICK_SECONDS = 0.25


def upload(
    target: ApiTarget,
    files: list[Photo],
    order: UploadOrder,
    *,
    key_source: KeySource,
    concurrency: int,
    wait: bool,
    timeout_seconds: float,
    as_json: bool,
) -> None:
    """`upload FILE…`."""
    started_at = time.monotonic()
    results = display.output()
    # For a program, results are all that there is on standard output: a document, or ids.
    screen = results if results.is_terminal and not as_json else display.errors()
    with (
        Interrupts() as interrupts,
        target.open(connections=concurrency + 1, pause=interrupts.pause) as api,
        display.ProgressReport(screen) as report,
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
            ids=None if as_json or screen is results else results,
        )
        try:
            run.follow(timeout_seconds=timeout_seconds or float("inf"))
            run.finish()
        except KeyboardInterrupt:
            pass  # the second one: files that are still on the way are reported as unknown
    _tell(
        run,
        screen,
        total_seconds=time.monotonic() - started_at,
        interrupted=interrupts.requested,
        as_json=as_json,
        hint_options=target.options,
    )


def _tell(
    run: _Run,
    screen: Console,
    *,
    total_seconds: float,
    interrupted: bool,
    as_json: bool,
    hint_options: str,
) -> None:
    """Shows what the invocation came to, and ends it with its exit status."""
    summary = pages.summarise(
        run.outcomes,
        run.watch.documents,
        files=len(run.files),
        total_seconds=total_seconds,
    )
    problems = run.problems(summary)
    if as_json:
        document = pages.report(
            run.outcomes, run.watch.documents, summary, unknown=run.on_the_way(), interrupted=interrupted
        )
        display.print_json(document)
    else:
        pages.show(
            screen,
            summary,
            unknown=run.on_the_way(),
            waited=run.wait,
            interrupted=interrupted,
            hint_options=hint_options,
        )
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    for problem in problems:
        display.complain(problem)
    if problems:
        raise typer.Exit(1)


class _Run:
    """One invocation: threads send the files; this, in the main thread, collects outcomes, polls images and reports."""

    def __init__(
        self,
        api: Darkroom,
        files: list[Photo],
        report: display.ProgressReport,
        interrupts: Interrupts,
        *,
        order: UploadOrder,
        key_source: KeySource,
        concurrency: int,
        wait: bool,
        ids: Console | None,
    ) -> None:
        self.files = files
        self.outcomes: list[FileOutcome] = []
        self.watch = UploadWatch(api)
        self.wait = wait
        self._ended_by: ApiError | None = None
        self._expects_distinct_ids = key_source is KeySource.RANDOM and order.on_duplicate is None
        self._file_of: dict[str, Photo] = {}
        self._report = report
        self._interrupts = interrupts
        self._ids = ids
        self._total_bytes = sum(map(_size_bytes, files))
        self._sender = Sender(
            files,
            lambda file, on_sent: send_file(api, file, order=order, key_source=key_source, on_sent=on_sent),
            concurrency=concurrency,
        )

    def follow(self, *, timeout_seconds: float) -> None:
        """Runs until every file has its outcome and (with --wait) every image has ended, or until the timeout."""
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
        """Begins no further file, ends pauses between attempts, and waits a moment for the files on the way."""
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

    def on_the_way(self) -> list[Photo]:
        """The files that may have been accepted although no response has arrived."""
        return self._sender.on_the_way()

    def problems(self, summary: Summary) -> list[str]:
        """What went wrong, in sentences: the invocation succeeded if there are none."""
        if self._ended_by is not None:
            return [str(self._ended_by)]
        problems = []
        if summary.accepted < summary.files:
            problems.append(f"{summary.files - summary.accepted} of {summary.files} files were not accepted.")
        if summary.distinct_ids < summary.accepted and self._expects_distinct_ids:
            problems.append("Two files got the same id, which must never happen: please report it as a bug.")
        if summary.failed:
            problems.append(f"{summary.failed} of {summary.distinct_ids} images were not developed.")
        if self.wait and summary.unfinished:
            problems.append(
                f"{summary.unfinished} of {summary.distinct_ids} images had not ended. They are not lost: "
                "check them with `./darkroom status ID --wait`."
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
            if self._ids is not None:
                display.line(self._ids, outcome.answer.image_id)
            self._report.say(f"{outcome.answer.image_id}  {file}")

    def _poll(self) -> None:
        try:
            image_id = self.watch.poll()
        except Unavailable as error:
            # The images are safe, and the stack may be back before the timeout.
            self._report.complain(f"cannot get the images' status: {display.printable(str(error))}")
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
        elif document["status"] in ENDED_BADLY:
            self._report.complain(f"{document['status']}: {image_id}  {file}: {_reason(document)}")
        elif document["status"] == "done":
            made = ", ".join(map(image_pages.variant_in_words, document["variants"]))
            self._report.say(f"done: {image_id}  {file}: {made}", style="green")
            for notice in document["notices"]:
                self._report.say(f"notice: {image_id}  {file}: {display.printable(notice)}", style="yellow")

    def _show_progress(self) -> None:
        self._report.show(
            "uploading",
            completed=self._sender.sent_bytes,
            total=self._total_bytes,
            detail=f"{len(self.outcomes)} of {len(self.files)} files, "
            f"{size_in_words(self._sender.sent_bytes)} of {size_in_words(self._total_bytes)}",
        )
        if self.wait and self._file_of:
            self._report.show(
                "developing",
                completed=len(self._file_of) - self.watch.unfinished,
                total=len(self.files),
                detail=image_pages.counts(self.watch.counts()),
            )


def _size_bytes(file: Photo) -> int:
    if isinstance(file, str):
        return 0  # The stack fetches it.
    try:
        return file.stat().st_size
    except OSError:
        return 0  # It has vanished since it was named: sending it will report that.


def _reason(document: ReceivedStatus) -> str:
    error = document["error"]
    return display.printable(f"{error['message']} ({error['code']})" if error else "no reason was given")
