"""Reschedules and deletes single images through the API, and prints a line for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import typer

from darkroom_cli.stack.target import ApiTarget
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupted, Interrupts
from darkroom_client import Darkroom
from darkroom_client.client import ApiError, Refused, Unauthorized, Unavailable, Unreachable

_ABOUT_THE_WORDS = frozenset({"invalid_process_at", "invalid_delay", "invalid_schedule", "conflicting_parameters"})
"""Refusals that every other image would get too."""


def reschedule(target: ApiTarget, image_ids: Sequence[str], when: Mapping[str, str]) -> None:
    """`delay reschedule ID…`."""

    def reschedule_one(api: Darkroom, image_id: str) -> str:
        document = api.reschedule(image_id, when)
        if document["status"] == "scheduled":
            return f"waits until {document['process_at']}"
        return f"no longer waits: it is {display.printable(document['status'])}"

    _do(target, image_ids, reschedule_one, done="rescheduled")


def cancel(target: ApiTarget, image_ids: Sequence[str]) -> None:
    """`delay cancel ID…`."""

    def cancel_one(api: Darkroom, image_id: str) -> str:
        # The API would delete a done image too, but nobody who cancels a delay wants that.
        status = api.status(image_id).document["status"]
        if status != "scheduled":  # guard: day-cancel-id-scheduled-only
            raise ApiError(f"This command deletes only scheduled images. This one is {status}.")
        api.delete(image_id)
        return "deleted"

    _do(target, image_ids, cancel_one, done="deleted")


def remove(target: ApiTarget, image_ids: Sequence[str]) -> None:
    """`rm ID…`."""

    def remove_one(api: Darkroom, image_id: str) -> str:
        api.delete(image_id)
        return "deleted"

    _do(target, image_ids, remove_one, done="deleted")


def _do(target: ApiTarget, image_ids: Sequence[str], act: Callable[[Darkroom, str], str], *, done: str) -> None:
    reported = failed = 0
    ended_by: ApiError | None = None
    with Interrupts() as interrupts, target.open(pause=interrupts.pause) as api:
        for image_id in image_ids:
            if interrupts.requested:
                break
            try:
                said = act(api, image_id)
            except Interrupted:
                display.complain(f"{image_id}  interrupted between two attempts; it may have been {done}.")
                break
            except ApiError as error:
                if _ends_all(error):
                    ended_by = error
                    break
                failed += 1
                display.complain(f"{image_id}  not {done}: {error}")
            else:
                reported += 1
                display.line(display.output(), f"{image_id}  {said}")
    left = len(image_ids) - reported - failed
    if interrupts.requested and left:
        display.line(
            display.errors(),
            f"Interrupted, with {display.of(left, 'image')} left: run the same command again.",
            style="yellow",
        )
        raise typer.Exit(INTERRUPTED)
    if ended_by is not None:
        so_far = f" {reported:,} of {len(image_ids):,} images were {done} before that." if reported else ""
        raise ApiError(f"{ended_by}{so_far}") from ended_by
    if failed:
        if len(image_ids) > 1:
            display.complain(f"{failed:,} of {len(image_ids):,} images were not {done}.")
        raise typer.Exit(1)


def _ends_all(error: ApiError) -> bool:
    if isinstance(error, Refused):
        return isinstance(error, Unauthorized) or error.code in _ABOUT_THE_WORDS
    return isinstance(error, Unreachable | Unavailable)
