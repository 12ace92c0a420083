"""The work of `darkroom dlq`, once the command line is parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import typer

from darkroom.domain.dead_letters.dead_letter import Verdict
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.fingerprint import is_defect
from darkroom.domain.kernel.lanes import FETCH, LANES
from darkroom.domain.sweeping.due import MAX_PAUSE_SECONDS
from darkroom.operations.dead_letters.archive_dead_letters import ArchiveDeadLettersPorts, archive_dead_letters
from darkroom.operations.dead_letters.cases import Case, CasePorts
from darkroom_cli.dlq import pages
from darkroom_cli.dlq.filters import DeadLetterFilters
from darkroom_cli.dlq.job import Job
from darkroom_cli.dlq.pages import Words
from darkroom_cli.operator.domain.dead_letters import why_not_replayable
from darkroom_cli.operator.domain.redrives import Redrive, RedriveStatus
from darkroom_cli.operator.operations.dead_letters.drop_dead_letters import (
    DropDeadLettersPorts,
    drop_dead_letters,
    is_droppable,
)
from darkroom_cli.operator.operations.dead_letters.list_dead_letters import (
    EVERYTHING,
    DeadLetterListing,
    DeadLetterSelection,
    list_dead_letters,
)
from darkroom_cli.operator.operations.dead_letters.list_given_up import (
    GivenUp,
    ListGivenUpPorts,
    coming_case,
    list_given_up,
)
from darkroom_cli.operator.operations.dead_letters.replay_dead_letters import (
    REDRIVE_LIMIT,
    NotReplayable,
    is_left_over,
    is_replayable,
    refuse_what_cannot_be_moved,
    replay_dead_letters,
    replay_image,
    replay_queue,
)
from darkroom_cli.operator.operations.images.list_retrying import (
    ListRetryingPorts,
    Retry,
    Retrying,
    latest_failure,
    list_retrying,
    retry_of,
)
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.at_once import at_once
from darkroom_cli.terminal.durations import seconds_of
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupts
from darkroom_client.client import IMAGE_ID_PATTERN, ApiError

LIMIT_OF_ROWS = 1000
"""How many rows a replay reads to say for which images no dead letter has come yet."""

STANDARD_RATE = 10
"""The default of images per second that a replay starts: what the slow lane's workers can do beside live traffic."""


def selection_of(filters: DeadLetterFilters) -> DeadLetterSelection:
    """The selection that the filters mean, except for the lane."""
    return DeadLetterSelection(
        image_id=filters.image,
        tenant_id=filters.tenant,
        cause=filters.cause,
        fingerprint=filters.fingerprint,
        verdict=None if filters.verdict is None else Verdict(filters.verdict),
        older_than_seconds=seconds_of(filters.older_than),
        newer_than_seconds=seconds_of(filters.newer_than),
    )


def words_of(filters: DeadLetterFilters, stack: Stack) -> Words:
    """The words that name the same filters and stack again."""
    return Words(filters=filters.given, target=stack.options)


def list_(stack: Stack, filters: DeadLetterFilters, *, limit: int, as_json: bool) -> None:
    """`dlq ls`."""
    listing = _listed(stack, filters.lane, selection_of(filters), limit=limit)
    given_up = _given_up(stack, filters, listing, limit=limit)
    retrying = _retrying(stack, filters, limit=limit) if filters.verdict is None else None
    if not as_json:
        out = display.output()
        is_quiet = not given_up.coming and not given_up.unfetched
        pages.listing_page(out, listing, stack.clock(), words_of(filters, stack), is_quiet=is_quiet)
        pages.given_up_page(out, given_up, stack.clock(), target=stack.options)
        if retrying is not None:
            pages.retrying_page(out, retrying, stack.clock(), target=stack.options)
        return
    display.print_json(
        {
            "queues": listing.depths,
            "dead_letters_read": listing.dead_letters,
            "incomplete": list(listing.incomplete),
            "cases": [pages.document(case, stack.clock(), target=stack.options) for case in listing.cases],
            "coming": [pages.document(case, stack.clock(), target=stack.options) for case in given_up.coming],
            "unfetched": [image.image_id for image in given_up.unfetched],
            "retrying": [] if retrying is None else [pages.defect_document(defect) for defect in retrying.defects],
        }
    )


