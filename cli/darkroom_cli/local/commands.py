"""`darkroom local …`: the stack on this machine, from its start to its logs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from darkroom.parts import PARTS
from darkroom_cli.local import invoke, pages
from darkroom_cli.local.develop import develop_photo, print_curl_lines
from darkroom_cli.terminal import display
from darkroom_cli.terminal.browser import open_in_browser
from darkroom_cli.terminal.durations import seconds_of
from darkroom_client import Darkroom
from local_aws import clock, environment, template_parameters
from local_aws.paths import State
from local_aws.processes import Child, Interrupted, Interrupts
from local_aws.stack import stop
from local_aws.stacks.record import StackRecord

# boto3, which the supervisor and the logs need, is imported inside the commands: others should not wait for it.

_FOLLOW_SECONDS = 0.5

_Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of template.yaml: ExtraInputFormats=avif,heic. For several, repeat it.",
        show_default=False,
    ),
]


class LocalAccess(StrEnum):
    """The credential for the API; on AWS there are also `jwt` and `iam`."""

    ANONYMOUS = "anonymous"
    KEYS = "keys"


class Encryption(StrEnum):
    """Whose key encrypts stored data."""

    AWS = "aws"
    CUSTOMER = "customer"


_Develop = Annotated[
    Path | None,
    typer.Option(
        metavar="PHOTO",
        exists=True,
        dir_okay=False,
        readable=True,
        help="Develop this photo once the stack is up, and show its variants.",
    ),
]
_Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
_ThenExit = Annotated[
    bool, typer.Option("--then-exit", help="Stop once everything has been shown, instead of serving until Ctrl-C.")
]
_AccessOption = Annotated[
    LocalAccess, typer.Option(help="Who may call the API: everybody, or callers with a key. `stack.json` has one.")
]
_EncryptionOption = Annotated[
    Encryption, typer.Option(help="Whose key encrypts stored data: AWS's, or one that the stack creates.")
]
_AllowedOrigins = Annotated[
    str,
    typer.Option(
        "--allowed-origins",
        metavar="ORIGINS",
        help="Websites that may call the API, with commas between them: http://localhost:3000. None by default.",
    ),
]
_SnapStart = Annotated[
    bool, typer.Option("--snap-start", help="Publish versions of the API's functions, as for SnapStart.")
]
_Core = Annotated[
    bool, typer.Option("--core", help="Deploy the core alone, without webhooks, usage, imports and the page.")
]
_Delivery = Annotated[
    bool, typer.Option("--delivery", help="Deploy delivery, too: the stack that serves public images as by CloudFront.")
]
_EnforceIam = Annotated[
    bool, typer.Option("--enforce-iam", help="Evaluate IAM: each function may do only what its role allows.")
]
_Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        metavar="N",
        min=1,
        show_default="8 per core, if a quarter of the memory holds them",
        help="How many invocations of one function run at once. Others are throttled, as on AWS.",
    ),
]


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="The stack on this machine: the real template on an embedded AWS. Needs no Docker, no account, no token.",
)


@app.command()
def up(
    *,
    develop: _Develop = None,
    open_page: _Open = False,
    then_exit: _ThenExit = False,
    access: _AccessOption = LocalAccess.ANONYMOUS,
    encryption: _EncryptionOption = Encryption.AWS,
    allowed_origins: _AllowedOrigins = "",
    snap_start: _SnapStart = False,
    core: _Core = False,
    delivery: _Delivery = False,
    settings: _Set = None,
    enforce_iam: _EnforceIam = False,
    concurrency: _Concurrency = None,
) -> None:
    """Start the stack: emulator, sam build, sam deploy.

    It serves until Ctrl-C, which stops everything and forgets all images. Until
    then it tells of each alarm that fires or clears.
    The exit status is 0 only if every step succeeded.

      ./darkroom local up --develop photo.jpg              as `make run`
      ./darkroom local up --develop photo.jpg --then-exit  as `make demo`
      ./darkroom local up --open                           shows the page
      ./darkroom local up --set ExtraInputFormats=avif,heic --set MaxUploadBytes=50000000
    """
    parameters = _parameters(
        settings,
        {
            "--access": ("Access", access.value, LocalAccess.ANONYMOUS.value),
            "--allowed-origins": ("AllowedOrigins", allowed_origins, ""),
            "--encryption": ("Encryption", encryption.value, Encryption.AWS.value),
            "--snap-start": ("SnapStart", "PublishedVersions" if snap_start else "None", "None"),
        }
        | ({f"--core ({name})": (name, "false", "true") for name in map(str.capitalize, PARTS)} if core else {}),
    )
    if develop is not None:
        _require_a_known_credential(parameters)
    if open_page and parameters.get("Page") == "false":
        raise typer.BadParameter("this stack has no page", param_hint="--open")
    _run(
        parameters,
        enforce_iam=enforce_iam,
        concurrency=concurrency,
        extensions=["delivery"] if delivery else [],
        develop=develop,
        open_page=open_page,
        then_exit=then_exit,
    )


def _require_a_known_credential(parameters: Mapping[str, str]) -> None:
    if parameters["Access"] not in [*LocalAccess]:
        raise typer.BadParameter(
            f"with Access={parameters['Access']} the API asks for a credential that is made elsewhere. "
            "Start the stack without this option, and send the photo yourself.",
            param_hint="--develop",
        )


def _run(
    parameters: Mapping[str, str],
    *,
    enforce_iam: bool,
    concurrency: int | None,
    extensions: list[str],
    develop: Path | None,
    open_page: bool,
    then_exit: bool,
) -> None:
    """Starts the stack, shows what is asked for, and serves until Ctrl-C; at the end everything is stopped."""
    out, state, steps = display.output(), State.current(), pages.Steps(display.output(), pages.command_began())
    well, serving = True, False
    with Interrupts() as interrupts:
        from local_aws.supervisor import local_stack  # noqa: PLC0415

        environment.enter(state)
        try:
            with (
                pages.failures_explained(state),
                steps.then("stop") as begin_stop,
                local_stack(
                    state,
                    parameters=parameters,
                    enforce_iam=enforce_iam,
                    concurrency=concurrency,
                    extensions=extensions,
                    interrupts=interrupts,
                    step=steps,
                ) as (stack, emulator),
            ):
                steps.add_up()
                pages.introduce(out, state, stack)
                if open_page:
                    open_in_browser(pages.page_url(stack))
                if develop is not None:
                    with interrupts.raised_at_once():
                        well = _develop(out, state, stack, develop, steps)
                if then_exit:
                    begin_stop()
                    raise typer.Exit(0 if well else 1)
                display.line(out)
                if pages.has_part(stack, "page"):
                    display.line(out, f"Open {pages.page_url(stack)} in a browser, and send your own photos there.")
                display.line(out, "Serving until Ctrl-C. After an edit: ./darkroom local deploy", style="bold")
                serving = True
                _serve(out, stack, emulator, interrupts)
        except Interrupted as interrupt:
            display.line(out, "\nStopped: no process of the local stack is running any more.")
            # Ctrl-C is how serving is meant to end; before that, it is an interrupted command.
            raise typer.Exit((0 if well else 1) if serving else interrupt.exit_status) from None


def _serve(out: Console, stack: StackRecord, emulator: Child, interrupts: Interrupts) -> None:
    """Serves until Ctrl-C, and tells of each alarm that fires or clears."""
    from darkroom_cli.local.alarms import ActiveAlarms, sweep_once  # noqa: PLC0415
    from local_aws.logs import IMPATIENT  # noqa: PLC0415
    from local_aws.stacks.running import recorded_stack  # noqa: PLC0415
    from local_aws.supervisor import serve  # noqa: PLC0415

    running_stack = recorded_stack(stack, config=IMPATIENT)
    sweep_once(running_stack, pause=interrupts.pause)
    alarms = ActiveAlarms(
        running_stack.client("cloudwatch"),
        f"{stack.stack_name}-",
        out,
        warnings=running_stack.physical_id("WarningAlarms"),
    )
    serve(emulator, interrupts, look=alarms.look)


@app.command()
def deploy(*, settings: _Set = None) -> None:
    """Build and deploy to the running stack.

    An edited handler, preset, layer or template is live in seconds. The stack
    keeps the parameters that it has, but for those that are set.

      ./darkroom local deploy --set MaxUploadBytes=50000000
    """
    out, state = display.output(), State.current()
    began = time.monotonic()
    with _as_option():
        parameters = template_parameters.read(settings or ())
    with Interrupts() as interrupts:
        from local_aws.supervisor import redeploy  # noqa: PLC0415

        environment.enter(state)
        try:
            with pages.failures_explained(state), _as_option():
                stack = redeploy(
                    state, parameters=parameters, interrupts=interrupts, step=pages.Steps(out, pages.command_began())
                )
        except Interrupted as interrupt:
            display.line(out, "\nStopped; the stack may have half of the change: run `./darkroom local deploy` again.")
            raise typer.Exit(interrupt.exit_status) from None
    display.line(out, f"Live after {display.seconds(time.monotonic() - began)} at {stack.api_url}", style="green")


@app.command()
def down() -> None:
    """Stop the running stack, from another terminal or a script.

    It is not an error if none is running.
    """
    out = display.output()
    display.line(out, "Stopped." if stop(State.current()) else "No local stack is running.")


@app.command()
def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep showing what is logged, until Ctrl-C.")] = False,
) -> None:
    """Show the emulator's own log. What the functions log: ./darkroom logs."""
    log = State.current().logs / "emulator.log"
    if not log.exists():
        display.complain("There is no log: no local stack was started here yet.")
        raise typer.Exit(1)
    out = display.output()
    with Interrupts() as interrupts, log.open(encoding="utf-8", errors="replace") as file:
        try:
            with interrupts.raised_at_once():
                while True:
                    for line in file:
                        display.line(out, display.printable(line.rstrip("\n")))
                    if not follow:
                        return
                    time.sleep(_FOLLOW_SECONDS)
        except Interrupted:
            return  # Ctrl-C is how following is meant to end


