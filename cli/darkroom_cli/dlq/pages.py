"""Shows dead letters on the screen and as JSON: the situation first, then the cases, then what to type next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from itertools import groupby
from typing import Any

from rich.console import Console

from darkroom.domain.dead_letters.dead_letter import ARCHIVED_FROM_SECONDS, Verdict
from darkroom.domain.images.image import Image
from darkroom.domain.kernel.fingerprint import WORKER, StackFrame, own_frames
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom.domain.kernel.lanes import retries_of
from darkroom.operations.dead_letters.cases import Case
from darkroom_cli.operator.domain.dead_letters import RETENTION_SECONDS, why_settled
from darkroom_cli.operator.operations.dead_letters.list_dead_letters import DeadLetterListing
from darkroom_cli.operator.operations.dead_letters.list_given_up import GivenUp
from darkroom_cli.operator.operations.images.list_retrying import Defect, Retry, Retrying
from darkroom_cli.terminal import display

ROWS_SHOWN = 100
_BODY_CHARACTERS = 2000
_BEFORE = timedelta(minutes=1)

_STANDS = {
    Verdict.FAILED: "to replay",
    Verdict.WORKING: "still being worked on",
    Verdict.SETTLED: "settled",
    Verdict.UNKNOWN: "of no known image",
    Verdict.BATCH: "of batches to wake again",
    Verdict.REJECTED: "rejected",
    Verdict.UNREADABLE: "unreadable",
    Verdict.UNREADABLE_ROW: "of unreadable rows",
}

_MEANINGS = {
    Verdict.FAILED: "its image was given up, and can be replayed",
    Verdict.WORKING: "its image is unfinished, and the sweeper takes care of it",
    Verdict.UNKNOWN: "there is no such image (any more)",
    Verdict.BATCH: "a batch of scheduled images could not be released; the sweeper sends each when it is overdue",
    Verdict.REJECTED: "its signature does not verify, so nothing was done for it; docs/runbook.md#rejected-messages",
    Verdict.UNREADABLE: "it is not a message of this version of Darkroom",
    Verdict.UNREADABLE_ROW: "a newer version wrote its image's row: deploy that version again",
}


COMING = "the sweeper places it within a minute"

_NOT_TAKEN = {
    "replay": frozenset({"--verdict"}),
    "archive": frozenset({"--cause", "--fingerprint", "--tenant", "--image", "--verdict", "--newer-than"}),
}
"""Filters that a command does not accept."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What was typed, for the lines that say what to type next: the filters, and how the stack is reached."""

    filters: Mapping[str, str]
    target: str

    def command(self, verb: str, *more: str) -> str:
        """A command on the same dead letters, with the filters that it accepts."""
        unknown = _NOT_TAKEN.get(verb, frozenset())
        given = [
            word for name, value in self.filters.items() if name not in unknown for word in (name, shlex.quote(value))
        ]
        return " ".join(("./darkroom dlq", verb, *given, *more)) + self.target


def verdicts(cases: Sequence[Case]) -> str:
    """How many cases have which verdict: "3 to replay, 1 settled"."""
    counts = Counter(case.verdict for case in cases)
    return ", ".join(f"{counts[verdict]:,} {text}" for verdict, text in _STANDS.items() if counts[verdict])


def situation(listing: DeadLetterListing, *, filtered: bool) -> str:
    """One sentence that sums up the listing."""
    queues = ", ".join(listing.depths)
    if not listing.dead_letters and any(listing.depths.values()):  # guard: dlq-list-hidden-not-none
        return f"No dead letter in {queues} can be seen at this moment."
    if not listing.dead_letters:
        return f"No dead letters in {queues}."
    if not listing.cases:
        return f"None of {display.of(listing.dead_letters, 'dead letter')} in {queues} matches."
    read = display.of(listing.dead_letters, "dead letter")
    if filtered:
        return f"{display.of(len(listing.cases), 'case')} of {read} in {queues}: {verdicts(listing.cases)}."
    about = "" if listing.dead_letters == len(listing.cases) else f" of {display.of(len(listing.cases), 'run')}"
    return f"{read}{about} in {queues}: {verdicts(listing.cases)}."


def print_remarks(out: Console, listing: DeadLetterListing) -> None:
    """Prints what the reader should know about how complete the listing is."""
    total = sum(listing.depths.values())
    if listing.incomplete:
        text = f"That is not all: of about {total:,} dead letters {listing.dead_letters:,} were read. See --limit."
    elif total > listing.dead_letters:
        text = (
            f"About {total - listing.dead_letters:,} more are hidden by another reader, and show again within a minute."
        )
    else:
        return
    display.line(out, text, style="yellow")


