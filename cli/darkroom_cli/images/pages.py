"""Shows one image to people: its status, what was found out about it, its files, and what to do next."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.text import Text

from darkroom.domain.kernel.sizes import size_in_words
from darkroom_cli.terminal.display import instant, line, printable, seconds, table
from darkroom_client.client import ReceivedStatus, ReceivedVariant

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


def show_status(out: Console, document: ReceivedStatus, *, options: str) -> None:
    """Shows one image: its status, its variants or its error, and what to do next."""
    state = document["status"]
    style = {"done": "green", "failed": "red", "expired": "red"}.get(state, "cyan")
    paused = ", paused by whoever operates the service" if document.get("paused") else ""
    out.print(
        Text.assemble((printable(document["id"]), "bold"), "  ", (printable(state), style), (paused, "yellow")),
        soft_wrap=True,
    )
    for name, value in _facts(document):
        line(out, f"  {name:<10} {printable(value)}")
    show_findings(out, document)
    error = document["error"]
    if error is not None:
        line(out, f"  {'error':<10} {printable(error['code'])}: {printable(error['message'])}", style="red")
    _show_work(out, document)
    if document["variants"]:
        line(out)
        table(
            out,
            ("name", "dimensions", "format", "size"),
            [(v["name"], dimensions(v), v["format"], size_in_words(v["bytes"])) for v in document["variants"]],
            right=frozenset({"dimensions", "size"}),
        )
    advice = hint(document, options=options)
    if advice:
        line(out)
        line(out, advice)


def _show_work(out: Console, document: ReceivedStatus) -> None:
    work = document.get("work")  # a stack of an earlier version has no such key
    if work is None:
        return
    names = ", ".join(work["variants"])
    words = f"{work['kind']} of run {work['run']}: {work['status']}" + (f" ({names})" if names else "")
    line(out, f"  {'work':<10} {printable(words)}", style="red" if work["status"] == "failed" else None)
    if (error := work["error"]) is not None:
        line(out, f"  {'':<10} {printable(error['code'])}: {printable(error['message'])}", style="red")


def show_findings(out: Console, document: ReceivedStatus) -> None:
    """Shows what was found out about the photo: its dominant colour, with a sample, the point that crops by attention
    keep, and notices for its owner."""
    colour = (document["placeholder"] or {}).get("color", "")
    if _COLOUR.fullmatch(colour):
        text = Text(f"  {'colour':<10} {colour}")
        if out.color_system is not None:
            text.append("  ").append("    ", f"on {colour}")
        out.print(text, soft_wrap=True)
    # A stack of an earlier version has no such key.
    if (point := document.get("attention")) is not None:
        line(out, f"  {'attention':<10} {point['x']:.0%} from the left, {point['y']:.0%} from the top")
    for notice in document["notices"]:
        line(out, f"  {'notice':<10} {printable(notice)}", style="yellow")


def _facts(document: ReceivedStatus) -> list[tuple[str, str]]:
    facts = [
        ("preset", document["preset"] or "none: a recipe of your own"),
        ("lane", document["lane"]),
        ("run", f"{document['run']}, attempt {document['attempt']}"),
        ("created", document["created_at"]),
    ]
    # A stack of an earlier version has no such keys.
    words = (document.get("reference"), ", ".join(document.get("tags", ())), document.get("metadata"))
    for name, value in zip(("reference", "tags", "metadata"), words, strict=True):
        if value:
            facts.append((name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    if document["process_at"] is not None:
        facts.append(("starts", document["process_at"]))
    if document["expires_at"] is not None:
        facts.append(("expires", document["expires_at"]))
    if document["completed_at"] is not None:
        took_seconds = (instant(document["completed_at"]) - instant(document["created_at"])).total_seconds()
        facts.append(("completed", f"{document['completed_at']} ({seconds(took_seconds)} after it was accepted)"))
    else:
        facts.append(("progress", f"{document['progress']['done']} of {document['progress']['total']} variants"))
    return facts


def show_files(out: Console, document: ReceivedStatus, files: dict[str, Path]) -> None:
    """Shows the table of saved files."""
    table(
        out,
        ("name", "dimensions", "size", "file"),
        [
            (
                variant["name"],
                dimensions(variant),
                size_in_words(variant["bytes"]),
                str(files[variant["name"]]),
            )
            for variant in document["variants"]
            if variant["name"] in files
        ],
        right=frozenset({"dimensions", "size"}),
    )


def hint(document: ReceivedStatus, *, options: str = "") -> str | None:
    """What the owner of an image can do next."""
    image_id = document["id"]
    error = document["error"]
    match document["status"]:
        case "done":
            return f"Get the files:  ./darkroom download {image_id} -o DIR{options}"
        case "failed" if error is not None and error["retryable"]:
            if error["code"].startswith("fetch_"):
                return "Nothing was fetched. Send the URL again, when its server sends the photo to everybody."
            return "The photo itself may be fine. Send it again, or ask the operator to replay this image."
        case "failed" if error is not None and error["code"] == "original_missing":
            return "The photo itself may be fine, but its original is gone: send it again."
        case "failed" if error is not None and error["code"].startswith("fetch_"):
            return "Nothing was fetched, and the same URL will fail again. Change it as the error says."
        case "failed":
            return "This photo will fail again as it is. Change it as the error says, then upload it again."
        case "expired" if error is not None and error["code"] == "never_uploaded":
            return "It was announced but not uploaded. Upload it again."
        case "expired":
            return "Its time ran out before it was finished. Upload it again with a later expiry."
        case "awaiting_upload":
            return "Its file has not arrived yet: send it with the form that POST /uploads returned."
        case "fetching" if document["retry_at"] is not None:
            return f"Its server did not send it. It is asked again at {document['retry_at']}."
        case "scheduled":
            starts = f"It starts at {document['process_at']}."
            return f"{starts} To change that:  ./darkroom delay reschedule {image_id} --to TIME{options}"
        case _:
            return f"Wait for it:  ./darkroom status {image_id} --wait{options}"


def why_no_files(document: ReceivedStatus, options: str) -> str:
    """Why there is nothing to fetch."""
    error = document["error"]
    reason = f"{error['message']} ({error['code']})" if error else ""
    if document["status"] in ("failed", "expired"):
        return " ".join(filter(None, (f"The image is {document['status']}: it has no files.", reason, hint(document))))
    return (
        f"The image is {document['status']}: its files are not made yet. "
        f"Wait for them:  ./darkroom download {document['id']} --wait{options}"
    )


def dimensions(variant: ReceivedVariant) -> str:
    """Width and height for people."""
    return f"{variant['width']}\N{MULTIPLICATION SIGN}{variant['height']}"


def variant_in_words(variant: ReceivedVariant) -> str:
    """One variant in a few words: "thumb 320×213 jpeg 7.0 KB"."""
    facts = (variant["name"], dimensions(variant), variant["format"], size_in_words(variant["bytes"]))
    return printable(" ".join(facts))


def counts(numbers: Mapping[str, int]) -> str:
    """How many images have which status: "3 pending, 2 processing, 10 done, 0 failed"."""
    always = ("pending", "processing", "done", "failed")
    others = sorted(name for name, number in numbers.items() if number and name not in always)
    return ", ".join(f"{numbers.get(name, 0)} {printable(name)}" for name in (*always, *others))