def _given_up(stack: Stack, filters: DeadLetterFilters, listing: DeadLetterListing, *, limit: int) -> GivenUp:
    """What was given up and is not among the listed dead letters, as the filters say."""
    selection = selection_of(filters)
    listed = {(case.image.image_id, case.image.run) for case in listing.cases if case.image is not None}
    ports = ListGivenUpPorts(images=stack.images, at_once=at_once, clock=stack.clock)
    with stack.explained():
        given_up = list_given_up(ports, ahead_seconds=MAX_PAUSE_SECONDS, limit=limit)

    def covers(case: Case) -> bool:
        image = case.image
        is_new = image is not None and (image.image_id, image.run) not in listed  # guard: dlq-list-each-case-once
        return is_new and filters.lane in (None, case.queue) and selection.covers(case, stack.clock())

    def concerns(image: Image) -> bool:
        return (
            filters.lane in (None, FETCH)
            and filters.verdict is None
            and filters.fingerprint is None
            and filters.image in (None, image.image_id)
            and filters.tenant in (None, image.tenant_id)
            and (filters.cause is None or (image.error is not None and image.error.code == filters.cause))
        )

    return replace(
        given_up, coming=tuple(filter(covers, given_up.coming)), unfetched=tuple(filter(concerns, given_up.unfetched))
    )


def _retrying(stack: Stack, filters: DeadLetterFilters, *, limit: int) -> Retrying:
    """What was tried in vain and is not given up yet; of the filters, the ages are those of dead letters alone."""

    def covers(image: Image) -> bool:
        cause = latest_failure(image)
        return (
            cause is not None
            and (filters.image is None or image.image_id == filters.image)
            and (filters.tenant is None or image.tenant_id == filters.tenant)
            and (filters.cause is None or cause.error_type.casefold() == filters.cause.casefold())
            and (filters.fingerprint is None or is_defect(filters.fingerprint, cause.error_type, cause.stack))
        )

    lanes = [lane for lane in LANES if filters.lane in (None, lane)]
    with stack.explained():
        return list_retrying(
            ListRetryingPorts(images=stack.images, clock=stack.clock), lanes, limit=limit, covers=covers
        )


def show(stack: Stack, name: str, *, limit: int, as_json: bool) -> None:
    """`dlq show`."""
    is_image = IMAGE_ID_PATTERN.fullmatch(name) is not None
    listing = _listed(stack, None, DeadLetterSelection(image_id=name) if is_image else EVERYTHING, limit=limit)
    cases = [
        case
        for case in listing.cases
        if is_image or name in {dead_letter.message_id for dead_letter in case.dead_letters}
    ]
    coming = _coming(stack, name) if is_image and not cases else None
    if coming is not None:
        cases = [coming]
    if not cases:
        retry = _retry(stack, name) if is_image else None
        if retry is None:
            raise ApiError(_why_none(stack, name, listing, is_image=is_image))
        _show_retry(stack, retry, as_json=as_json)
        return
    if as_json:
        display.print_json([pages.document(case, stack.clock(), target=stack.options) for case in cases])
        return
    out = display.output()
    for number, case in enumerate(cases):
        if number:
            display.line(out)
        pages.case_page(out, case, stack.clock(), log_query=_log_query(stack, case.explanation), target=stack.options)


def _coming(stack: Stack, image_id: str) -> Case | None:
    with stack.explained():
        row = stack.images.get(image_id)
    return None if row is None else coming_case(row)


def _retry(stack: Stack, image_id: str) -> Retry | None:
    with stack.explained():
        row = stack.images.get(image_id)
    return None if row is None else retry_of(row, now=stack.clock())


def _show_retry(stack: Stack, retry: Retry, *, as_json: bool) -> None:
    """An image that has no dead letter because it is not given up yet."""
    if as_json:
        display.print_json([pages.retry_document(retry, stack.clock(), target=stack.options)])
        return
    query = _log_query(stack, retry.explanation)
    pages.retry_page(display.output(), retry, stack.clock(), log_query=query, target=stack.options)


def _log_query(stack: Stack, explanation: Mapping[str, Any]) -> str | None:
    return pages.log_query(explanation, target=stack.options)


