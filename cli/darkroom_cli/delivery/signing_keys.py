"""The keys by which a delivery stack signs: CloudFront has their public halves, the stack's secret the private ones.

A new key waits in the secret beside those that sign until the distribution trusts it. Its private half is stored before
CloudFront gets the public one, so a command that is repeated after a crash goes on with the same key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from botocore.exceptions import ClientError

from darkroom.aws.kernel.errors import code_of
from darkroom.aws.kernel.secrets import REMEMBERED_SECONDS
from darkroom.domain.edge.policies import SigningKey, keys_in, newest_of
from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom_cli.delivery.deployed import Deployed, trust
from darkroom_cli.stack.operators import Stack
from darkroom_client.client import ApiError


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The keys in the secret, the newest first; `waiting` signs nothing yet, and has no id before CloudFront has it."""

    signing: tuple[SigningKey, ...]
    waiting: SigningKey | None

    @property
    def ids(self) -> set[str]:
        """The ids of all."""
        return {key.id for key in (*self.signing, self.waiting) if key is not None and key.id}


@dataclass(frozen=True, kw_only=True)
class SigningKeys:
    """The keys of a delivery stack."""

    stack: Stack
    delivery: Deployed

    def read(self) -> Keys:
        """Those that the secret has."""
        text = self.stack.client("secretsmanager").get_secret_value(SecretId=self._secret)["SecretString"]
        signing = sorted(keys_in(text), key=lambda key: (key.created_at, key.id), reverse=True)
        waiting = json.loads(text).get("waiting")
        return Keys(signing=tuple(signing), waiting=None if waiting is None else SigningKey(**waiting))

    def create(self) -> SigningKey:
        """The key that waits, or a new one, trusted by now beside the others; the first of all signs at once."""
        keys = self.read()
        waiting = keys.waiting
        if waiting is None:  # guard: delivery-key-made-once
            waiting = SigningKey(id="", created_at=0, private_key=_new_private_key())
            self._write(Keys(signing=keys.signing, waiting=waiting))
        if not waiting.id:
            waiting = replace(waiting, id=self._published(waiting))
            self._write(Keys(signing=keys.signing, waiting=waiting))
        trust(self.stack, self.delivery, dict.fromkeys([waiting.id, *self.delivery.trusted]))
        return waiting if keys.signing else self._sign_by(waiting, keys).signing[0]

    def rotate(self) -> Keys:
        """The keys, of which the one that waited signs from now on. Raises ApiError if the distribution trusts none
        that does; a repetition changes nothing."""
        keys = self.read()
        if keys.waiting is None and len(keys.signing) > 1:
            return keys
        if keys.waiting is None or keys.waiting.id not in self.delivery.trusted:  # guard: delivery-signs-by-trusted-key
            raise ApiError(f"No new key is trusted. Make one:  ./darkroom delivery keys create{self.stack.options}")
        return self._sign_by(keys.waiting, keys)

    def remove(self, key_id: str, *, leaked: bool) -> None:
        """Removes a key, first where it is trusted. Raises ApiError, with nothing removed, for one by which URLs are
        signed or, unless it has leaked, still valid."""
        keys = self.read()
        if key_id not in keys.ids:  # guard: delivery-foreign-key-kept
            raise ApiError(f"{self.delivery.name} has no key {key_id}. Its keys:  ./darkroom delivery keys ls")
        present = newest_of(keys.signing, self.delivery.trusted)
        if present is not None and key_id == present.id:  # guard: delivery-signing-key-kept
            raise ApiError(f"URLs are signed by {key_id}. Another one first:  ./darkroom delivery keys create")
        until = self.valid_until(keys, key_id)
        if not leaked and self.stack.clock() < until:  # guard: delivery-valid-urls-kept
            raise ApiError(f"URLs that {key_id} signed are valid until {rfc3339(until)}. If it leaked: --leaked")
        trust(self.stack, self.delivery, [key for key in self.delivery.trusted if key != key_id])
        self._unpublish(key_id)
        waiting = None if keys.waiting is None or keys.waiting.id == key_id else keys.waiting
        self._write(Keys(signing=tuple(key for key in keys.signing if key.id != key_id), waiting=waiting))

    def valid_until(self, keys: Keys, key_id: str) -> Milliseconds:
        """When the last URL that a key signed expires; 0 for one that signed none."""
        ids = [key.id for key in keys.signing]
        if key_id not in ids[1:]:
            return 0
        # A function remembers for a while which key is the newest.
        lifetime = REMEMBERED_SECONDS + int(self.delivery.parameters["SignedSeconds"])
        return keys.signing[ids.index(key_id) - 1].created_at + 1000 * lifetime

    @property
    def _secret(self) -> str:
        return self.delivery.outputs["SigningSecretArn"]

    def _sign_by(self, waiting: SigningKey, keys: Keys) -> Keys:
        # The newest by its number, too, where this machine's clock is behind the one that made the key before.
        now = max([self.stack.clock(), *(key.created_at + 1 for key in keys.signing)])
        rotated = Keys(signing=(replace(waiting, created_at=now), *keys.signing), waiting=None)
        self._write(rotated)
        return rotated

    def _write(self, keys: Keys) -> None:
        text = json.dumps(
            {
                "keys": [asdict(key) for key in keys.signing],
                "waiting": None if keys.waiting is None else asdict(keys.waiting),
            }
        )
        self.stack.client("secretsmanager").put_secret_value(SecretId=self._secret, SecretString=text)

    def _published(self, key: SigningKey) -> str:
        """The id under which CloudFront has the key's public half, given to it unless it has it already."""
        pem = _public_half(key.private_key)
        name = f"{self.delivery.name}-{hashlib.sha256(pem.encode()).hexdigest()[:16]}"
        for known in self._listed():
            if known["Name"] == name:  # guard: delivery-key-published-once
                return str(known["Id"])
        config = {"CallerReference": name, "Name": name, "EncodedKey": pem, "Comment": "Signs URLs of images"}
        made = self.stack.client("cloudfront").create_public_key(PublicKeyConfig=config)
        return str(made["PublicKey"]["Id"])

    def _unpublish(self, key_id: str) -> None:
        cloudfront = self.stack.client("cloudfront")
        try:
            etag = cloudfront.get_public_key(Id=key_id)["ETag"]
            cloudfront.delete_public_key(Id=key_id, IfMatch=etag)
        except ClientError as error:
            if code_of(error) != "NoSuchPublicKey":
                raise

    def _listed(self) -> Iterator[dict[str, Any]]:
        further: dict[str, str] | None = {}
        while further is not None:
            page = self.stack.client("cloudfront").list_public_keys(**further)["PublicKeyList"]
            yield from page.get("Items", ())
            further = {"Marker": page["NextMarker"]} if page.get("NextMarker") else None


# `cryptography` is imported where it is used: no other command should wait for it.


def _new_private_key() -> str:
    from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()).decode()


def _public_half(private_key: str) -> str:
    from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415

    key = forms.load_pem_private_key(private_key.encode(), password=None).public_key()
    return key.public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo).decode()
