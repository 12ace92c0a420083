"""The API of a Darkroom as Python calls; the command line uses them too."""

from darkroom_client.batches import BatchTerms
from darkroom_client.client import (
    ApiError,
    NotFinished,
    ReceivedStatus,
    ReceivedVariant,
    Refused,
    StatusAnswer,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from darkroom_client.darkroom import Darkroom, NotDownloaded, UploadOptions, UploadTokenTerms
from darkroom_client.imports import ImportTerms
from darkroom_client.signature import is_signed
from darkroom_client.variants import variant_path

__all__ = [
    "ApiError",
    "BatchTerms",
    "Darkroom",
    "ImportTerms",
    "NotDownloaded",
    "NotFinished",
    "ReceivedStatus",
    "ReceivedVariant",
    "Refused",
    "StatusAnswer",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "UploadOptions",
    "UploadTokenTerms",
    "is_signed",
    "variant_path",
]