def table(out: Console, cases: Sequence[Case], now: Milliseconds) -> None:
    """Prints the cases, a line each."""
    display.table(
        out,
        ("image", "lane", "cause", "verdict", "attempts", "age", "tenant", "letters"),
        [
            (
                case.dead_letters[0].message_id if case.message is None else case.message.image_id,
                case.queue,
                _shortened(case.cause or "-"),
                case.verdict.value,
                str(len(case.explanation.get("attempts") or ())),
                display.age((now - case.sent_at) / 1000),
                _shortened("-" if case.message is None else case.message.tenant_id),
                str(len(case.dead_letters)),
            )
            for case in cases[:ROWS_SHOWN]
        ],
        right=frozenset({"attempts", "age", "letters"}),
    )
    if len(cases) > ROWS_SHOWN:
        display.line(out, f"  … and {len(cases) - ROWS_SHOWN:,} more; --json has them all.")


def _shortened(text: str) -> str:
    return text if len(text) <= 32 else text[:31] + "…"


def listing_page(out: Console, listing: DeadLetterListing, now: Milliseconds, words: Words, *, is_quiet: bool) -> None:
    """The part of `dlq ls` about dead letters; it `is_quiet` if nothing else was given up either."""
    style = "green" if is_quiet and not listing.cases else "bold"
    display.line(out, situation(listing, filtered=bool(words.filters)), style=style)
    print_remarks(out, listing)
    if not listing.cases:
        return
    display.line(out)
    table(out, listing.cases, now)
    display.line(out)
    verdict = {case.verdict for case in listing.cases}
    first = min(listing.cases, key=lambda case: case.verdict is not Verdict.FAILED)
    name = first.dead_letters[0].message_id if first.message is None else first.message.image_id
    advice = [("Why it failed:", f"./darkroom dlq show {name}{words.target}")]
    if Verdict.FAILED in verdict:
        advice.append(("After the fix:", f"{words.command('replay')}    (says what it would do; --yes does it)"))
    if Verdict.BATCH in verdict:
        advice.append(("Batches, fixed:", wake_again(words.target)))
    if Verdict.SETTLED in verdict:
        advice.append(("To clean up:", words.command("drop")))
    for stray in (Verdict.UNKNOWN, Verdict.UNREADABLE, Verdict.REJECTED):
        if stray in verdict:
            advice.append((f"If {stray}:", f"./darkroom dlq drop --verdict {stray} --force{words.target}"))
    if Verdict.UNREADABLE_ROW in verdict:
        advice.append(("Unreadable rows:", f"./darkroom doctor{words.target}"))
    oldest_seconds = (now - min(case.sent_at for case in listing.cases)) / 1000
    if oldest_seconds > ARCHIVED_FROM_SECONDS:
        left = display.age(max(0.0, RETENTION_SECONDS - oldest_seconds))
        advice.append(("Expiring soon:", f"SQS deletes the oldest in {left}; keep a copy: {words.command('archive')}"))
    display.advise(out, advice)


def given_up_page(out: Console, given_up: GivenUp, now: Milliseconds, *, target: str) -> None:
    """The part of `dlq ls` about what was given up and has no dead letter: not yet, or never."""
    if given_up.coming:
        first = given_up.coming[0].explanation["image_id"]
        display.line(out)
        sentence = f"{display.of(len(given_up.coming), 'image')} given up whose dead letter is still coming"
        display.line(out, f"{sentence}: {COMING}.", style="bold red")
        display.line(out)
        table(out, given_up.coming, now)
        display.line(out)
        display.advise(out, [("Why it failed:", f"./darkroom dlq show {first}{target}")])
    if given_up.unfetched:
        ids = [image.image_id for image in given_up.unfetched]
        display.line(out)
        sentence = f"{display.of(len(ids), 'image')} not fetched because of a fault of ours, and without a dead letter"
        display.line(out, f"{sentence}: the client must send the URL again.", style="bold red")
        for image_id in ids[:ROWS_SHOWN]:
            display.line(out, f"  {image_id}")
        display.line(out)
        display.advise(out, [("What happened:", f"./darkroom trace {ids[0]}{target}")])
    if not given_up.is_all:
        display.line(out, "Of the rows that the sweeper looks at soon not all were read. See --limit.", style="yellow")


def print_coming(out: Console, coming: Sequence[Case]) -> None:
    """What a replay cannot find yet."""
    if coming:
        sentence = f"{display.of(len(coming), 'more image')} given up whose dead letter is still coming"
        display.line(out, f"{sentence}: {COMING}; then repeat the command.", style="yellow")


