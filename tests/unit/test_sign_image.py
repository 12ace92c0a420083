"""What is signed for viewers: one image, for a while, by a key that the distribution trusts."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from darkroom.domain.edge.policies import is_signable, keys_in
from darkroom.operations.edge.sign_image import SignImagePorts, sign_image
from darkroom.ports.kernel import SecretVersion
from repository.expand_template import DELIVERY, without_loops
from tests.support.fakes.secrets import FakeSecret
from tests.support.handlers import handler_of, sample_of
from tests.support.images import NOW

ID = "0" * 26
RESOURCE = sample_of("sign_image")["resource"]
KEYS = [
    {"id": name, "created_at": number, "private_key": f"PEM of {name}"}
    for number, name in enumerate(["KOLD", "KNEW", "KNEXT"])
]


def ports(trusted: set[str]) -> SignImagePorts:
    return SignImagePorts(
        signing_keys=FakeSecret([SecretVersion(version_id="1", text=json.dumps({"keys": KEYS}), created_at=0)]),
        sign=lambda private_key, message: f"{private_key}, {len(message)}>>".encode(),
        clock=lambda: NOW + 999,
        trusted=trusted,
        signed_seconds=3600,
    )


@pytest.mark.guards("edge-signs-one-image")
@pytest.mark.parametrize(
    "resource",
    [None, "*", f"https://*/signed/{ID}/*", f"https://a/signed/{ID}*", f"https://a/public/{ID}/*",
     f"https://a/signed/{ID}/*?x", "https://a/signed/*", f"https://a/?/signed/{ID}/*", f"{RESOURCE}\n"],
)  # fmt: skip
def test_only_the_variants_of_one_image_are_signed(resource: object) -> None:
    assert not is_signable(resource)
    assert is_signable(RESOURCE)
    with pytest.raises(ValueError):
        sign_image(ports({"KNEW"}), resource)


@pytest.mark.guards("edge-signs-by-trusted-key")
@pytest.mark.parametrize(("trusted", "key"), [({"KOLD"}, "KOLD"), ({"KOLD", "KNEW"}, "KNEW"), ({"KGONE"}, None)])
def test_the_newest_trusted_key_signs_through_a_rotation(
    trusted: set[str], key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = handler_of("sign_image", "edge", ports(trusted), monkeypatch)
    if key is None:
        with pytest.raises(LookupError):
            handle({"resource": RESOURCE})
        return
    signed: dict[str, Any] = handle(sample_of("sign_image"))
    policy = base64.b64decode(signed["policy"].translate(str.maketrans("-_~", "+=/")))
    until = NOW // 1000 + 3600
    assert json.loads(policy)["Statement"] == [
        {"Resource": RESOURCE, "Condition": {"DateLessThan": {"AWS:EpochTime": until}}}
    ]
    assert (signed["key_pair_id"], signed["expires_at"]) == (key, "2026-11-21T10:00:00.000Z")
    assert not {"+", "=", "/"} & {*signed["signature"]}
    assert "PEM" not in repr(keys_in(json.dumps({"keys": KEYS})))


@pytest.mark.guards("edge-signature-required")
def test_cloudfront_serves_what_is_signed_to_nobody_without_a_signature() -> None:
    distribution = without_loops(DELIVERY)["Resources"]["Distribution"]["Properties"]["DistributionConfig"]
    behaviours = [one["Fn::If"][1] if "Fn::If" in one else one for one in distribution["CacheBehaviors"]]
    trusted = {one["PathPattern"]: one.get("TrustedKeyGroups") for one in behaviours}
    assert trusted == {"public/*": None, "signed/*": [{"Ref": "SigningKeyGroup"}], "i/*": None, "t/*": None}
