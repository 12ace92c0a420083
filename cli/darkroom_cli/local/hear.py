"""Hears of the photo that was just developed, as a developer's own program would."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from darkroom.domain.events.event import EventType, read_event
from darkroom.domain.webhooks.webhook_signature import secret_text
from darkroom_cli.events.work import following, sentence
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.webhooks.forward import SECRET_BYTES, Forwarder, NotAnswered
from darkroom_cli.webhooks.receiver import receiving

_TIMEOUT_SECONDS = 30.0


@contextmanager
def hearing(stack: Stack, out: Console) -> Iterator[Callable[[str], bool]]:
    """Listens while the block lasts, as `webhooks listen` does, for a program that receives webhooks.

    The block gets a function that waits for the `image.done` of an image and shows it as the program received it. If
    it does not come, it says so on `out` and returns False.
    """
    secret = secrets.token_bytes(SECRET_BYTES)
    until = math.inf
    with (
        receiving(secret_text(secret)) as receiver,
        Forwarder(receiver.url, secret) as forwarder,
        following(stack, tenant=None, types=[EventType.DONE], stop=lambda: time.monotonic() > until) as events,
    ):

        def show_event_of(image_id: str) -> bool:
            nonlocal until
            until = time.monotonic() + _TIMEOUT_SECONDS
            problem = f"no event within {_TIMEOUT_SECONDS:.0f} seconds."
            for event, body in events:
                if event.subject != image_id:
                    continue
                try:
                    answer = forwarder.send(event, body)
                except NotAnswered as error:
                    problem = str(error)
                    break
                if not answer.is_success:
                    problem = f"its receiver answered {answer}"
                    break
                display.line(out, "Received as a webhook, with a valid signature:")
                display.line(out, f"  {display.printable(sentence(read_event(receiver.believed[-1])))}")
                return True
            display.line(out, f"No webhook came: {problem}", style="red")
            return False

        yield show_event_of
