"""`darkroom trace`: finds the life of an image and prints it."""

from __future__ import annotations

from darkroom.domain.kernel.errors import UnknownImage
from darkroom_cli.operator.operations.observation.trace_image import TraceImagePorts, trace_image
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.trace import pages
from darkroom_client.client import ApiError


def trace(stack: Stack, image_id: str, *, as_json: bool) -> None:
    """`trace ID`. Raises ApiError if there is no such image."""
    ports = TraceImagePorts(
        images=stack.images,
        endpoints=stack.endpoints,
        deliveries=stack.deliveries,
        log_lines=stack.log_lines,
        clock=stack.clock,
    )
    with display.ProgressReport(display.errors()) as report:

        def show(source: str, lines: int) -> None:
            report.show("searching the logs", completed=lines, total=None, detail=f"{source}, {lines:,} lines so far")

        try:
            with stack.explained():
                traced = trace_image(ports, image_id, on_read=show)
        except UnknownImage as error:
            raise ApiError(
                f"There is no image {image_id} in {stack.name}. Rows of deleted images are kept for 60 days. "
                f"The newest images:  ./darkroom ls{stack.options}"
            ) from error
    if as_json:
        display.print_json(pages.document(traced))
    else:
        pages.show(display.output(), traced, now=stack.clock())