def _why_none(stack: Stack, name: str, listing: DeadLetterListing, *, is_image: bool) -> str:
    name = display.printable(name)
    if listing.incomplete:
        return f"No dead letter of {name} was among the {listing.dead_letters:,} that were read. Read more: --limit N."
    if not is_image:
        return f"There is no dead letter {name} in {', '.join(listing.depths)}. See: ./darkroom dlq ls{stack.options}"
    with stack.explained():
        row = stack.images.get(name)
    if row is None:
        return f"There is no dead letter and no image {name}."
    if not row.is_deleted and not row.status.is_terminal:
        state = f"It is {row.status}, in run {row.run}, and no attempt has failed"
        return f"{name} has no dead letter. {state}: see ./darkroom trace {name}{stack.options}"
    reason = why_not_replayable(row)
    if reason is None:
        again = f"./darkroom dlq replay --image {name}{stack.options}"
        return f"{name} was given up, but it has no dead letter here (any more). It can still be replayed: {again}"
    return f"{name} has no dead letter here. {reason}"


def preview_replay(
    stack: Stack, filters: DeadLetterFilters, *, everything: bool, rate: int, limit: int
) -> Sequence[str]:
    """`dlq replay` without --yes; returns the ids of the images that it would replay."""
    listing = _listed(stack, filters.lane, selection_of(filters), limit=REDRIVE_LIMIT if everything else limit)
    if everything:
        try:
            for queue in listing.depths:
                in_queue = tuple(case for case in listing.cases if case.queue == queue)
                refuse_what_cannot_be_moved(queue, in_queue, complete=queue not in listing.incomplete)
        except NotReplayable as error:
            raise ApiError(str(error)) from error
    cases = [case for case in listing.cases if is_replayable(case)]
    batches = [case for case in listing.cases if everything and case.verdict is Verdict.BATCH]
    left = [case for case in listing.cases if not is_replayable(case) and case not in batches]
    left_over = sum(map(is_left_over, left))
    coming = () if filters.image is not None else _given_up(stack, filters, listing, limit=LIMIT_OF_ROWS).coming
    out, words = display.output(), words_of(filters, stack)
    again = _replay_again(words, everything=everything, rate=rate)
    if not cases and not left_over and not batches:
        if filters.image is not None:
            _tell_row(stack, filters.image, again)
            return [filters.image]
        display.line(out, f"Nothing to replay. {pages.situation(listing, filtered=bool(words.filters))}", style="green")
        pages.print_remarks(out, listing)
        pages.print_coming(out, coming)
        if any(case.verdict is Verdict.BATCH for case in listing.cases):
            display.advise(out, [("Batches, fixed:", pages.wake_again(stack.options))])
        return []
    display.line(
        out,
        f"Would replay {display.of(len(cases), 'image')} of {display.of(listing.dead_letters, 'dead letter')} in "
        f"{', '.join(listing.depths)}. Nothing was changed.",
        style="bold",
    )
    pages.print_remarks(out, listing)
    pages.print_coming(out, coming)
    if batches:
        display.line(out, f"{display.of(len(batches), 'batch', 'batches')} of scheduled images would wake again.")
    if left:
        display.line(out, f"{pages.verdicts(left)}: these {'are moved too, without effect' if everything else 'stay'}.")
    if left_over and not everything:
        display.line(
            out, f"{display.of(left_over, 'run')} left over from an interrupted replay: their dead letters are removed."
        )
    if cases:
        display.line(out)
        pages.table(out, cases, stack.clock())
    display.line(out)
    display.line(out, f"Do it:  {again}")
    return [case.image.image_id for case in cases if case.image is not None]


def _tell_row(stack: Stack, image_id: str, again: str) -> None:
    with stack.explained():
        reason = why_not_replayable(stack.images.get(image_id))
    if reason is not None:
        raise ApiError(f"{image_id} cannot be replayed. {reason}")
    out = display.output()
    display.line(
        out, f"Would replay {image_id} by its row: its dead letter is gone. Nothing was changed.", style="bold"
    )
    display.line(out)
    display.line(out, f"Do it:  {again}")


def _replay_again(words: Words, *, everything: bool, rate: int) -> str:
    more = ["--all"] * everything + [f"--rate {rate}"] * (rate != STANDARD_RATE)
    return words.command("replay", *more, "--yes")