def retrying_page(out: Console, retrying: Retrying, now: Milliseconds, *, target: str) -> None:
    """The part of `dlq ls` about images that failed and are not given up yet."""
    if not retrying.is_all:
        text = (
            f"Of the unfinished images only the {retrying.looked_at:,} that have waited longest were read. See --limit."
        )
        display.line(out, text, style="yellow")
    if not retrying.defects:
        return
    images = sum(len(defect.images) for defect in retrying.defects)
    alike = display.of(len(retrying.defects), "defect")
    display.line(out)
    display.line(out, f"Still retrying: {display.of(images, 'image')}, {alike}.", style="bold yellow")
    for defect in retrying.defects:
        first = defect.images[0]
        age = display.age((now - (first.waiting_since or first.created_at)) / 1000)
        display.line(out)
        display.line(out, f"  {display.printable(defect.fingerprint)}", style="red")
        message = display.printable(" ".join(defect.cause.message.split()))
        display.line(out, f"    {defect.cause.error_type}: {message}")
        if defect.frame is not None:
            display.line(out, f"    at {_place(defect.frame)}")
            if defect.frame.source:
                display.line(out, f"       {display.printable(defect.frame.source)}", style="dim")
        waits = f"up to {display.of(defect.attempts, 'attempt')}, the first has waited {age}"
        display.line(out, f"    {display.of(len(defect.images), 'image')}, {waits}: {first.image_id}")
    display.line(out)
    display.advise(out, [("All of them:", f"./darkroom ls --status pending --status processing{target}")])


def defect_document(defect: Defect) -> dict[str, Any]:
    """Images that fail alike, as JSON."""
    return {
        "fingerprint": defect.fingerprint,
        "error_type": defect.cause.error_type,
        "message": defect.cause.message,
        "frame": None if defect.frame is None else str(defect.frame),
        "stack": defect.cause.stack,
        "attempts": defect.attempts,
        "images": [image.image_id for image in defect.images],
    }


def meaning(case: Case) -> str:
    """The verdict in words."""
    if case.verdict is Verdict.SETTLED and case.message is not None and case.image is not None:
        return f"{why_settled(case.message, case.image)}; the dead letter can be dropped"
    return _MEANINGS.get(case.verdict, case.verdict.value)


def case_page(out: Console, case: Case, now: Milliseconds, *, log_query: str | None, target: str) -> None:
    """`dlq show`: everything about one case."""
    display.line(
        out, f"{_name_of(case)}: {display.printable(case.cause or 'cause unknown')}; {meaning(case)}.", style="bold"
    )
    for label, value in _facts(case, now):
        display.line(out, f"  {label:<10} {display.printable(value)}")
    attempts(out, case.explanation)
    if case.problem is not None:
        display.line(out)
        display.line(out, display.printable(case.problem), style="red")
        display.line(out, display.printable_lines(case.dead_letters[0].body[:_BODY_CHARACTERS]))
    display.line(out)
    display.advise(out, [*([("The worker's log:", log_query)] if log_query else []), _what_next(case, target)])


def _name_of(case: Case) -> str:
    return case.dead_letters[0].message_id if case.message is None else case.message.image_id


def _what_next(case: Case, target: str) -> tuple[str, str]:
    """When to do something about the case, and the command for it."""
    name = _name_of(case)
    return {
        Verdict.FAILED: ("After the fix:", f"./darkroom dlq replay --image {name}{target}"),
        Verdict.SETTLED: ("To clean up:", f"./darkroom dlq drop --image {name}{target}"),
        Verdict.BATCH: ("After the fix:", wake_again(target)),
        Verdict.WORKING: ("Look again:", f"./darkroom dlq show {name}{target}"),
        Verdict.UNREADABLE_ROW: ("Other such rows:", f"./darkroom doctor{target}"),
    }.get(case.verdict, ("To remove it:", f"./darkroom dlq drop --verdict {case.verdict} --force{target}"))


