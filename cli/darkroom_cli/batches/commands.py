"""`darkroom batches`: makes, follows, closes and cancels a tenant's batches."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from darkroom.domain.bulk.batches import MAX_PARALLELISM, OnFailure
from darkroom_cli.batches.ids import checked_batch_id
from darkroom_cli.images.commands import WaitTimeoutOption
from darkroom_cli.options import JsonOption, YesOption, option
from darkroom_cli.stack.target import ApiKeyOption, IamOption, UrlOption, resolve

_HELP = """Batches: images that are followed, limited and ended together.

They are a tenant's, and managed through the API, with its key.
"""

_EPILOG = """[bold]A batch[/bold]

  id=$(./darkroom batches create --name catalogue --parallelism 20)
  ./darkroom upload photos/ --batch "$id"
  ./darkroom batches close "$id"             [dim]no more images join it[/dim]
  ./darkroom batches wait "$id"              [dim]until all of them have ended[/dim]

[bold]Later[/bold]

  ./darkroom batches ls
  ./darkroom batches show ID
  ./darkroom batches cancel ID --yes         [dim]deletes what was not begun[/dim]

[bold]Exit status[/bold]

  0    it worked; of `wait`: the batch is completed, and no image failed
       or expired
  1    it failed: standard error says why and what to do; of `wait`: so
       did the batch or one of its images, or it was cancelled
  2    the command was not understood; nothing was done
  130  interrupted; the batch goes on"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The batch's id, as `create` printed it.", callback=checked_batch_id)
]


@app.command("ls")
def list_(
    *,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=100, help="At most N, the newest.")] = 20,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """List the newest batches, and how far each is."""
    from darkroom_cli.batches import work  # noqa: PLC0415 - what reads the API's documents takes a fifth of a second

    work.list_(resolve(url, api_key, iam), limit=limit, as_json=as_json)


@app.command()
def show(
    *,
    batch_id: IdArgument,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Show a batch: how many of its images are in each state, and what is next."""
    from darkroom_cli.batches import work  # noqa: PLC0415

    work.show(resolve(url, api_key, iam), batch_id, as_json=as_json)


@app.command()
def create(
    *,
    name: Annotated[str | None, option("--name", "TEXT", "Your own name for it.")] = None,
    parallelism: Annotated[
        int | None,
        option(
            "--parallelism",
            "N",
            "At most N of its images are begun and not ended. Default: any number.",
            min=1,
            max=MAX_PARALLELISM,
        ),
    ] = None,
    on_failure: Annotated[
        OnFailure,
        typer.Option("--on-failure", help="stop: the first failed image ends it, and what was not begun is deleted."),
    ] = OnFailure.CONTINUE,
    notify: Annotated[
        str | None, option("--notify", "ID", "Only this webhook hears of its end: we_… . Default: all webhooks.")
    ] = None,
    key: Annotated[str | None, option("--idempotency-key", "K", "The same key and request make one batch.")] = None,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Make a batch, and print its id.

    Images join it with `upload --batch ID` until it is closed, which it is
    after seven days anyway.
    """
    from darkroom_cli.batches import work  # noqa: PLC0415

    stated: dict[str, Any] = {
        "name": name,
        "parallelism": parallelism,
        "on_failure": on_failure.value,
        "notify": notify,
    }
    terms: Any = {field: value for field, value in stated.items() if value is not None}
    work.create(resolve(url, api_key, iam), terms, key=key, as_json=as_json)


@app.command()
def close(
    *,
    batch_id: IdArgument,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Let no more images join a batch: it ends when all of its images have."""
    from darkroom_cli.batches import work  # noqa: PLC0415

    work.close(resolve(url, api_key, iam), batch_id, as_json=as_json)


@app.command()
def wait(
    *,
    batch_id: IdArgument,
    timeout_seconds: WaitTimeoutOption = 0,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Follow a batch until it has ended; the exit status says how.

    An open batch ends only after it is closed.
    """
    from darkroom_cli.batches import work  # noqa: PLC0415

    work.wait(resolve(url, api_key, iam), batch_id, timeout_seconds=timeout_seconds, as_json=as_json)


@app.command()
def cancel(
    *,
    batch_id: IdArgument,
    yes: YesOption = False,
    as_json: JsonOption = False,
    url: UrlOption = None,
    api_key: ApiKeyOption = None,
    iam: IamOption = False,
) -> None:
    """Begin nothing more of a batch.

    Its images that were not begun are deleted within minutes, and the others end as usual.
    """
    from darkroom_cli.batches import work  # noqa: PLC0415

    work.cancel(resolve(url, api_key, iam), batch_id, yes=yes, as_json=as_json)
