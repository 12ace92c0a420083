"""Shows webhooks and their deliveries to people: how they fare, since when, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from darkroom_cli.terminal.display import advise, line, printable, table

if TYPE_CHECKING:
    from darkroom.http.webhooks.webhooks import AttemptDocument, DeliveryDocument, WebhookDocument

_SHOWN_CHARACTERS = 200

_STYLES = {"enabled": "green", "paused": "yellow", "failing": "yellow", "resting": "yellow", "disabled": "red"}

_DISABLED_BY = {
    "client": "by you",
    "gone": "it answered 410 (Gone)",
    "failing": "everything failed for five days",
}


def show_list(out: Console, webhooks: Sequence[WebhookDocument], *, options: str) -> None:
    """Shows a line for each webhook."""
    if not webhooks:
        line(out, f"No webhooks yet. The first one:  ./darkroom webhooks add URL{options}")
        return
    rows = []
    for webhook in webhooks:
        since = webhook.get("paused_at") or webhook["failing_since"] if webhook["enabled"] else webhook["disabled_at"]
        rows.append((webhook["id"], _state(webhook), since or "", " ".join(webhook["events"]), webhook["url"]))
    table(out, ("webhook", "state", "since", "events", "url"), rows, right=frozenset())


def show(out: Console, webhook: WebhookDocument, *, options: str) -> None:
    """Shows one webhook: how it fares, why and since when, and what to do next."""
    state = _state(webhook)
    out.print(Text.assemble((webhook["id"], "bold"), "  ", (state, _STYLES[state])), soft_wrap=True)
    for name, value in _facts(webhook):
        line(out, f"  {name:<12} {printable(value)}")
    line(out)
    advise(out, _advice(webhook, options))


def _state(webhook: WebhookDocument) -> str:
    if not webhook["enabled"]:
        return "disabled"
    if webhook.get("paused_at") is not None:  # a stack of an earlier version has no such key
        return "paused"
    if webhook["rests_until"] is not None:
        return "resting"
    return "enabled" if webhook["failing_since"] is None else "failing"


def _facts(webhook: WebhookDocument) -> list[tuple[str, str]]:
    facts = [("url", webhook["url"]), ("events", ", ".join(webhook["events"])), ("created", webhook["created_at"])]
    if webhook["description"] is not None:
        facts.insert(2, ("description", webhook["description"]))
    if webhook["headers"]:
        of_each = (
            (header["name"], "(secret)" if header["secret"] else header["value"]) for header in webhook["headers"]
        )
        facts.append(("headers", ", ".join(f"{name}: {value}" for name, value in of_each)))
    if not webhook["enabled"]:
        why = webhook["disabled_by"] or ""
        facts.append(("disabled", f"since {webhook['disabled_at']}: {_DISABLED_BY.get(why, why)}"))
    if (paused_at := webhook.get("paused_at")) is not None:
        facts.append(("paused", f"since {paused_at}, by whoever operates it: its events wait, for 30 days"))
    if webhook["failing_since"] is not None:
        facts.append(("failing", f"since {webhook['failing_since']}: every attempt has failed"))
    if webhook["rests_until"] is not None:
        facts.append(
            (
                "resting",
                f"until {webhook['rests_until']}: then one delivery tries it or its host, the others wait for it",
            )
        )
    if webhook["recovering_since"] is not None:
        facts.append(("recovering", f"failed deliveries of events since {webhook['recovering_since']}"))
    facts += [
        (name, at)
        for name, at in (("last success", webhook["last_success_at"]), ("last failure", webhook["last_failure_at"]))
        if at is not None
    ]
    if webhook["earlier_secrets_until"] is not None:
        facts.append(("secrets", f"those that were replaced sign too, until {webhook['earlier_secrets_until']}"))
    return facts


def _advice(webhook: WebhookDocument, options: str) -> list[tuple[str, str]]:
    def typed(command: str, more: str = "") -> str:
        return f"./darkroom webhooks {command} {webhook['id']}{more}{options}"

    match _state(webhook):
        case "disabled":
            return [
                ("Send what waits:", typed("enable")),
                ("And what has failed:", typed("recover", " --since 2d")),
                ("What happened:", typed("deliveries")),
            ]
        case "paused":
            return [("What was sent before:", typed("deliveries"))]
        case "enabled":
            return [("Try it:", typed("ping")), ("What was sent:", typed("deliveries"))]
        case _:
            return [("What happened:", typed("deliveries")), ("Once it is mended:", typed("ping"))]


def show_delivery(out: Console, delivery: DeliveryDocument) -> None:
    """Shows a delivery: its event, what became of it, and what was answered in each attempt."""
    state, style = printable(delivery["status"]), {"delivered": "green", "failed": "red"}.get(delivery["status"])
    if delivery["next_attempt_at"] is not None:
        state += f", next attempt not before {printable(delivery['next_attempt_at'])}"
    elif delivery["ended_at"] is not None:
        state += f" at {printable(delivery['ended_at'])}"
    named = f"{delivery['created_at']}  {delivery['type']:<15}  {delivery['event_id']}"
    out.print(Text.assemble(printable(named), "  ", (state, style or "")), soft_wrap=True)
    for attempt in delivery["attempts"]:
        line(out, f"  {attempt['number']:>2}  {printable(attempt['started_at'])}  {_what_came_of(attempt)}")


def _what_came_of(attempt: AttemptDocument) -> str:
    if attempt["milliseconds"] is None:
        return "nothing was heard of it yet"
    if attempt["status"] is None:
        return f"no response after {attempt['milliseconds']:,} ms: {printable(attempt['error'] or 'nobody knows why')}"
    return answered(attempt["status"], attempt["milliseconds"], attempt["response"] or "")


def answered(status: int, milliseconds: int, body: str = "") -> str:
    """A response in a line, with the first line of its body."""
    head, said = f"{status} after {milliseconds:,} ms", body.strip().partition("\n")[0]
    return f"{head}: {printable(said)[:_SHOWN_CHARACTERS].rstrip('.')}" if said else head
