"""Sends a file to S3 with a presigned form: all of the form's fields, then the file."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

# What S3 answers if it has not received all of the request
# (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html).
_HALF_HEARD = frozenset({"IncompleteBody", "RequestTimeout"})

# The form has expired, or the credentials with which it was signed have.
_OUT_OF_DATE = re.compile(r"Policy expired|ExpiredToken|RequestTimeTooSkewed")

# If the file is not the announced one, it has changed since its hash was taken.
_ANOTHER_FILE = frozenset({"BadDigest", "EntityTooSmall", "EntityTooLarge"})


@dataclass(frozen=True, kw_only=True)
class FormPost:
    """Where a file is sent, and the fields that go before it."""

    url: str
    fields: Mapping[str, str]


def form_in(document: Mapping[str, Any]) -> FormPost | None:
    """The form in a response to an announcement, or None if the upload is no longer awaited.

    Raises KeyError or TypeError for any other document.
    """
    upload = document["upload"]
    return None if upload is None else FormPost(url=str(upload["url"]), fields=dict(upload["fields"]))


def send_form(client: httpx.Client, form: FormPost, file: Path, on_sent: Callable[[int], None]) -> httpx.Response:
    """Sends the file and returns the store's response; `on_sent` gets the number of the file's bytes sent so far.

    Raises httpx.TransportError also if the store says that it has not received all, and OSError if the file cannot be
    read.
    """
    with _Counted(file, on_sent) as opened:
        response = client.post(form.url, data=dict(form.fields), files={"file": ("file", opened)})
    if code_of(response) in _HALF_HEARD:
        raise httpx.WriteError(f"the store received only a part ({code_of(response)})")
    return response


def is_out_of_date(response: httpx.Response) -> bool:
    """Whether the same file may be sent again with a fresh form."""
    return response.status_code in (400, 403) and _OUT_OF_DATE.search(response.text) is not None


def refusal(response: httpx.Response) -> str:
    """Why the store has not accepted the file, as a sentence."""
    code = code_of(response)
    if code in _ANOTHER_FILE:
        return f"The file has changed since its hash was taken ({code}). Upload it again."
    message = re.search(r"<Message>([^<]*)</Message>", response.text)
    reason = (
        f"{code}: {message[1].rstrip('.') if message else 'it gives no reason'}" if code else response.reason_phrase
    )
    return f"The store of uploads answered {response.status_code} ({reason})."


def code_of(response: httpx.Response) -> str:
    """S3's error code in a response, or an empty string."""
    code = None if response.is_success else re.search(r"<Code>(\w+)</Code>", response.text)
    return code[1] if code else ""


class _Counted(io.BufferedReader):
    def __init__(self, file: Path, on_sent: Callable[[int], None]) -> None:
        super().__init__(io.FileIO(file))
        self._on_sent = on_sent

    def read(self, size: int | None = -1, /) -> bytes:
        self._on_sent(self.tell())  # what was read before has been sent by now
        return super().read(size)
