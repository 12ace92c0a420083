"""`darkroom keys`: the API keys with which tenants call the API."""

from __future__ import annotations

from typing import Annotated

import typer

from console.options import JsonOption
from console.stack.target import RegionOption, StackOption, reach
from console.tenants.commands import TenantArgument, tenant_named
from darkroom.domain.api_keys import MAX_LABEL_CHARACTERS, is_key_id, key_id_of

_HELP = """API keys, [bold]dr_<id>_<secret>[/bold]: a tenant calls the API with one.

A key is shown only once, when it is created. The stack keeps a hash of it,
and lists and logs show its id.
"""

_EPILOG = """[bold]A key[/bold]

  ./darkroom keys create acme --label ci      [dim]prints only the key[/dim]
  export DARKROOM_API_KEY=dr_...              [dim]for darkroom upload --url[/dim]
  curl -H "Authorization: Bearer dr_..." ...  [dim]the same with curl[/dim]

[bold]Replace a key[/bold]

  ./darkroom keys create acme                 [dim]a tenant may have several[/dim]
  ./darkroom keys revoke ID                   [dim]once the old one is unused[/dim]"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def _key_id(text: str) -> str:
    text = text.strip()
    if is_key_id(text):
        return text
    # People who find a leaked key paste all of it; no part of it is printed here.
    key_id = key_id_of(text)
    if key_id is None:
        raise typer.BadParameter("that is not a key's id: 8 digits and lower-case letters, as `keys ls` shows them.")
    return key_id


def _label(text: str | None) -> str | None:
    if text is None:
        return None
    if not text.strip() or len(text) > MAX_LABEL_CHARACTERS or not text.isprintable():
        raise typer.BadParameter(f"a label has 1 to {MAX_LABEL_CHARACTERS} printable characters.")
    if key_id_of(text.strip()) is not None:
        raise typer.BadParameter("that is a key, which must not appear in lists.")
    return text.strip()


@app.command()
def create(
    *,
    tenant: TenantArgument,
    label: Annotated[
        str | None,
        typer.Option(metavar="TEXT", show_default=False, help="Where it is used, for `keys ls`.", callback=_label),
    ] = None,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Create a key for a tenant. It is shown only once."""
    from console.tenants import work  # noqa: PLC0415

    work.create_key(reach(stack, region), tenant, label=label)


@app.command("ls")
def list_(
    *,
    tenant: Annotated[
        str | None,
        typer.Argument(metavar="[TENANT]", help="Only one tenant.", show_default=False, callback=tenant_named),
    ] = None,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """List the keys by their ids, including revoked ones. Secrets are never listed."""
    from console.tenants import work  # noqa: PLC0415

    work.list_keys(reach(stack, region), tenant, as_json=as_json)


@app.command()
def revoke(
    *,
    key: Annotated[
        str, typer.Argument(metavar="ID", help="The key's id, as `ls` shows it; or the key.", callback=_key_id)
    ],
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Revoke a key permanently. It stops working within 60 seconds."""
    from console.tenants import work  # noqa: PLC0415

    work.revoke_key(reach(stack, region), key)
