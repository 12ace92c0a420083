"""Where the API answers about an image: paths relative to its root."""


def image_path(image_id: str) -> str:
    """The path of an image."""
    return f"/images/{image_id}"


def status_path(image_id: str) -> str:
    """The path of an image's status."""
    return f"{image_path(image_id)}/status"


def variant_path(image_id: str, name: str) -> str:
    """The path of a variant."""
    return f"{image_path(image_id)}/variants/{name}"
