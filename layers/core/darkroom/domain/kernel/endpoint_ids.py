"""What others need to know of webhooks: the form of their ids, and how long their URLs may be."""

from __future__ import annotations

from darkroom.domain.kernel.ids import DIGIT

MAX_ENDPOINT_URL_LENGTH = 2048
"""Characters. Every delivery reads its endpoint's row, so it is kept small."""

PREFIX = "we_"
RANDOM_DIGITS = 15  # 75 bits: nobody guesses an id, and no two are equal

ENDPOINT_ID_PATTERN = rf"{PREFIX}[0-9]{DIGIT}{{{RANDOM_DIGITS}}}"
"""The pattern of every endpoint's id. Its first digit is the endpoint's place."""
