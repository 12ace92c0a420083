"""`darkroom status`: where one image stands."""

from __future__ import annotations

from typing import Annotated

import typer

from console.api.client import IMAGE_ID_PATTERN, Api, ApiError, StatusDocument
from console.images.watch import NotFinished, wait_for
from console.stack.target import ApiKeyOption, IamOption, UrlOption, resolve
from console.terminal import display

EPILOG = """[bold]Examples[/bold]

  ./darkroom status 01h2xcejqtf2nbrexx3vqjhp41
  ./darkroom status 01h2xcejqtf2nbrexx3vqjhp41 --wait
  ./darkroom status 01h2xcejqtf2nbrexx3vqjhp41 --json

[bold]Exit status[/bold]

  0    it is done, or on its way
  1    it failed, was withdrawn, is unknown, or (with --wait) took too long
  2    the command was not understood
  130  interrupted"""


def checked_image_id(text: str) -> str:
    """An image id from the command line."""
    image_id = text.strip()
    if IMAGE_ID_PATTERN.fullmatch(image_id) is None:
        raise typer.BadParameter(
            f"{display.printable(text)!r} is not an image id: those are 26 digits and small letters."
        )
    return image_id


ImageIdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="An image's id, as `upload` printed it.", callback=checked_image_id)
]
WaitTimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout-seconds", metavar="N", min=0, help="With --wait: stop waiting after N seconds; 0 waits for ever."
    ),
]


def command(
    *,
    image_id: ImageIdArgument,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the image is done or has failed.")] = False,
    timeout_seconds: WaitTimeoutOption = 900,
    as_json: Annotated[bool, typer.Option("--json", help="Print the status document as the API gives it.")] = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Show where an image stands.

    Its variants with their sizes, or the reason why it failed, and what to do
    next.
    """
    target = resolve(url, api_key, iam)
    out = display.output()
    with target.open() as api:
        document = followed(api, image_id, timeout_seconds=timeout_seconds) if wait else api.status(image_id).document
    if as_json:
        display.print_json(document)
    else:
        display.status(out, document, hint=hint(document, options=target.options))
    if document["status"] in ("failed", "cancelled", "expired"):
        raise typer.Exit(1)


def followed(api: Api, image_id: str, *, timeout_seconds: float) -> StatusDocument:
    """Waits until an image has ended, showing how it gets on; raises ApiError when it takes too long."""
    screen = display.errors()
    with display.Report(screen) as report:

        def show(document: StatusDocument) -> None:
            progress = document["progress"]
            report.show(image_id, completed=progress["done"], total=progress["total"], detail=document["status"])

        try:
            return wait_for(api, api.status(image_id), timeout_seconds=timeout_seconds, on_answer=show)
        except NotFinished as error:
            raise ApiError(str(error)) from error


def hint(document: StatusDocument, *, options: str = "") -> str | None:
    """What the owner of an image can do next."""
    image_id = document["id"]
    error = document["error"]
    match document["status"]:
        case "done":
            return f"Get the files:  ./darkroom download {image_id} -o DIR{options}"
        case "failed" if error is not None and error["retryable"]:
            return "The photo itself may be fine. Send it again, or ask the operator to replay this image."
        case "failed" if error is not None and error["code"] == "original_missing":
            return "The photo itself may be fine, and its original is lost: send it again."
        case "failed":
            return "This photo will fail again as it is. Change it as the error says, then upload it anew."
        case "cancelled":
            return "It was withdrawn before it was finished. Upload it again if you want it after all."
        case "expired" if error is not None and error["code"] == "never_uploaded":
            return "It was announced and not uploaded. Upload it again."
        case "expired":
            return "Its time ran out before it was finished. Upload it again with a later expiry."
        case "awaiting_upload":
            return "Its bytes have not arrived yet: send the file to the address that POST /uploads gave."
        case "scheduled":
            starts = f"It starts at {document['process_at']}."
            return f"{starts} At another time:  ./darkroom delay move {image_id} --to TIME{options}"
        case _:
            return f"Wait for it:  ./darkroom status {image_id} --wait{options}"
