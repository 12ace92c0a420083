"""Signatures with P-256 keys; `cryptography` is in a layer of its own, and loaded for the first of them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey


def sign(private_key: str, message: bytes) -> bytes:
    """Implements the `Sign` port."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA  # noqa: PLC0415 -- see above
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    return _loaded(private_key).sign(message, ECDSA(SHA256()))


@cache
def _loaded(private_key: str) -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    key = load_pem_private_key(private_key.encode(), password=None)
    if not isinstance(key, EllipticCurvePrivateKey) or not isinstance(key.curve, SECP256R1):
        raise ValueError("the key is no P-256 key")
    return key
