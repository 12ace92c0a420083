"""`darkroom drill`: rehearses incidents on a real stack, and puts everything back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from darkroom_cli.options import JsonOption, duration, option
from darkroom_cli.places import HAS_LOCAL_STACK
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal import display
from darkroom_cli.terminal.durations import seconds_of
from darkroom_client.client import ApiError

if TYPE_CHECKING:
    from darkroom_cli.drill.result import DrillResult
    from repository.report import Goal

_HELP = """Game days: breaks something for real, waits for the alarms, shows what an
operator would see, and puts everything back.

How everything was before is noted in the stack, before anything is changed.
"""

EPILOG = """[bold]Examples[/bold]

  ./darkroom drill ls
  ./darkroom drill sweeper-off
  ./darkroom drill lane-stopped --stack darkroom-staging
  ./darkroom drill undo                  [dim]after one that was killed[/dim]

[bold]Exit status[/bold]

  0    the alarms fired and cleared as the drill says
  1    they did not, or it could not begin: the output says why
  2    the command was not understood
  130  interrupted, and everything was put back"""


class _Drills(TyperGroup):
    """The commands; whatever is none of them is the name of a drill to run."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from darkroom_cli.drill.drills import DRILLS  # noqa: PLC0415

        return super().get_command(ctx, cmd_name) or (self.commands["run"] if cmd_name in DRILLS else None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        is_name = args and args[0] not in self.commands and not args[0].startswith("-")
        return super().resolve_command(ctx, ["run", *args] if is_name else args)


app = typer.Typer(cls=_Drills, help=_HELP, epilog=EPILOG, no_args_is_help=True, rich_markup_mode="rich")

MOST_SECONDS = 15 * 60
"""How long all drills may take."""


def goals_of(results: Sequence[DrillResult]) -> list[Goal]:
    """What all drills together have to show."""
    from darkroom_cli.drill.drills import INCIDENT  # noqa: PLC0415
    from repository.report import Goal  # noqa: PLC0415

    failed = sum(bool(result.problems) for result in results)
    pages = sum(result.pages - int(INCIDENT in result.fired) for result in results)
    return [
        Goal(name="drills not as expected", value=failed, limit=0, at_least=False),
        Goal(name="pages beyond one per incident", value=pages, limit=0, at_least=False),
        Goal(name="seconds", value=sum(result.seconds for result in results), limit=MOST_SECONDS, at_least=False),
    ]


KeepOption = Annotated[
    str,
    typer.Option(
        "--keep-for",
        metavar="D",
        help="How long the switches may stay thrown: after that the drill gives up, and puts them back.",
        callback=duration,
    ),
]
ProductionOption = Annotated[
    bool, typer.Option("--yes-in-production", help="Run it although this is a production stack.")
]


@app.command("ls")
def list_(*, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """List the drills, and the one that is open, if there is one."""
    from darkroom_cli.drill import work  # noqa: PLC0415

    work.list_(reach(stack, region), as_json=as_json)


@app.command()
def run(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which: see `drill ls`.")],
    keep_for: KeepOption = "2h",
    in_production: ProductionOption = False,
    api_token: Annotated[
        str | None,
        option(
            "--api-token",
            "TOKEN",
            "With Access=jwt: the token with which the drill uploads. Better: set the variable; `ps` shows this.",
            envvar="DARKROOM_API_KEY",
        ),
    ] = None,
    as_json: JsonOption = False,
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Run a drill. On the local stack its clock is moved meanwhile.

    Ctrl-C ends it early, and puts everything back.
    """
    from darkroom_cli.drill import pages, work  # noqa: PLC0415
    from darkroom_cli.drill.drills import DRILLS  # noqa: PLC0415

    if name not in DRILLS:
        raise typer.BadParameter(f"there is no drill {name!r}: {', '.join(DRILLS)}", param_hint="NAME")
    where = reach(stack, region)
    with where.explained():
        work.check_allowed(where, DRILLS[name], in_production=in_production)
    report: pages.DrillReport = pages.Silence() if as_json else pages.Page(display.output())
    with work.interruptible(report) as interrupts, where.explained():
        result = work.run(
            where,
            DRILLS[name],
            keep_seconds=seconds_of(keep_for) or 0,
            token=api_token,
            report=report,
            interrupts=interrupts,
        )
    report.end(result)
    if as_json:
        display.print_json(pages.document(result))
    if result.problems:
        raise typer.Exit(1)


@app.command()
def undo(*, stack: StackOption = None, region: RegionOption = None) -> None:
    """Put back what a drill has changed that was killed.

    It is not an error if none is open. What somebody else has set since is left
    as it is, and reported.
    """
    from darkroom_cli.drill import pages, work  # noqa: PLC0415

    where, out = reach(stack, region), display.output()
    with where.explained():
        opened = work.undo(where, pages.Page(out))
    display.line(
        out, "No drill is open: there is nothing to put back." if opened is None else "Everything is put back."
    )


@app.command("all")
def all_(
    *,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Only these; may be repeated.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run every drill on the local stack, one after another (on Linux, in a
    checkout).

    Start it with keys and permissions, so that there is something to take away:

      ./darkroom local up --access keys --enforce-iam
      ./darkroom drill all

    The result is also written to build/reports/drills.json.
    """
    if not HAS_LOCAL_STACK:
        raise ApiError("`darkroom drill all` needs Linux and a checkout of Darkroom: run it there.")
    from darkroom_cli.drill import pages, work  # noqa: PLC0415
    from darkroom_cli.drill.drills import DRILLS  # noqa: PLC0415
    from repository.report import write_report  # noqa: PLC0415

    unknown = set(only or ()) - DRILLS.keys()
    if unknown:
        raise typer.BadParameter(f"there is no drill {', '.join(sorted(unknown))}", param_hint="--only")
    where = reach(None, None)
    chosen = [drill for name, drill in DRILLS.items() if not only or name in only]
    out = display.output()
    report: pages.DrillReport = pages.Silence() if as_json else pages.Page(out)
    with work.interruptible(report) as interrupts, where.explained():
        skipped = [drill for drill in chosen if not work.is_there(where, drill)]
        chosen = [drill for drill in chosen if drill not in skipped]
        for drill in skipped:
            display.line(display.errors(), f"{drill.name} is left out: {where.name} is deployed without {drill.part}.")
        for drill in chosen:
            work.check_allowed(where, drill, in_production=False)
        results = work.run_all(where, chosen, keep_seconds=work.KEEP_SECONDS, report=report, interrupts=interrupts)
    if as_json:
        display.print_json([pages.document(result) for result in results])
    else:
        pages.summary(out, results)
    if not only:
        with redirect_stdout(sys.stderr):
            write_report("drills", seed=None, rows=[pages.document(each) for each in results], goals=goals_of(results))
    if any(result.problems for result in results):
        raise typer.Exit(1)
