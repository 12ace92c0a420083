"""Signs a policy by which the edge serves the variants of one image for a while."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from darkroom.domain.edge.policies import for_a_url, is_signable, keys_in, newest_of, policy_for
from darkroom.domain.kernel.instants import rfc3339
from darkroom.ports.edge import Sign
from darkroom.ports.kernel import Clock, Secret


@dataclass(frozen=True, kw_only=True)
class SignImagePorts:
    """What signing needs; `trusted` are the ids of the keys that the distribution trusts."""

    signing_keys: Secret
    sign: Sign
    clock: Clock
    trusted: Collection[str]
    signed_seconds: int


def sign_image(ports: SignImagePorts, resource: object) -> dict[str, str]:
    """The parts of the query of a signed URL. Raises ValueError for a resource that is not the variants of one image,
    LookupError if the secret has none of the trusted keys, and Retryable."""
    if not isinstance(resource, str) or not is_signable(resource):
        raise ValueError("only the variants of one signed image are signed")
    key = newest_of(keys_in(ports.signing_keys.current().text), ports.trusted)
    if key is None:
        raise LookupError("the secret has none of the keys in SigningKeys")
    until_seconds = ports.clock() // 1000 + ports.signed_seconds
    policy = policy_for(resource, until_seconds)
    return {
        "policy": for_a_url(policy),
        "signature": for_a_url(ports.sign(key.private_key, policy)),
        "key_pair_id": key.id,
        "hash_algorithm": "SHA256",
        "expires_at": rfc3339(until_seconds * 1000),
    }
