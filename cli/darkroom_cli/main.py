"""The `darkroom` command: its subcommands, and how their errors end."""

from __future__ import annotations

import importlib.metadata
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from darkroom_cli.audit import commands as audit
from darkroom_cli.backfill import commands as backfill
from darkroom_cli.batches import commands as batches
from darkroom_cli.capacity import commands as capacity
from darkroom_cli.delay import commands as delays
from darkroom_cli.delivery import commands as delivery
from darkroom_cli.differences import commands as differences
from darkroom_cli.dlq import commands as dead_letters
from darkroom_cli.doctor import commands as doctor
from darkroom_cli.drill import commands as drills
from darkroom_cli.events import commands as events
from darkroom_cli.images import commands as images
from darkroom_cli.imports import commands as imports
from darkroom_cli.logs import commands as logs
from darkroom_cli.operate import commands as operate
from darkroom_cli.orphans import commands as orphans
from darkroom_cli.parts import commands as parts
from darkroom_cli.pauses import commands as pauses
from darkroom_cli.places import COMMAND, HAS_LOCAL_STACK, IS_CHECKOUT, ROOT, as_typed
from darkroom_cli.restore import commands as restore
from darkroom_cli.schedules import commands as schedules
from darkroom_cli.tenants import commands as tenants
from darkroom_cli.tenants import keys
from darkroom_cli.terminal import display
from darkroom_cli.top import commands as top
from darkroom_cli.trace import commands as trace
from darkroom_cli.upload import commands as upload
from darkroom_cli.upload_tokens import commands as upload_tokens
from darkroom_cli.usage import commands as usage
from darkroom_cli.variants import commands as variants
from darkroom_cli.webhooks import commands as webhooks
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


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of every command; their callbacks do the work."""


app.command("upload", epilog=upload.EPILOG)(upload.command)
app.command("status", epilog=images.STATUS_EPILOG)(images.status)
app.command("edit", epilog=variants.EDIT_EPILOG)(variants.edit)
app.add_typer(variants.app, name="variants")
app.add_typer(batches.app, name="batches")
app.command("import", epilog=imports.EPILOG)(imports.command)
app.command("download", epilog=images.DOWNLOAD_EPILOG)(images.download)
app.command("top", epilog=top.EPILOG)(top.command)
app.command("ls", epilog=images.LS_EPILOG)(images.ls)
app.command("visibility", epilog=images.VISIBILITY_EPILOG)(images.visibility)
app.command("rm", epilog=images.RM_EPILOG)(images.rm)
app.command("logs", epilog=logs.EPILOG)(logs.command)
app.command("trace", epilog=trace.EPILOG)(trace.command)
app.add_typer(delays.app, name="delay")
app.add_typer(backfill.app, name="backfill")
app.add_typer(schedules.app, name="schedules")
app.add_typer(differences.app, name="differences")
app.add_typer(pauses.pausing, name="pause")
app.add_typer(pauses.resuming, name="resume")
app.add_typer(dead_letters.app, name="dlq")
app.command("redo", epilog=images.REDO_EPILOG)(images.redo)
app.add_typer(orphans.app, name="orphans")
app.add_typer(parts.app, name="parts")
app.command("restore", epilog=restore.EPILOG)(restore.command)
app.command("doctor", epilog=doctor.EPILOG)(doctor.command)
app.add_typer(drills.app, name="drill")
app.command("operate", epilog=operate.EPILOG)(operate.command)
app.add_typer(events.app, name="events")
app.command("audit", epilog=audit.EPILOG)(audit.command)
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(tenants.app, name="tenants")
app.add_typer(keys.app, name="keys")
app.add_typer(upload_tokens.app, name="upload-tokens")
app.add_typer(delivery.app, name="delivery")
app.command("usage", epilog=usage.EPILOG)(usage.command)
app.command("capacity", epilog=capacity.EPILOG)(capacity.command)

_LINUX = "On Linux, in a checkout"

if HAS_LOCAL_STACK:
    from darkroom_cli.local import build
    from darkroom_cli.local import commands as local

    app.command("build", epilog=build.EPILOG, rich_help_panel=_LINUX)(build.command)
    app.add_typer(local.app, name="local", rich_help_panel=_LINUX)
else:

    def _elsewhere(context: typer.Context) -> None:
        raise ApiError(
            f"`darkroom {context.info_name}` needs Linux and a checkout of Darkroom: run it there as "
            f"`./darkroom {context.info_name}`."
        )

    _any: Any = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    for _name, _what in (
        ("build", "Build the stack for AWS, with the SAM CLI and the Python of a checkout."),
        ("local", "Run the whole system on one machine."),
    ):
        app.command(_name, help=_what, rich_help_panel=_LINUX, context_settings=_any)(_elsewhere)


def main() -> None:
    """Runs the command line and exits with the command's status."""
    command = get_command(app)
    for each in _with_subcommands(command):
        each.help, each.epilog = (text and as_typed(text) for text in (each.help, each.epilog))
    command(prog_name=COMMAND)


def _with_subcommands(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _with_subcommands(each)
