"""What a tenant asks for, and there is not."""

from __future__ import annotations

from darkroom.domain.kernel.errors import Rejected


class UnknownWebhook(Rejected):
    """This tenant has no endpoint with that id; another tenant's is treated like a missing one."""

    def __init__(self) -> None:
        super().__init__("unknown_webhook", "There is no webhook with this id.")


class UnknownDelivery(Rejected):
    """The endpoint has no delivery with that id, or none any more."""

    def __init__(self) -> None:
        super().__init__(
            "unknown_delivery", "The webhook has no delivery with this id. Deliveries are kept for 30 days."
        )
