"""Where the API answers about an image, a webhook or a batch: paths relative to its root."""


def image_path(image_id: str) -> str:
    """The path of an image."""
    return f"/images/{image_id}"


def status_path(image_id: str) -> str:
    """The path of an image's status."""
    return f"{image_path(image_id)}/status"


def variant_path(image_id: str, name: str) -> str:
    """The path of a variant."""
    return f"{image_path(image_id)}/variants/{name}"


def webhook_path(endpoint_id: str) -> str:
    """The path of a webhook."""
    return f"/webhooks/{endpoint_id}"


def deliveries_path(endpoint_id: str) -> str:
    """The path of a webhook's deliveries."""
    return f"{webhook_path(endpoint_id)}/deliveries"


def batch_path(batch_id: str) -> str:
    """The path of a batch."""
    return f"/batches/{batch_id}"


def import_path(batch_id: str) -> str:
    """The path of an import, which has the id of its batch."""
    return f"/imports/{batch_id}"
