"""Deliveries that a verifier of webhooks must accept or reject, and verifiers in Python and in Node.js."""

from __future__ import annotations

import base64
import json
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from darkroom.domain.webhooks.webhook_signature import (
    ID_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    secret_of,
    secret_text,
    sign,
)
from repository.report import ROOT

type Verify = Callable[[str, Mapping[str, str], bytes], object]
"""Gets a secret, the headers and the body; raises an exception for what it rejects."""

# Judges the cases on standard input by a `verify` that stands before it.
_JUDGE = """
import { readFileSync } from "node:fs";

const accepted = JSON.parse(readFileSync(0, "utf8")).map(({ secret, headers, body }) => {
  try {
    verify(secret, headers, Buffer.from(body, "base64"));
    return true;
  } catch {
    return false;
  }
});
console.log(JSON.stringify(accepted));
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A delivery, and the secret of who gets it."""

    name: str
    secret: str
    headers: Mapping[str, str]
    body: bytes
    is_genuine: bool = False


def cases() -> list[Case]:
    """Some hundreds of them, the same in every run but for the clock."""
    chance = random.Random(23)
    return [case for number in range(40) for case in _cases_of(chance, number)]


def _cases_of(chance: random.Random, number: int) -> Iterator[Case]:
    now, body = int(time.time()), _body(chance, number)
    old, new, foreign = (
        secret_of(chance.randbytes(32), tenant_id="acme", endpoint_id="ep_1", generation=generation)
        for generation in (1, 2, 3)
    )
    message_id = f"1p7t6r04aaqprxvrggww5m0fzk-{number}"

    def delivery(name: str, *secrets: bytes, at: int = now, is_genuine: bool = False) -> Case:
        signature = sign(secrets, message_id=message_id, timestamp=at, body=body)
        headers = {ID_HEADER: message_id, TIMESTAMP_HEADER: str(at), SIGNATURE_HEADER: signature}
        return Case(name=name, secret=secret_text(old), headers=headers, body=body, is_genuine=is_genuine)

    genuine = delivery("genuine", old, at=now + chance.randint(-120, 120), is_genuine=True)
    rotating = delivery("the old secret in a rotation", new, old, is_genuine=True)
    signed_at = int(genuine.headers[TIMESTAMP_HEADER])
    signature = genuine.headers[SIGNATURE_HEADER]

    def changed(name: str, headers: Mapping[str, str]) -> Case:
        return replace(genuine, name=name, headers={**genuine.headers, **headers}, is_genuine=False)

    def without(header: str) -> Case:
        rest = {key: value for key, value in genuine.headers.items() if key != header}
        return replace(genuine, name=f"no {header}", headers=rest, is_genuine=False)

    yield genuine
    yield rotating
    yield replace(rotating, name="the new secret in a rotation", secret=secret_text(new))
    yield replace(rotating, name="a third secret in a rotation", secret=secret_text(foreign), is_genuine=False)
    beside = {SIGNATURE_HEADER: f"v1a,bm90IG91cnM= {signature}"}
    yield replace(changed("a signature of another kind beside ours", beside), is_genuine=True)
    yield delivery("a foreign secret", foreign)
    yield delivery("an old delivery", old, at=now - chance.randint(600, 10**6))
    yield delivery("a delivery of the future", old, at=now + chance.randint(600, 10**6))
    yield replace(genuine, name="a longer body", body=body + b" ", is_genuine=False)
    yield replace(genuine, name="a body that swallowed the timestamp", body=b"1." + body, is_genuine=False)
    if body:
        yield replace(genuine, name="a shorter body", body=body.decode()[:-1].encode(), is_genuine=False)
    yield changed("another id", {ID_HEADER: f"{message_id}0"})
    yield changed("an id that ends in the timestamp", {ID_HEADER: f"{message_id}.{signed_at}"})
    yield changed("another timestamp", {TIMESTAMP_HEADER: str(signed_at + 1)})
    yield changed("no timestamp", {TIMESTAMP_HEADER: "soon"})
    yield changed("an endless timestamp", {TIMESTAMP_HEADER: "9" * 400})
    yield changed("a signature of another version", {SIGNATURE_HEADER: signature.replace("v1,", "v2,")})
    unsigned = sign([b""], message_id=message_id, timestamp=signed_at, body=body)
    yield replace(changed("no secret, and a signature without one", {SIGNATURE_HEADER: unsigned}), secret="whsec_")
    yield changed("a part of the signature", {SIGNATURE_HEADER: signature[: chance.randrange(3, 40)]})
    yield from map(without, genuine.headers)


def _body(chance: random.Random, number: int) -> bytes:
    dead_letters = 'aZ09 .,:"\\/{}[]\0\n\r\t\u007f\u00a0éß\u2028\ufeff漢字\U0001f4f7'
    text = "".join(chance.choices(dead_letters, k=chance.randrange(1, 200)))
    return [
        b"",
        b"{}",
        text.encode(),
        json.dumps({"type": "image.done", "data": text}, ensure_ascii=False).encode(),
        json.dumps({"data": "".join(chance.choices(dead_letters, k=20_000))}).encode()[: 20 * 1024],
    ][number % 5]


def documented(language: str) -> str:
    """The verifier in that language in docs/webhooks.md."""
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs/webhooks.md").read_text(), re.S | re.M)
    return str(code)


def accepted(judged: Sequence[Case], verify: Verify, *, rejects_by: type[Exception] = Exception) -> list[bool]:
    """Which of the deliveries it accepts; a rejection is an exception of that kind."""

    def is_accepted(case: Case) -> bool:
        try:
            verify(case.secret, case.headers, case.body)
        except rejects_by:
            return False
        return True

    return [is_accepted(case) for case in judged]


def accepted_by_node(judged: Sequence[Case], source: str, folder: Path) -> list[bool]:
    """The same of a module that declares `verify`, and that imports packages from `folder`."""
    deliveries = [
        {"secret": case.secret, "headers": case.headers, "body": base64.b64encode(case.body).decode()}
        for case in judged
    ]
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", source + _JUDGE],
        cwd=folder, input=json.dumps(deliveries), capture_output=True, check=False, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def mistakes(judged: Sequence[Case], accepted: Sequence[bool]) -> list[str]:
    """The deliveries about which a verifier is wrong."""
    pairs = zip(judged, accepted, strict=True)
    return [case.name for case, is_accepted in pairs if is_accepted is not case.is_genuine]