app.command("invoke")(invoke.invoke)


def _warp_seconds(text: str | None) -> str | None:
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise typer.BadParameter(display.printable(str(error))) from error
    if seconds is not None and not 1 <= seconds <= clock.LONGEST_WARP_SECONDS:
        raise typer.BadParameter(f"the clock moves ahead by 1s to {clock.LONGEST_WARP_SECONDS // 86_400}d at once.")
    return text


@app.command()
def warp(
    duration: Annotated[
        str | None,
        typer.Argument(metavar="[DURATION]", help="How far: 90s, 30m, 6h, 30d.", callback=_warp_seconds),
    ] = None,
) -> None:
    """Move the stack's clock ahead, so that what waits for its time comes due now.

    The emulator and all functions use this clock: queues, schedules, state
    machines, leases, presigned URLs and alarms follow it, and nothing happens
    before its time. The clock only goes forward. When the stack is started again,
    it is this machine's clock again. Without DURATION: show the stack's time.
    `local invoke` uses this machine's clock.

      ./darkroom upload photo.jpg --delay P30D
      ./darkroom local warp 30d
    """
    out, state = display.output(), State.current()
    with Interrupts() as interrupts, pages.failures_explained(state):
        from local_aws.warp import now, warp  # noqa: PLC0415

        seconds = seconds_of(duration)
        moment = now(state) if seconds is None else warp(state, round(seconds), pause=interrupts.pause)
        ahead = timedelta(seconds=clock.seconds_ahead(state.clock))
        compared = f"{ahead} ahead of this machine's" if ahead else "the same as this machine's"
        display.line(out, f"The stack's clock says {moment:%Y-%m-%d %H:%M:%S} UTC: {compared}.")


