"""The work of `darkroom delivery`, once the command line is parsed."""

from __future__ import annotations

from darkroom.domain.edge.policies import newest_of
from darkroom.domain.kernel.instants import rfc3339
from darkroom_cli.delivery.deployed import delivery_of, delivery_with, deployed
from darkroom_cli.delivery.parameters import parameters_of
from darkroom_cli.delivery.signing_keys import SigningKeys
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_client.client import ApiError


def tell_parameters(stack: Stack) -> None:
    """`delivery parameters`: one line for `sam deploy --parameter-overrides`."""
    with stack.explained():
        core = deployed(stack, stack.name)
    if core is None or "OutputsBucketDomainName" not in core.outputs:
        raise ApiError(f"{stack.name} has no output OutputsBucketDomainName: deploy this version of Darkroom first.")
    values = parameters_of(stack.name, core.outputs, core.parameters)
    display.line(display.output(), " ".join(f"{name}={value}" for name, value in values.items()))


def tell_edge(stack: Stack) -> None:
    """`delivery edge`: the parameter by which the stack learns of its edge."""
    with stack.explained():
        delivery = delivery_with(stack, "Edge")
    display.line(display.output(), f"Edge={delivery.outputs['Edge']}")


def create(stack: Stack) -> None:
    """`delivery keys create`."""
    with stack.explained():
        keys = SigningKeys(stack=stack, delivery=delivery_of(stack))
        with stack.audit.action("create_signing_key") as audited:
            made = keys.create()
            audited.add(made.id, "created")
    display.line(display.output(), made.id)
    if made.created_at:
        display.line(display.errors(), "It is trusted, and URLs of signed images are signed by it.")
    else:
        display.line(display.errors(), "It is trusted beside the present one. Ten minutes from now, sign by it:")
        display.line(display.errors(), f"  ./darkroom delivery keys rotate{stack.options}")


def rotate(stack: Stack) -> None:
    """`delivery keys rotate`."""
    with stack.explained():
        keys = SigningKeys(stack=stack, delivery=delivery_of(stack))
        with stack.audit.action("rotate_signing_key") as audited:
            stored = keys.rotate()
            audited.add(stored.signing[0].id, "rotated")
    display.line(display.output(), stored.signing[0].id)
    for former in stored.signing[1:]:
        until = rfc3339(keys.valid_until(stored, former.id))
        display.line(display.errors(), f"What {former.id} signed is valid until {until}. Then:")
        display.line(display.errors(), f"  ./darkroom delivery keys remove {former.id}{stack.options}")


def list_(stack: Stack, *, as_json: bool) -> None:
    """`delivery keys ls`."""
    with stack.explained():
        delivery = delivery_of(stack)
        keys = SigningKeys(stack=stack, delivery=delivery).read()
    present = newest_of(keys.signing, delivery.trusted)
    waiting = () if keys.waiting is None else (keys.waiting,)
    rows = [
        (key.id, rfc3339(key.created_at) if key.created_at else None, key.id in delivery.trusted, key == present)
        for key in (*waiting, *keys.signing)
    ]
    if as_json:
        display.print_json([dict(zip(("id", "signs_since", "trusted", "signs"), row, strict=True)) for row in rows])
        return
    words = [(name, since or "", _word(trusted), _word(signs)) for name, since, trusted, signs in rows]
    display.table(display.output(), ("key", "since", "trusted", "signs"), words, right=frozenset())


def remove(stack: Stack, key_id: str, *, leaked: bool) -> None:
    """`delivery keys remove`."""
    with stack.explained():
        keys = SigningKeys(stack=stack, delivery=delivery_of(stack))
        with stack.audit.action("remove_signing_key", key_id) as audited:
            keys.remove(key_id, leaked=leaked)
            audited.add(key_id, "removed")
    display.line(display.output(), f"{key_id} is removed, here and at CloudFront.")


def _word(value: bool) -> str:
    return "yes" if value else "no"
