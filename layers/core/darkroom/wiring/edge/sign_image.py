"""The wiring of `sign_image`."""

from __future__ import annotations

from darkroom.aws.edge.p256 import sign
from darkroom.aws.kernel import clients
from darkroom.aws.kernel.secrets import StoredSecret
from darkroom.operations.edge.sign_image import SignImagePorts
from darkroom.wiring.edge.settings import SignImageSettings
from darkroom.wiring.kernel.runtime import clock


def wire() -> SignImagePorts:
    """The ports of `sign_image`, from the function's environment."""
    settings = SignImageSettings.read()
    return SignImagePorts(
        signing_keys=StoredSecret(clients.secrets_manager_client, settings.signing_secret, clock=clock),
        sign=sign,
        clock=clock,
        trusted=settings.signing_keys,
        signed_seconds=settings.signed_seconds,
    )
