"""The work of the commands on webhooks, once the command line is parsed; `listen` has its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from darkroom.http.webhooks.webhooks import DeliveryDocument, NewWebhookDocument
from darkroom_cli.stack.target import ApiTarget
from darkroom_cli.terminal import display
from darkroom_cli.webhooks import pages
from darkroom_client.webhooks import WebhooksClient


def list_(target: ApiTarget, *, as_json: bool) -> None:
    """`webhooks ls`."""
    with target.open() as api:
        listed = WebhooksClient(api).all()
    if as_json:
        display.print_json(listed)
    else:
        pages.show_list(display.output(), listed["webhooks"], options=target.options)


def add(
    target: ApiTarget,
    url: str,
    *,
    events: Sequence[str] | None,
    description: str | None,
    headers: Sequence[Mapping[str, Any]],
    as_json: bool,
) -> None:
    """`webhooks add`: the secret, or the document with it, is all that goes to standard output."""
    with target.open() as api:
        webhook = WebhooksClient(api).create(url, events=events, description=description, headers=headers)
    display.line(display.errors(), display.printable(f"The webhook {webhook['id']} sends to {webhook['url']}."))
    _show_secret(webhook, as_json=as_json)
    display.line(display.errors(), f"Try it:  ./darkroom webhooks ping {webhook['id']}{target.options}")


def change(
    target: ApiTarget,
    webhook_id: str,
    changed: Mapping[str, Any],
    *,
    headers: Sequence[Mapping[str, Any]],
    removed: Sequence[str],
    as_json: bool,
) -> None:
    """`webhooks change`: headers that are not named stay."""
    with target.open() as api:
        webhooks = WebhooksClient(api)
        if headers or removed:
            named = {name.lower() for name in (*removed, *(header["name"] for header in headers))}
            existing = webhooks.get(webhook_id)["headers"]
            kept = [{"name": header["name"]} for header in existing if header["name"].lower() not in named]
            changed = {**changed, "headers": [*kept, *headers]}
        webhook = webhooks.change(webhook_id, changed)
    if as_json:
        display.print_json(webhook)
    else:
        pages.show(display.output(), webhook, options=target.options)


def rotate(target: ApiTarget, webhook_id: str, *, yes: bool, as_json: bool) -> None:
    """`webhooks rotate`: the secret, or the document with it, is all that goes to standard output."""
    with target.open() as api:
        webhooks = WebhooksClient(api)
        if not yes:  # guard: cli-webhook-rotation-consent
            url = webhooks.get(webhook_id)["url"]
            display.line(
                display.output(),
                display.printable(
                    f"The secret of {webhook_id} ({url}) would be replaced; for a day the earlier one would sign too. "
                    "Add --yes to do it."
                ),
            )
            return
        webhook = webhooks.rotate(webhook_id)
    _show_secret(webhook, as_json=as_json)
    if webhook["earlier_secrets_until"] is not None:
        until = display.printable(webhook["earlier_secrets_until"])
        display.line(display.errors(), f"The secret before it signs too, until {until}.")


def _show_secret(webhook: NewWebhookDocument, *, as_json: bool) -> None:
    if as_json:
        display.print_json(webhook)
    else:
        display.line(display.output(), webhook["secret"])
    display.line(
        display.errors(),
        "The secret is shown only this once. Your program needs it to verify what it is sent: docs/webhooks.md has "
        "the code.",
    )


def show(target: ApiTarget, webhook_id: str, *, as_json: bool) -> None:
    """`webhooks show`."""
    with target.open() as api:
        webhook = WebhooksClient(api).get(webhook_id)
    if as_json:
        display.print_json(webhook)
    else:
        pages.show(display.output(), webhook, options=target.options)


def deliveries(
    target: ApiTarget, webhook_id: str, *, status: str | None, limit: int, after: str | None, as_json: bool
) -> None:
    """`webhooks deliveries`: shows each page as it comes."""
    out = display.output()
    listed: list[DeliveryDocument] = []
    with target.open() as api:
        webhooks, is_more = WebhooksClient(api), True
        while is_more:
            page = webhooks.deliveries(webhook_id, limit=limit - len(listed), status=status, after=after)
            listed += page["deliveries"]
            after = page["next"]
            is_more = after is not None and len(listed) < limit  # guard: cli-empty-page-continues
            for delivery in () if as_json else page["deliveries"]:
                pages.show_delivery(out, delivery)
    kind = f" --status {status}" if status else ""
    if as_json:
        display.print_json({"deliveries": listed, "next": after})
    elif not listed:
        display.line(out, f"No {status} deliveries." if status else "No deliveries yet.")
    elif after is not None:
        again = f"./darkroom webhooks deliveries {webhook_id}{kind} --after {after}{target.options}"
        display.line(out, f"\nOlder ones:  {again}")


def recover(target: ApiTarget, webhook_id: str, *, since: str | None, as_json: bool) -> None:
    """`webhooks recover`."""
    with target.open() as api:
        webhook = WebhooksClient(api).recover(webhook_id, since=since)
    if as_json:
        display.print_json(webhook)
        return
    out, begins = display.output(), webhook["recovering_since"]
    of_which = "" if begins is None else f" of events since {display.printable(begins)}"
    display.line(out, f"{webhook_id} is enabled, and its failed deliveries{of_which} are tried again, slowly at first.")
    display.line(out, f"Look at them:  ./darkroom webhooks deliveries {webhook_id}{target.options}")


def ping(target: ApiTarget, webhook_id: str, *, as_json: bool) -> None:
    """`webhooks ping`."""
    with target.open() as api:
        delivery = WebhooksClient(api).ping(webhook_id)
    if as_json:
        display.print_json(delivery)
        return
    out = display.output()
    display.line(out, display.printable(f"{delivery['event_id']} ({delivery['type']}) is on its way."))
    display.line(out, f"What came of it:  ./darkroom webhooks deliveries {webhook_id}{target.options}")


def resend(target: ApiTarget, webhook_id: str, delivery_id: str, *, as_json: bool) -> None:
    """`webhooks resend`."""
    with target.open() as api:
        delivery = WebhooksClient(api).resend(webhook_id, delivery_id)
    if as_json:
        display.print_json(delivery)
        return
    out, event = display.output(), f"{delivery['event_id']} ({delivery['type']})"
    sent = "was sent a moment ago" if delivery["ended_at"] is not None else "is on its way"
    display.line(out, display.printable(f"{event} {sent}."))
    display.line(out, f"What came of it:  ./darkroom webhooks deliveries {webhook_id}{target.options}")


def set_enabled(target: ApiTarget, webhook_id: str, enabled: bool, *, as_json: bool) -> None:
    """`webhooks enable` and `webhooks disable`."""
    with target.open() as api:
        webhook = WebhooksClient(api).set_enabled(webhook_id, enabled)
    if as_json:
        display.print_json(webhook)
    elif enabled:
        display.line(display.output(), f"{webhook_id} is enabled: what waits is sent, slowly at first.")
    else:
        display.line(display.output(), f"{webhook_id} is disabled: its events wait, for 30 days.")


def remove(target: ApiTarget, webhook_id: str, *, yes: bool) -> None:
    """`webhooks rm`."""
    with target.open() as api:
        webhooks = WebhooksClient(api)
        if yes:  # guard: cli-webhook-removal-consent
            webhooks.delete(webhook_id)
            sentence = (
                f"{webhook_id} is deleted: nothing is sent to it any more, but what is on its way at this moment."
            )
        else:
            url = display.printable(webhooks.get(webhook_id)["url"])
            sentence = f"{webhook_id} ({url}) would be deleted, and what waits for it never sent. Add --yes to do it."
    display.line(display.output(), sentence)
