"""`darkroom keys`: the API keys with which tenants call the API."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom.domain.tenants.api_keys import MAX_LABEL_CHARACTERS, Scope, is_key_id, key_id_of
from darkroom_cli.options import JsonOption, duration, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.tenants.commands import TenantArgument, tenant_named
from darkroom_cli.terminal.durations import seconds_of

_HELP = """API keys, [bold]dr_<id>_<secret>[/bold]: a tenant calls the API with one.

A key is shown only once, when it is created. The stack keeps a hash of it,
and lists and logs show its id.
"""

_EPILOG = """[bold]A key[/bold]

  ./darkroom keys create acme --label ci      [dim]prints only the key[/dim]
  export DARKROOM_API_KEY=dr_...              [dim]for darkroom upload --url[/dim]
  echo "Authorization: Bearer $DARKROOM_API_KEY" | curl -H @- ...  [dim]with curl[/dim]

[bold]One that can do less[/bold]

  ./darkroom keys create acme --scope images:read --expires 90d

[bold]Replace a key[/bold]

  ./darkroom keys rotate ID --overlap 7d      [dim]prints the new key; the old one expires[/dim]
  ./darkroom keys ls acme                     [dim]when each was used last[/dim]
  ./darkroom keys revoke ID                   [dim]at once, if it leaked[/dim]"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def key_id_named(text: str) -> str:
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


def _scopes(names: list[Scope] | None) -> tuple[str, ...] | None:
    return tuple(sorted(set(names))) if names else None


def _lifetime(text: str | None) -> str | None:
    if seconds_of(duration(text)) == 0:
        raise typer.BadParameter("a key opens the API for some time: 90d, say.")
    return text


@app.command()
def create(
    *,
    tenant: TenantArgument,
    scope: Annotated[
        list[Scope] | None,
        typer.Option(show_default=False, help="What it may be used for; may be repeated. Default: everything."),
    ] = None,
    expires: Annotated[
        str | None,
        option(
            "--expires", "D", "How long it opens the API: 90d, say. Default: until it is revoked.", callback=_lifetime
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="TEXT", show_default=False, help="Where it is used, for `keys ls`.", callback=_label),
    ] = None,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Create a key for a tenant. It is shown only once."""
    from darkroom_cli.tenants import work  # noqa: PLC0415

    where = reach(stack, region)
    work.create_key(where, tenant, label=label, scopes=_scopes(scope), lives_seconds=seconds_of(expires))


@app.command()
def rotate(
    *,
    key: Annotated[
        str, typer.Argument(metavar="ID", help="The key's id, as `ls` shows it; or the key.", callback=key_id_named)
    ],
    overlap: Annotated[
        str, typer.Option(metavar="D", help="How long the old key still opens the API.", callback=duration)
    ] = "7d",
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Replace a key by a new one that may do the same. The old one expires.

    The new key is shown only once.
    """
    from darkroom_cli.tenants import work  # noqa: PLC0415

    work.rotate_key(reach(stack, region), key, overlap_seconds=seconds_of(overlap) or 0)


@app.command("ls")
def list_(
    *,
    tenant: Annotated[
        str | None,
        typer.Argument(metavar="[TENANT]", help="Only one tenant.", show_default=False, callback=tenant_named),
    ] = None,
    revoked: Annotated[bool, typer.Option("--revoked", help="Only those that no longer open the API.")] = False,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """List the keys by their ids: what each may do, its age, and when it was used last.

    Revoked and expired keys are listed too; [bold]--revoked[/bold] lists only those.
    Secrets are never listed.
    """
    from darkroom_cli.tenants import work  # noqa: PLC0415

    work.list_keys(reach(stack, region), tenant, only_closed=revoked, as_json=as_json)


@app.command()
def revoke(
    *,
    key: Annotated[
        str, typer.Argument(metavar="ID", help="The key's id, as `ls` shows it; or the key.", callback=key_id_named)
    ],
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Revoke a key permanently. It stops working within 60 seconds."""
    from darkroom_cli.tenants import work  # noqa: PLC0415

    work.revoke_key(reach(stack, region), key)