def retry_page(out: Console, retry: Retry, now: Milliseconds, *, log_query: str | None, target: str) -> None:
    """`dlq show` of an image that is still retried."""
    image, explanation = retry.image, retry.explanation
    cause = display.printable(retry.cause)
    display.line(out, f"{image.image_id}: {cause}; {_goes_on(retry, now)}.", style="bold yellow")
    facts = [("lane", image.lane)]
    if retry.fingerprint is not None:
        facts.append(("defect", retry.fingerprint))
    facts.append(("tenant", image.tenant_id))
    facts.append(("run", f"{image.run}, {display.of(len(explanation['attempts']), 'attempt')} failed"))
    facts += [*_facts_of_row(image), ("first try", str(explanation["first_at"]))]
    for label, value in facts:
        display.line(out, f"  {label:<10} {display.printable(value)}")
    attempts(out, explanation)
    display.line(out)
    name = image.image_id
    advice = [
        ("Look again:", f"./darkroom dlq show {name}{target}"),
        ("Its whole life:", f"./darkroom trace {name}{target}"),
        ("Failing alike:", f"./darkroom dlq ls{target}"),
    ]
    display.advise(out, [*([("The worker's log:", log_query)] if log_query else []), *advice])


def _goes_on(retry: Retry, now: Milliseconds) -> str:
    """Which attempt follows, and when: "still retried, attempt 3 of 5 begins in 12 s (22:55:34 UTC)"."""
    attempts = retries_of(retry.image.lane).attempts
    if retry.number is None:
        return f"not given up yet, but all {attempts} attempts are over: the sweeper gives it up within a minute"
    name = f"still retried, attempt {retry.number} of {attempts}"
    if retry.is_in_work:
        since = "" if retry.begins_at is None else f" for {display.age((now - retry.begins_at) / 1000)}"
        return f"{name} is in work{since}"
    if retry.begins_at is None or retry.begins_at <= now:
        return f"{name} may begin at any moment"
    clock = (rfc3339(retry.begins_at) or "")[11:19]
    return f"{name} begins in {display.age((retry.begins_at - now) / 1000)} at the earliest ({clock} UTC)"


def retry_document(retry: Retry, now: Milliseconds, *, target: str) -> dict[str, Any]:
    """The same as JSON, in the shape of a case; `retry` says which attempt follows."""
    image = retry.image
    return {
        "queue": image.lane,
        "image_id": image.image_id,
        "run": image.run,
        "tenant_id": image.tenant_id,
        "verdict": "retrying",
        "meaning": _goes_on(retry, now),
        "command": f"./darkroom dlq show {image.image_id}{target}",
        "cause": retry.cause,
        "error_code": None,
        "fingerprint": retry.fingerprint,
        "sent_at": None,
        "age_seconds": None,
        "letters": [],
        "image": _row_document(image),
        "explanation": retry.explanation,
        "frames": _frames_of_attempts(retry.explanation),
        "problem": None,
        "body": None,
        "retry": {
            "attempt": retry.number,
            "in_work": retry.is_in_work,
            "began_at": rfc3339(retry.begins_at) if retry.is_in_work else None,
            "not_before": None if retry.is_in_work else rfc3339(retry.begins_at),
        },
    }


def wake_again(target: str) -> str:
    """The command for batches that were given up."""
    return f"./darkroom dlq replay --all --lane hold{target}    (sets them to wake again; --yes does it)"


def _facts(case: Case, now: Milliseconds) -> list[tuple[str, str]]:
    explanation, image, message = case.explanation, case.image, case.message
    facts = [("lane", case.queue)]
    if case.fingerprint is not None:
        facts.append(("defect", case.fingerprint))
    if message is not None:
        facts.append(("tenant", message.tenant_id))
        facts.append(("run", f"{message.run}, {display.of(len(explanation.get('attempts') or ()), 'attempt')}"))
    if image is not None:
        facts += _facts_of_row(image)
    facts += [
        (label, str(explanation[key]))
        for label, key in (("first try", "first_at"), ("given up", "last_at"))
        if explanation.get(key)
    ]
    if explanation.get("message"):
        facts.append(("error", f"{explanation.get('cause')}: {explanation['message']}"))
    if not case.dead_letters:
        facts.append(("letter", f"still coming: {COMING}"))
    for dead_letter in case.dead_letters:
        left = display.age(max(0.0, RETENTION_SECONDS - (now - dead_letter.sent_at) / 1000))
        how = "explained" if dead_letter.explanation is not None else "moved here by SQS"
        facts.append(
            (
                "letter",
                f"{dead_letter.message_id}, {how}, sent {rfc3339(dead_letter.sent_at)}; SQS deletes it in {left}",
            )
        )
    return facts


def _facts_of_row(image: Image) -> list[tuple[str, str]]:
    return [
        ("row now", f"{image.status}, run {image.run}, attempt {image.attempt}"),
        ("accepted", rfc3339(image.created_at) or ""),
        ("request", image.correlation_id),
    ]


