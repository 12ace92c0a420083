"""The `darkroom` command: its subcommands, and how their errors end."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from darkroom_cli.places import COMMAND, HAS_LOCAL_STACK, IS_CHECKOUT, ROOT, as_typed
from darkroom_cli.terminal import display
from darkroom_client.client import ApiError, Refused

_WHERE = """to the local stack of this checkout ([bold]make run[/bold] starts it),
or to a deployed one with [bold]--url[/bold]."""

_HELP = f"""Develop photos: send them, follow their progress, fetch the results.

Commands talk {_WHERE if HAS_LOCAL_STACK else "to the stack that [bold]--url[/bold] or [bold]--stack[/bold] names."}
"""

_START = (
    "make run                            [dim]in another window: the local stack[/dim]"
    if HAS_LOCAL_STACK
    else "export DARKROOM_URL=https://…       [dim]the output ApiUrl of the stack[/dim]"
)

_EPILOG = f"""[bold]A first photo[/bold]

  {_START}
  ./darkroom upload photo.jpg --wait  [dim]prints the image's ID, waits for it[/dim]
  ./darkroom download ID -o photos    [dim]saves photos/thumb.jpg, webp.webp, ...[/dim]

[bold]Environment[/bold]

  DARKROOM_URL, DARKROOM_API_KEY      [dim]defaults of --url and --api-key[/dim]
  DARKROOM_STATE_DIR                  [dim]where the local stack's state is[/dim]

[bold]Exit status[/bold]

  0    it worked
  1    it failed: standard error says why and what to do
  2    the command was not understood: see COMMAND --help; or the stack
       is without what it is for: docs/parts.md
  130  interrupted"""


class _Commands(TyperGroup):
    """The commands; an error that the caller can fix is printed as a sentence with exit status 1, not a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Refused as error:
            if error.code == "unknown_path":  # guard: cli-absent-part-named
                display.complain("This stack was deployed without the part that this command is for: docs/parts.md.")
                raise typer.Exit(2) from error
            display.complain(str(error))
            raise typer.Exit(1) from error
        except ApiError as error:
            display.complain(str(error))
            raise typer.Exit(1) from error


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    if not IS_CHECKOUT:
        typer.echo(f"darkroom {importlib.metadata.version('darkroom-cli')}")
        raise typer.Exit
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # no git, or an archive without its history
        commit = "unknown commit"
    typer.echo(f"darkroom {version} ({commit})")
    raise typer.Exit


def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of every command; their callbacks do the work."""


class _Place(NamedTuple):
    """Where a command is: a module, and in it a function with its epilog, or an app with subcommands."""

    module: str
    name: str = "command"
    epilog: str | None = "EPILOG"


def _group(module: str, name: str = "app") -> _Place:
    return _Place(module, name, None)


_PLACES = {
    "upload": _Place("upload.commands"),
    "status": _Place("images.commands", "status", "STATUS_EPILOG"),
    "edit": _Place("variants.commands", "edit", "EDIT_EPILOG"),
    "variants": _group("variants.commands"),
    "batches": _group("batches.commands"),
    "import": _Place("imports.commands"),
    "download": _Place("images.commands", "download", "DOWNLOAD_EPILOG"),
    "top": _Place("top.commands"),
    "ls": _Place("images.commands", "ls", "LS_EPILOG"),
    "visibility": _Place("images.commands", "visibility", "VISIBILITY_EPILOG"),
    "rm": _Place("images.commands", "rm", "RM_EPILOG"),
    "logs": _Place("logs.commands"),
    "trace": _Place("trace.commands"),
    "delay": _group("delay.commands"),
    "backfill": _group("backfill.commands"),
    "schedules": _group("schedules.commands"),
    "differences": _group("differences.commands"),
    "pause": _group("pauses.commands", "pausing"),
    "resume": _group("pauses.commands", "resuming"),
    "dlq": _group("dlq.commands"),
    "redo": _Place("images.commands", "redo", "REDO_EPILOG"),
    "orphans": _group("orphans.commands"),
    "parts": _group("parts.commands"),
    "restore": _Place("restore.commands"),
    "doctor": _Place("doctor.commands"),
    "drill": _group("drill.commands"),
    "operate": _Place("operate.commands"),
    "events": _group("events.commands"),
    "audit": _Place("audit.commands"),
    "webhooks": _group("webhooks.commands"),
    "tenants": _group("tenants.commands"),
    "keys": _group("tenants.keys"),
    "upload-tokens": _group("upload_tokens.commands"),
    "delivery": _group("delivery.commands"),
    "usage": _Place("usage.commands"),
    "capacity": _Place("capacity.commands"),
    "build": _Place("local.build"),
    "local": _group("local.commands"),
}
"""The commands, in the order in which the help lists them."""

_ON_LINUX = {
    "build": "Build the stack for AWS, with the SAM CLI and the Python of a checkout.",
    "local": "Run the whole system on one machine.",
}


def _elsewhere(context: typer.Context) -> None:
    raise ApiError(
        f"`darkroom {context.info_name}` needs Linux and a checkout of Darkroom: run it there as "
        f"`./darkroom {context.info_name}`."
    )


def _with(names: Iterable[str]) -> typer.Typer:
    """The app with these commands: only their modules are imported, because most of a start goes into imports."""
    app = typer.Typer(
        name="darkroom",
        cls=_Commands,
        help=_HELP,
        epilog=_EPILOG,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_show_locals=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in names:
        panel: Any = {"rich_help_panel": "On Linux, in a checkout"} if name in _ON_LINUX else {}
        if name in _ON_LINUX and not HAS_LOCAL_STACK:
            anything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
            app.command(name, help=_ON_LINUX[name], context_settings=anything, **panel)(_elsewhere)
            continue
        place = _PLACES[name]
        module = import_module(f"darkroom_cli.{place.module}")
        if place.epilog is None:
            app.add_typer(getattr(module, place.name), name=name, **panel)
        else:
            app.command(name, epilog=getattr(module, place.epilog), **panel)(getattr(module, place.name))
    return app


@cache
def whole() -> typer.Typer:
    """The app with all commands."""
    return _with(_PLACES)


def main() -> None:
    """Runs the command line and exits with the command's status."""
    asked = [word for word in sys.argv[1:2] if word in _PLACES]
    command = get_command(_with(asked) if asked else whole())
    for each in _with_subcommands(command):
        each.help, each.epilog = (text and as_typed(text) for text in (each.help, each.epilog))
    command(prog_name=COMMAND)


def _with_subcommands(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _with_subcommands(each)