def _parameters(settings: list[str] | None, options: Mapping[str, tuple[str, str, str]]) -> dict[str, str]:
    """The parameters of the template by both ways to choose them: an option has one of its own, its value, and that
    without the option."""
    with _as_option():
        chosen = template_parameters.read(settings or ())
        for option, (name, value, default) in options.items():
            if value != default and chosen.get(name, value) != value:
                raise template_parameters.InvalidParameter(f"{name} has another value by {option}. Name it once.")
        parameters = {name: value for name, value, _ in options.values()} | chosen
        template_parameters.check_rules(parameters)
    return parameters


@contextmanager
def _as_option() -> Iterator[None]:
    try:
        yield
    except template_parameters.InvalidParameter as error:
        raise typer.BadParameter(display.printable(str(error)), param_hint="--set") from error


def _develop(out: Console, state: State, stack: StackRecord, photo: Path, step: pages.Steps) -> bool:
    from darkroom_cli.local.hear import hearing  # noqa: PLC0415
    from darkroom_cli.stack.operators import open_stack  # noqa: PLC0415

    state.developed.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        show_event_of = None
        if pages.has_part(stack, "webhooks"):  # nothing else publishes what it would wait for
            with step("listener"):
                show_event_of = opened.enter_context(hearing(open_stack(None, None), out))
        api = Darkroom(stack.api_url, stack.api_key, is_local_stack=True)
        image_id = develop_photo(api, photo, out, state.developed)
        display.line(out)
        print_curl_lines(stack.api_url, out, stack.api_key)
        if image_id is None or show_event_of is None:
            return image_id is not None
        display.line(out)
        return show_event_of(image_id)