def replay(stack: Stack, filters: DeadLetterFilters, *, rate: int) -> None:
    """`dlq replay --yes`."""
    selection = selection_of(filters)
    with Job(stack, filters.lane, "replaying") as job:
        pace = RateLimiter(per_second=rate, clock=stack.clock, pause=job.pause)
        job.run(
            lambda queue: replay_dead_letters(
                job.ports, queue, selection, pace=pace, stop=lambda: job.interrupted, counts=job.counts
            )
        )
        done = job.counts.counts
        if filters.image is not None and not done["replayed"] and not done["finished"] and not job.interrupted:
            try:
                with stack.explained():
                    replay_image(job.ports, filters.image)
            except NotReplayable as error:
                raise ApiError(f"{filters.image} cannot be replayed. {error}") from error
            job.counts.add("replayed")
    out, words = display.output(), words_of(filters, stack)
    display.line(out, f"Replayed {display.of(done['replayed'], 'image')}. {job.before_and_after()}", style="bold")
    if done["finished"]:
        display.line(out, f"{display.of(done['finished'], 'run')} that an earlier replay had begun: finished.")
    job.tell_rest(out, {"replayed", "finished"})
    if filters.image is None:
        listing = DeadLetterListing(cases=(), depths={}, dead_letters=0, incomplete=())
        pages.print_coming(out, _given_up(stack, filters, listing, limit=LIMIT_OF_ROWS).coming)
    if done["settled"]:
        display.line(out, f"To clean up:  {words.command('drop')}")
    if done["replayed"]:
        display.line(
            out,
            f"Is it over?   ./darkroom dlq ls{stack.options}    (what fails again is back within ten minutes)",
        )
    job.end(_replay_again(words, everything=False, rate=rate))


def replay_all(stack: Stack, filters: DeadLetterFilters, *, rate: int) -> None:
    """`dlq replay --all --yes`."""
    redrives: list[Redrive] = []

    def move_queue(queue: str) -> bool:
        if job.ports.dead_letters.depth(queue) == 0:
            return True
        try:
            redrive = replay_queue(
                job.ports,
                queue,
                per_second=rate,
                stop=lambda: job.interrupted,
                counts=job.counts,
                on_redrive=job.show_redrive,
            )
        except NotReplayable as error:
            raise ApiError(str(error)) from error
        if redrive is not None:
            redrives.append(redrive)
        return True

    with Job(stack, filters.lane, "opening rows") as job:
        job.run(move_queue)
    out = display.output()
    display.line(
        out,
        f"Replayed {display.of(job.counts.counts['replayed'], 'image')}; SQS moved "
        f"{display.of(sum(redrive.moved for redrive in redrives), 'dead letter')} back. {job.before_and_after()}",
        style="bold",
    )
    if job.interrupted and job.counts.counts["replayed"]:
        stopped = (
            "The move was stopped. " if any(redrive.status is RedriveStatus.CANCELLED for redrive in redrives) else ""
        )
        display.line(out, f"{stopped}Images whose rows were opened still start by themselves.")
    display.line(out, f"Is it over?  ./darkroom dlq ls{stack.options}")
    job.end(_replay_again(words_of(filters, stack), everything=True, rate=rate))


def tell_drop(stack: Stack, filters: DeadLetterFilters, *, force: bool, limit: int) -> Sequence[str]:
    """`dlq drop` without --yes; returns the ids of the messages that it would drop."""
    out, words = display.output(), words_of(filters, stack)
    listing = _listed(stack, filters.lane, selection_of(filters), limit=limit)
    cases = [case for case in listing.cases if is_droppable(case, force=force)]
    left = [case for case in listing.cases if not is_droppable(case, force=force)]
    if cases:
        dead_letters = sum(len(case.dead_letters) for case in cases)
        display.line(
            out,
            f"Would drop {display.of(dead_letters, 'dead letter')} of {listing.dead_letters:,} in "
            f"{', '.join(listing.depths)}. Nothing was changed.",
            style="bold",
        )
    else:
        display.line(out, f"Nothing to drop. {pages.situation(listing, filtered=bool(words.filters))}", style="green")
    pages.print_remarks(out, listing)
    if left:
        display.line(out, f"{pages.verdicts(left)}: these stay. --force drops them too.")
    if cases:
        display.line(out)
        pages.table(out, cases, stack.clock())
        display.line(out)
        display.line(out, f"Do it:  {_drop_again(words, force=force)}")
    return [dead_letter.message_id for case in cases for dead_letter in case.dead_letters]


