"""`darkroom schedules`: list the recurring jobs, and add, run, pause or remove them."""

from __future__ import annotations

from typing import Annotated

import typer

from darkroom_cli.options import JsonOption, option
from darkroom_cli.stack.target import RegionOption, StackOption, reach
from darkroom_cli.terminal import display
from darkroom_cli.terminal.durations import seconds_of

_HELP = """Recurring jobs: list them, add your own, run, pause or remove them.

The stack looks at them every minute. Each has one run at a time.
"""

_EPILOG = """[bold]Examples[/bold]

  ./darkroom schedules ls
  ./darkroom schedules add nightly --cron "0 4 * * *" --timezone Europe/Berlin --job announce --target acme
  ./darkroom schedules add evening --cron "0 22 * * *" --job resume_backfill --target ID
  ./darkroom schedules run nightly        [dim]one run now, beside the planned ones[/dim]

[bold]Exit status[/bold]

  0    it worked, or it was so already
  1    it failed: standard error says why and what to do
  2    the command was not understood; nothing was done"""

app = typer.Typer(help=_HELP, epilog=_EPILOG, no_args_is_help=True, rich_markup_mode="rich")


def _duration(text: str) -> str:
    try:
        seconds_of(text)
    except ValueError as error:
        raise typer.BadParameter(display.printable(str(error))) from error
    return text


def _policy(text: str) -> str:
    if text not in ("catch_up", "skip"):
        raise typer.BadParameter(f"{display.printable(text)!r} is neither catch_up nor skip.")
    return text


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.", show_default=False)]
CronOption = Annotated[
    str, option("--cron", "CRON", "When: minute, hour, day of month, month, day of week, as in 0 4 * * mon-fri.")
]
TimezoneOption = Annotated[str, option("--timezone", "ZONE", "Whose clock that is, as Europe/Berlin.")]
JobOption = Annotated[str, option("--job", "JOB", "announce, pause_backfill or resume_backfill.")]
TargetOption = Annotated[str | None, option("--target", "ID", "The tenant to announce to, or the backfill.")]
MissedOption = Annotated[
    str,
    option(
        "--missed", "POLICY", "What becomes of runs that an outage or a pause kept from beginning.", callback=_policy
    ),
]
JitterOption = Annotated[
    str, option("--jitter", "DURATION", "Begin up to so much later, each time otherwise.", callback=_duration)
]


@app.command("ls")
def list_(*, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None) -> None:
    """List all schedules."""
    from darkroom_cli.schedules import work  # noqa: PLC0415 - what talks to AWS takes half a second to import

    work.list_(reach(stack, region), as_json=as_json)


@app.command("show")
def show(
    name: NameArgument, *, as_json: JsonOption = False, stack: StackOption = None, region: RegionOption = None
) -> None:
    """Show a schedule: its next run, and how the latest ended."""
    from darkroom_cli.schedules import work  # noqa: PLC0415

    work.show(reach(stack, region), name, as_json=as_json)


@app.command("add")
def add(
    name: NameArgument,
    *,
    cron: CronOption,
    job: JobOption,
    target: TargetOption = None,
    timezone: TimezoneOption = "UTC",
    missed: MissedOption = "skip",
    jitter: JitterOption = "0s",
    stack: StackOption = None,
    region: RegionOption = None,
) -> None:
    """Add a schedule."""
    from darkroom_cli.schedules import work  # noqa: PLC0415

    plan = work.plan_of(
        name, cron=cron, timezone=timezone, job=job, target=target, missed=missed, jitter_seconds=seconds_of(jitter)
    )
    work.add(reach(stack, region), plan)


@app.command("run")
def run(name: NameArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """Have one run begin within a minute, beside the planned ones."""
    from darkroom_cli.schedules import work  # noqa: PLC0415

    work.decide(reach(stack, region), name, "run")


@app.command("pause")
def pause(name: NameArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """Have it begin no further run; what runs ends."""
    from darkroom_cli.schedules import work  # noqa: PLC0415

    work.decide(reach(stack, region), name, "pause")


@app.command("resume")
def resume(name: NameArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """Let it go on; what it missed is caught up or skipped, as it says."""
    from darkroom_cli.schedules import work  # noqa: PLC0415

    work.decide(reach(stack, region), name, "resume")


@app.command("remove")
def remove(name: NameArgument, *, stack: StackOption = None, region: RegionOption = None) -> None:
    """Remove it, unless it runs."""
    from darkroom_cli.schedules import work  # noqa: PLC0415

    work.decide(reach(stack, region), name, "remove")
