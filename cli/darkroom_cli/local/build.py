"""`darkroom build`: builds the stack for AWS, with the SAM CLI and the Python of this checkout."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from darkroom_cli.local import pages
from darkroom_cli.terminal import display
from local_aws.paths import State
from local_aws.processes import Interrupted, Interrupts
from local_aws.project import given
from local_aws.stack import deploying

EPILOG = """[bold]Examples[/bold]

  ./darkroom build --config-env staging
  ./darkroom build --config-env prod --architecture x86_64
  ./darkroom build --config-env prod --delivery    [dim]extensions/delivery.yaml[/dim]"""


class Architecture(StrEnum):
    """The processors that Lambda has."""

    ARM64 = "arm64"
    X86_64 = "x86_64"


def command(
    *,
    environment: Annotated[
        str,
        typer.Option("--config-env", metavar="ENV", help="An environment of samconfig.toml: staging or prod."),
    ],
    architecture: Annotated[
        Architecture | None,
        typer.Option(help="The processor of the functions. Default: that of samconfig.toml.", show_default=False),
    ] = None,
    delivery: Annotated[
        bool, typer.Option("--delivery", help="Build the stack that delivers images, which is deployed by itself.")
    ] = False,
) -> None:
    """Build the stack for AWS, for `sam deploy`.

    Any Python 3 will do, and it needs no AWS account: it installs SAM CLI with
    Python 3.13 under .darkroom/, and downloads the packages for the processor of
    the functions. Nothing is deployed.
    """
    # Imported here because they import boto3, which other commands should not wait for.
    from local_aws.build import build_for_aws, built_for_aws, configured_parameters, environments_of_aws  # noqa: PLC0415
    from local_aws.supervisor import make_environments  # noqa: PLC0415

    if environment not in (known := environments_of_aws()):
        raise typer.BadParameter(
            f"samconfig.toml has no environment {environment!r} for AWS: name one of {', '.join(known)}.",
            param_hint="--config-env",
        )
    parameters = {} if architecture is None else {"Architecture": architecture.value}
    extension = next(each for each in given().extensions if each.name == "delivery") if delivery else None
    out, state, step = display.output(), State.current(), pages.Steps(display.output(), pages.command_began())
    with Interrupts() as interrupts:
        try:
            with pages.failures_explained(state), deploying(state, interrupts.pause):
                with step("environments") as show:
                    make_environments(state, "sam", interrupts=interrupts, show=show)
                with step("build") as show:
                    build_for_aws(
                        state,
                        environment,
                        parameters=parameters,
                        extension=extension,
                        interrupts=interrupts,
                        show=show,
                    )
        except Interrupted as interrupt:
            raise typer.Exit(interrupt.exit_status) from None
    # The first is the template's own.
    used = {"Architecture": Architecture.ARM64.value, **configured_parameters(environment), **parameters}
    built = f"Built for {used['Architecture']} into {built_for_aws(extension)}. "
    if delivery:
        display.line(out, f"{built}How to deploy it:  ./darkroom delivery parameters --stack NAME")
        return
    display.line(out, f"{built}Deploy it with the same Architecture:")
    display.line(
        out,
        f"{os.path.relpath(given().sam)} deploy --config-env {environment} "
        f"--parameter-overrides {' '.join(f'{name}={value}' for name, value in used.items())} …",
    )
