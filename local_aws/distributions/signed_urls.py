"""Decides whom a signed URL lets in.

https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-signed-urls.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-creating-signed-url-custom-policy.html
https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-creating-signed-url-canned-policy.html
https://repost.aws/knowledge-center/cloudfront-troubleshoot-signed-url-cookies (what its refusals say)
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

PARAMETERS = frozenset({"Policy", "Signature", "Key-Pair-Id", "Expires", "Hash-Algorithm"})
"""The query parameters of a signed URL, which are neither in the cache's key nor passed on."""

_HASHES: dict[str, type[hashes.HashAlgorithm]] = {"SHA1": hashes.SHA1, "SHA256": hashes.SHA256}
_IN_URLS = str.maketrans("-_~", "+=/")


class Refusal(NamedTuple):
    """Why CloudFront answers 403."""

    code: str
    message: str


_DENIED = Refusal("AccessDenied", "Access denied")
_NO_KEY = Refusal("MissingKey", "Missing Key-Pair-Id query parameter or cookie value")
_UNKNOWN_KEY = Refusal("InvalidKey", "Unknown Key")
_NO_POLICY = Refusal("MissingPolicy", "Missing Policy or Expires query parameter or cookie value")
_BAD_SIGNATURE = Refusal("MalformedSignature", "Could not unencode Signature")
_BAD_POLICY = Refusal("MalformedPolicy", "Malformed Policy")


def public_key(pem: str) -> rsa.RSAPublicKey | ec.EllipticCurvePublicKey:
    """A key as CloudFront takes them: RSA with 2,048 bits, or ECDSA with the curve P-256. Raises ValueError."""
    key = load_pem_public_key(pem.encode())
    if isinstance(key, rsa.RSAPublicKey) and key.key_size == 2048:
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    raise ValueError("It is neither an RSA key of 2,048 bits nor an ECDSA key with the curve P-256.")


def refusal(
    url: str, parameters: Mapping[str, str], keys: Mapping[str, str], *, now: float, address: str
) -> Refusal | None:
    """Why a request is refused; None if its signature lets it in. `url` has none of the signing `parameters`, `keys`
    are the PEM forms of the trusted ones by their ids, `address` is the viewer's."""
    if not parameters.get("Key-Pair-Id"):
        return _NO_KEY
    if (pem := keys.get(parameters["Key-Pair-Id"])) is None:
        return _UNKNOWN_KEY
    if not parameters.get("Policy") and not parameters.get("Expires"):
        return _NO_POLICY
    try:
        signature = _decoded(parameters.get("Signature", ""))
    except ValueError:
        return _BAD_SIGNATURE
    try:
        policy = _decoded(parameters["Policy"]) if parameters.get("Policy") else _canned(url, parameters["Expires"])
        (statement,) = json.loads(policy)["Statement"]
        allowed = _allows(statement, url, now=now, address=address)
    except (ValueError, LookupError, TypeError, AttributeError):
        return _BAD_POLICY
    hash_name = parameters.get("Hash-Algorithm", "SHA1")
    if hash_name not in _HASHES or not signature or not _is_signed(public_key(pem), signature, policy, hash_name):
        return _DENIED
    return None if allowed else _DENIED


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text.translate(_IN_URLS), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _canned(url: str, expires: str) -> bytes:
    condition = {"DateLessThan": {"AWS:EpochTime": int(expires)}}
    return json.dumps({"Statement": [{"Resource": url, "Condition": condition}]}, separators=(",", ":")).encode()


def _allows(statement: Mapping[str, Any], url: str, *, now: float, address: str) -> bool:
    condition = statement["Condition"]
    begins = condition.get("DateGreaterThan", {}).get("AWS:EpochTime", 0)
    network = condition.get("IpAddress", {}).get("AWS:SourceIp", "0.0.0.0/0")
    return (
        _matches(statement.get("Resource", "*"), url)
        and begins < now < condition["DateLessThan"]["AWS:EpochTime"]
        and ipaddress.ip_address(address) in ipaddress.ip_network(network)
    )


def _matches(resource: str, url: str) -> bool:
    pattern = "".join({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in resource)
    return re.fullmatch(pattern, url, re.DOTALL) is not None


def _is_signed(
    key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, signature: bytes, policy: bytes, hash_name: str
) -> bool:
    algorithm = _HASHES[hash_name]()
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, policy, padding.PKCS1v15(), algorithm)
        else:
            key.verify(signature, policy, ec.ECDSA(algorithm))
    except InvalidSignature:
        return False
    return True