def _drop_again(words: Words, *, force: bool) -> str:
    return words.command("drop", *["--force"] * force, "--yes")


def drop(stack: Stack, filters: DeadLetterFilters, *, force: bool) -> None:
    """`dlq drop --yes`."""
    selection = selection_of(filters)
    with Job(stack, filters.lane, "dropping") as job:
        ports = DropDeadLettersPorts(
            dead_letters=stack.dead_letters, images=stack.images, clock=stack.clock, audit=stack.audit
        )
        job.run(
            lambda queue: drop_dead_letters(
                ports, queue, selection, force=force, stop=lambda: job.interrupted, counts=job.counts
            )
        )
    out = display.output()
    dropped = display.of(job.counts.counts["dropped"], "case")
    display.line(out, f"Dropped {dropped}. {job.before_and_after()}", style="bold")
    job.tell_rest(out, {"dropped"})
    job.end(_drop_again(words_of(filters, stack), force=force))


def tell_archive(stack: Stack, filters: DeadLetterFilters, *, limit: int) -> None:
    """`dlq archive` without --yes."""
    out = display.output()
    listing = _listed(stack, filters.lane, EVERYTHING, limit=limit)
    older_than_seconds = seconds_of(filters.older_than) or 0
    dead_letters = [dead_letter for case in listing.cases for dead_letter in case.dead_letters]
    old = sum(stack.clock() - dead_letter.sent_at > older_than_seconds * 1000 for dead_letter in dead_letters)
    display.line(
        out,
        f"Would archive {display.of(old, 'dead letter')} of {listing.dead_letters:,}: older than {filters.older_than}. "
        "Nothing was copied.",
        style="bold",
    )
    pages.print_remarks(out, listing)
    if old:
        display.line(out, f"Do it:  {words_of(filters, stack).command('archive', '--yes')}")


def archive(stack: Stack, filters: DeadLetterFilters) -> None:
    """`dlq archive --yes`."""
    out = display.output()
    done = 0

    def count(outcome: str) -> None:
        nonlocal done
        done += 1
        report.show("archiving", completed=done, total=None, detail=f"{done:,} dead letters")

    with Interrupts() as interrupts, stack.explained(), display.ProgressReport(display.errors()) as report:
        archiving = archive_dead_letters(
            ArchiveDeadLettersPorts(
                dead_letters=stack.dead_letters, images=stack.images, archive=stack.archive, clock=stack.clock
            ),
            out_of_time=lambda: interrupts.requested,
            older_than_seconds=seconds_of(filters.older_than) or 0,
            queues=stack.chosen(filters.lane),
            on_dead_letter=count,
        )
    counts = archiving.outcomes
    display.line(
        out,
        f"Archived {display.of(counts['archived'], 'dead letter')} to s3://{stack.archive_bucket}/; "
        f"{counts['kept_before']:,} were there before, {counts['too_young']:,} are younger than {filters.older_than}.",
        style="bold",
    )
    if archiving.incomplete:
        lanes = ", ".join(archiving.incomplete)
        display.line(out, f"There are more dead letters in {lanes}: run the same command again.", style="yellow")
    if interrupts.requested:
        raise typer.Exit(INTERRUPTED)
    if archiving.problems:
        said = "; ".join(f"{queue}: {problem}" for queue, problem in archiving.problems.items())
        raise ApiError(f"Not all could be archived ({said}). Run the same command again: nothing is copied twice.")


def _listed(stack: Stack, lane: str | None, selection: DeadLetterSelection, *, limit: int) -> DeadLetterListing:
    with stack.explained(), display.ProgressReport(display.errors()) as report:
        return list_dead_letters(
            CasePorts(dead_letters=stack.dead_letters, images=stack.images, clock=stack.clock),
            stack.chosen(lane),
            selection,
            limit=limit,
            at_once=at_once,
            on_case=lambda done, total: report.show(
                "looking up", completed=done, total=total, detail=f"{done:,} of {total:,} images"
            ),
        )
