"""The work of `darkroom webhooks listen`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import ExitStack, suppress

import typer
from rich.console import Console

from darkroom.domain.events.event import ReceivedEvent
from darkroom.domain.webhooks.webhook_signature import secret_text
from darkroom_cli.events.work import following, sentence
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, LEAVING, Interrupts
from darkroom_cli.webhooks.forward import SECRET_BYTES, Forwarder, NotAnswered


def listen(stack: Stack, *, forward_to: str | None, tenant: str | None, types: Sequence[str], as_json: bool) -> None:
    """`webhooks listen`."""
    out = display.output()
    notes = display.errors() if as_json else out  # a program that reads events reads nothing else
    with ExitStack() as held:
        interrupts = held.enter_context(Interrupts(*LEAVING))
        held.enter_context(stack.explained())
        forwarder = None
        if forward_to is not None:
            secret = secrets.token_bytes(SECRET_BYTES)
            display.line(notes, f"The secret of this session: {secret_text(secret)}", style="bold")
            forwarder = held.enter_context(Forwarder(forward_to, secret))
        events = held.enter_context(following(stack, tenant=tenant, types=types, stop=lambda: interrupts.requested))
        goal = "" if forward_to is None else f", sending to {forward_to}"
        display.line(notes, display.printable(f"Listening to {stack.name}{goal}. Ctrl-C ends it."))
        for event, body in events:
            display.line(out, display.printable(body if as_json else sentence(event)))
            if forwarder is not None:
                with suppress(KeyboardInterrupt), interrupts.raised_at_once():
                    _forward(forwarder, event, body, notes)
            if interrupts.requested:
                break
    raise typer.Exit(INTERRUPTED)


def _forward(forwarder: Forwarder, event: ReceivedEvent, body: str, notes: Console) -> None:
    """Sends one event, and shows what came back."""
    try:
        answer = forwarder.send(event, body)
    except NotAnswered as problem:
        display.complain(str(problem))
    else:
        display.line(notes, f"  {answer}", style=None if answer.is_success else "red")
