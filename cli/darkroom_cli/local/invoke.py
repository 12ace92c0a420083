"""`darkroom local invoke`: runs one function in a container with `sam local invoke`, on the running stack."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from darkroom_cli.terminal import display
from local_aws import docker_engine, environment
from local_aws.docker_engine import NoDockerEngine
from local_aws.failures import NotRunning
from local_aws.lambda_base_image import ImageNotBuilt
from local_aws.paths import State

_EVENTS = Path(__file__).resolve().parents[3] / "events"


def invoke(
    function: Annotated[
        str | None, typer.Argument(metavar="FUNCTION", help="The name of its folder: submit_image.", show_default=False)
    ] = None,
    event: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            readable=True,
            help="The event, as JSON. Default: events/FUNCTION.json",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run one deployed function with an event, in a container.

    It uses the tables and buckets of the running stack. This is `sam local
    invoke`, which needs a Docker engine. The function's log goes to standard
    error, its response to standard output; the exit status is 1 if it failed. It
    runs the code that was deployed last: after an edit, run `./darkroom local
    deploy`.

      ./darkroom local invoke submit_image
      ./darkroom local invoke read_image --event my-event.json
    """
    # Imported here because they import boto3, which other commands of `darkroom` should not wait for.
    from local_aws import local_invoke  # noqa: PLC0415
    from local_aws.logs import folder_name  # noqa: PLC0415

    known = sorted(file.stem for file in _EVENTS.glob("*.json"))
    if function is None or folder_name(function) not in known:
        problem = "name a function" if function is None else f"there is no function {display.printable(function)!r}"
        listed = "\n".join(f"  make invoke FN={name}" for name in known)
        display.complain(f"{problem}:\n{listed}")
        raise typer.Exit(2)
    function, state = folder_name(function), State.current()
    file = event or _EVENTS / f"{function}.json"
    try:
        engine = docker_engine.host()
        environment.enter(state)
        os.environ["DOCKER_HOST"] = engine
        answer = local_invoke.invoke(state, function, file)
    except local_invoke.UnknownFunction as error:
        raise typer.BadParameter(str(error), param_hint="FUNCTION") from error
    except (NotRunning, NoDockerEngine, ImageNotBuilt, local_invoke.NotReachable) as error:
        display.complain(str(error))
        raise typer.Exit(1) from error
    if answer.payload is not None:
        display.print_json(answer.payload)
    if answer.error:
        display.complain(answer.error)
        raise typer.Exit(1)
