"""Develops one photo, shows its progress, and prints how to send the next one with plain curl."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from darkroom.domain.kernel.sizes import size_in_words
from darkroom_cli.images.download import save_variants
from darkroom_cli.images.pages import hint, show_files, show_findings
from darkroom_cli.terminal import display
from darkroom_cli.upload.sender import send_file
from darkroom_client import Darkroom
from darkroom_client.client import ApiError, ReceivedStatus

_TIMEOUT_SECONDS = 300.0


def develop_photo(api: Darkroom, photo: Path, out: Console, folder: Path) -> str | None:
    """Posts `photo`, follows it until it is done, saves its variants into `folder`, lists them, and returns its id.

    If any of these fails, it says why on `out` and returns None.
    """
    try:
        with display.ProgressReport(out, notes=out) as report:
            document = _developed(api, photo, report)
            files = save_variants(api, document, folder, force=True)
    except ApiError as error:
        display.line(out, f"{display.printable(photo.name)} was not developed: {error}", style="red")
        return None
    display.line(out)
    show_files(out, document, files)
    show_findings(out, document)
    return document["id"]


def _developed(api: Darkroom, photo: Path, report: display.ProgressReport) -> ReceivedStatus:
    started_at = time.monotonic()
    name = display.printable(photo.name)
    size_bytes = photo.stat().st_size if photo.is_file() else 0
    report.say(f"uploading {name} ({size_in_words(size_bytes)})")

    def show_sent(sent_bytes: int) -> None:
        detail = f"{size_in_words(sent_bytes)} of {size_in_words(size_bytes)}"
        report.show("uploading", completed=sent_bytes, total=size_bytes, detail=detail)

    outcome = send_file(api, photo, on_sent=show_sent)
    if outcome.answer is None:
        raise outcome.problem or ApiError("It was not sent.")
    report.say(f"accepted as {outcome.answer.image_id} after {display.seconds(time.monotonic() - started_at)}")

    def show_status(document: ReceivedStatus) -> None:
        progress = document["progress"]
        report.show(
            "developing",
            completed=progress["done"],
            total=progress["total"],
            detail=f"{document['status']}, {progress['done']} of {progress['total']} variants",
        )

    accepted = outcome.answer
    document = api.wait(accepted.image_id, seen=accepted, timeout_seconds=_TIMEOUT_SECONDS, on_document=show_status)
    if document["status"] != "done":
        error = document["error"]
        reason = f"{error['message']} ({error['code']})" if error else f"it is {document['status']}."
        raise ApiError(" ".join(filter(None, (reason, hint(document)))))
    report.say(f"done after {display.seconds(time.monotonic() - started_at)}")
    return document


def print_curl_lines(api_url: str, out: Console, api_key: str | None = None) -> None:
    """Prints how to send a photo without this program; the lines can be pasted as they are."""
    display.line(out, "Send a photo of your own (photo.jpg) with curl:")
    display.line(out)
    for text in curl_lines(api_url, api_key):
        display.line(out, f"  {text}")


def curl_lines(api_url: str, api_key: str | None = None) -> tuple[str, ...]:
    """Upload, poll, fetch the WebP: three commands for any POSIX shell, with the image's id in a variable."""
    # curl does not send the key to the URL to which the API redirects, which is on another host. `echo` is the shell's
    # own, so the key is in no process's arguments.
    curl = "curl -sS" if api_key is None else f"echo 'Authorization: Bearer {api_key}' | curl -sS -H @-"
    # The response's headers go to sed and its body to the screen: the status document, or why the photo was refused.
    post = f"{curl} -D - -o /dev/stderr --data-binary @photo.jpg -H 'Content-Type: image/jpeg' {api_url}/images"
    # Header names are in lower case over HTTP/2, as on AWS.
    read_id = r"sed -n 's|^[Ll]ocation: /images/\([0-9a-z]*\)/status.*|\1|p'"
    # The loop ends without a response: a loop until "done" would never end if the upload was refused.
    unfinished = """grep -Eo '"status": *"(pending|processing)"'"""
    return (
        f"id=$({post} | {read_id})",
        f"while {curl} {api_url}/images/$id/status | {unfinished}; do sleep 1; done",
        f"{curl} -f -L -o photo.webp {api_url}/images/$id/variants/webp",
    )