def attempts(out: Console, explanation: Mapping[str, Any]) -> None:
    """Prints the attempts, those that failed alike together, each with its cause and the way through our own code, the
    guilty line first. JSON has the whole stacks."""
    for alike in _alike(explanation.get("attempts") or ()):
        first, last = alike[0], alike[-1]
        display.line(out)
        ended, request = last.get("ended_at"), last.get("request_id")
        how = f"ended {ended}" if ended else "never ended: its worker died"
        name = f"attempt {first.get('attempt')}"
        if len(alike) > 1:
            name = f"attempts {first.get('attempt')} to {last.get('attempt')}"
        head = f"{name}  {first.get('started_at')}, {how}; request {request}"
        display.line(out, display.printable(head), style="bold")
        if last.get("error_type"):
            display.line(out, f"  {display.printable(str(last['error_type']))}: {_inline(last)}", style="red")
        _print_stack(out, str(last.get("stack") or ""))
    if explanation.get("look"):
        display.line(out)
        display.line(out, display.printable(str(explanation["look"])))


def _alike(attempts: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Attempts in a row with the same exception, message and stack. Those that never ended stay alone."""
    numbered = enumerate(attempts)

    def failure(pair: tuple[int, Mapping[str, Any]]) -> Hashable:
        number, attempt = pair
        named = tuple(str(attempt.get(name)) for name in ("error_type", "message", "stack"))
        return named if attempt.get("error_type") else number

    for _, pairs in groupby(numbered, key=failure):
        yield [attempt for _, attempt in pairs]


def _print_stack(out: Console, stack: str) -> None:
    frames = own_frames(stack)
    for number, frame in enumerate(frames):
        display.line(out, f"  {'at' if number == 0 else 'called from'} {_place(frame)}")
        if frame.source:
            display.line(out, f"      {display.printable(frame.source)}", style="bold" if number == 0 else "dim")
    if not frames:
        for line in stack.splitlines():
            display.line(out, f"  {display.printable(line)}")


def _place(frame: StackFrame) -> str:
    """Where it is in a checkout: every attempt is one of the worker."""
    return display.printable(f"{frame.path(WORKER)}:{frame.line} in {frame.function}")


def _inline(attempt: Mapping[str, Any]) -> str:
    return display.printable(" ".join(str(attempt.get("message") or "").split()))


def log_query(explanation: Mapping[str, Any], *, target: str) -> str | None:
    """The command that shows what the worker logged in the last attempt."""
    tried = explanation.get("attempts") or ()
    if not tried:
        return None
    last = tried[-1]
    try:
        started = display.instant(str(last.get("started_at")))
    except ValueError:  # told by another version
        return None
    since = f"{started.astimezone(UTC) - _BEFORE:%Y-%m-%dT%H:%MZ}"
    return f"./darkroom logs transcode_image --since {since} --text {shlex.quote(str(last.get('request_id')))}{target}"


def document(case: Case, now: Milliseconds, *, target: str) -> dict[str, Any]:
    """A case as JSON, with the command that replays it or does what else is next."""
    message, image = case.message, case.image
    return {
        "queue": case.queue,
        "image_id": None if message is None else message.image_id,
        "run": None if message is None else message.run,
        "tenant_id": None if message is None else message.tenant_id,
        "verdict": case.verdict.value,
        "meaning": meaning(case),
        "command": _what_next(case, target)[1].partition("    ")[0],  # without the remark behind it
        "cause": case.cause,
        "error_code": case.error_code,
        "fingerprint": case.fingerprint,
        "sent_at": rfc3339(case.sent_at),
        "age_seconds": round((now - case.sent_at) / 1000),
        "letters": [
            {
                "message_id": dead_letter.message_id,
                "sent_at": rfc3339(dead_letter.sent_at),
                "explained": dead_letter.explanation is not None,
            }
            for dead_letter in case.dead_letters
        ],
        "image": None if image is None else _row_document(image),
        "explanation": case.explanation or None,
        "frames": _frames_of_attempts(case.explanation),
        "problem": case.problem,
        "body": None if message is not None else case.dead_letters[0].body,
    }


def _frames_of_attempts(explanation: Mapping[str, Any]) -> list[list[dict[str, str]]]:
    """For each attempt of the explanation the way through our own code, the guilty line first."""
    return [
        [{"place": _place(frame), "source": frame.source} for frame in own_frames(str(attempt.get("stack") or ""))]
        for attempt in explanation.get("attempts") or ()
    ]


def _row_document(image: Image) -> dict[str, Any]:
    return {"status": image.status.value, "run": image.run, "attempt": image.attempt}
