"""`darkroom delivery`: what the stack that delivers images needs, and the keys with which it signs."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.options import JsonOption
from darkroom_cli.stack.target import RegionOption, StackOption, reach

_HELP = """Pictures on websites, by CloudFront: the stack extensions/delivery.yaml.

It is called as the stack whose images it delivers, with [bold]-delivery[/bold] at the end;
docs/delivery.md says how it is deployed.
"""

_KEYS_HELP = """The keys with which URLs of signed images are signed.

CloudFront has the public halves; the private ones are in the stack's secret, and are never shown.
"""

_KEYS_EPILOG = """[bold]The first key[/bold]

  ./darkroom delivery keys create     [dim]signs once it is trusted, some minutes later[/dim]

[bold]Replace a key[/bold]

  ./darkroom delivery keys create     [dim]another one, trusted beside it[/dim]
  ./darkroom delivery keys rotate     [dim]signs by that one[/dim]
  ./darkroom delivery keys remove ID  [dim]the old one, once nothing that it signed is valid[/dim]

Whatever ends a command, it can be repeated."""

app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode="rich")
keys = typer.Typer(help=_KEYS_HELP, epilog=_KEYS_EPILOG, no_args_is_help=True, rich_markup_mode="rich")
app.add_typer(keys, name="keys")


@app.command()
def parameters(*, stack: StackOption = None, region: RegionOption = None) -> None:
    """Print the parameters with which it is deployed."""
    from darkroom_cli.delivery import work  # noqa: PLC0415

    work.tell_parameters(reach(stack, region))


@app.command()
def edge(*, stack: StackOption = None, region: RegionOption = None) -> None:
    """Print the parameter Edge, with which the other stack is then deployed."""
    from darkroom_cli.delivery import work  # noqa: PLC0415

    work.tell_edge(reach(stack, region))


@keys.command()
def create(*, stack: StackOption = None, region: RegionOption = None) -> None:
    """Make a key that the distribution trusts. The first one signs at once."""
    from darkroom_cli.delivery import work  # noqa: PLC0415

    work.create(reach(stack, region))


@keys.command()
def rotate(*, stack: StackOption = None, region: RegionOption = None) -> None:
    """Sign by the key that was made last; the present one stays trusted."""
    from darkroom_cli.delivery import work  # noqa: PLC0415

    work.rotate(reach(stack, region))


@keys.command("ls")
def list_(*, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """List the keys, and which of them are trusted and sign."""
    from darkroom_cli.delivery import work  # noqa: PLC0415

    work.list_(reach(stack, region), as_json=as_json)


@keys.command()
def remove(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `ls` shows it.")],
    *,
    leaked: Annotated[
        bool, typer.Option("--leaked", help="Now, although URLs that it signed are valid: they end with it.")
    ] = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Remove a key by which nothing is signed any more, for good."""
    from darkroom_cli.delivery import work  # noqa: PLC0415

    work.remove(reach(stack, region), key, leaked=leaked)
