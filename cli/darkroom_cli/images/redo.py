"""The work of `darkroom redo`, once the command line is parsed."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from darkroom_cli.operator.operations.images.redo_image import NotRedoable, RedoImagePorts, redo_image
from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, Interrupts
from darkroom_client.client import ApiError


def redo(stack: Stack, image_ids: Sequence[str], *, rate: int) -> None:
    """Begins the next run of each image, and prints a line for each."""
    redone = refused = 0
    with Interrupts() as interrupts:
        pace = RateLimiter(per_second=rate, clock=stack.clock, pause=interrupts.wait)
        try:
            with stack.explained():
                ports = RedoImagePorts(images=stack.images, lanes=stack.lanes, clock=stack.clock, audit=stack.audit)
                for image_id in image_ids:
                    pace.wait()
                    if interrupts.requested:
                        break
                    try:
                        image = redo_image(ports, image_id)
                    except NotRedoable as error:
                        refused += 1
                        display.complain(f"{image_id}  not redone: {error}")
                        continue
                    pace.spend()
                    redone += 1
                    display.line(display.output(), f"{image_id}  will be developed again, in run {image.run}")
        except ApiError as error:
            so_far = f" {redone:,} of {len(image_ids):,} images were begun before that." if redone else ""
            raise ApiError(f"{error}{so_far}") from error
    left = len(image_ids) - redone - refused
    if left:
        display.line(
            display.errors(),
            f"Interrupted, with {display.of(left, 'image')} left: run the same command again. "
            "Images that have begun are left alone.",
            style="yellow",
        )
        raise typer.Exit(INTERRUPTED)
    if refused:
        if len(image_ids) > 1:
            display.complain(f"{refused:,} of {len(image_ids):,} images were not redone.")
        raise typer.Exit(1)
