"""Starts the local stack step by step, and removes all of it again however it ends."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from local_aws import clock, environment, stack
from local_aws.build import build, build_extension
from local_aws.deploy import await_answer, deploy
from local_aws.failures import CommandFailed
from local_aws.layers import DeployedLayers, Sources, restore
from local_aws.paths import State
from local_aws.processes import Child, Interrupts, run
from local_aws.project import Extension, given
from local_aws.stacks.record import StackRecord, write_record
from local_aws.stacks.running import recorded_stack
from local_aws.template_parameters import check_rules, still_known

# Opens a step by its name; the result shows a line about the step's progress.
Step = Callable[[str], AbstractContextManager[Callable[[str], None]]]


class _Wanted(NamedTuple):
    """What is deployed: the template's parameters, and which of the project's extensions."""

    parameters: Mapping[str, str]
    extensions: Sequence[str]


_IMPORTED_FROM = Path(__file__).resolve().parents[1]
_POLL_SECONDS = 0.02
_SERVE_SECONDS = 0.2


@contextmanager
def local_stack(
    state: State,
    *,
    parameters: Mapping[str, str],
    enforce_iam: bool = False,
    concurrency: int | None = None,
    extensions: Sequence[str] = (),
    interrupts: Interrupts,
    step: Step,
) -> Iterator[tuple[StackRecord, Child]]:
    """Start everything, and stop it at the end of the block; raises Interrupted and any of the failures. The second of
    the two is the emulator.

    `parameters` are those of the template that differ from samconfig.toml's; the stack's own key, if it needs one, is
    in stack.json. With `enforce_iam` each function may do only what its role allows. `concurrency` is how many
    invocations of each function run at once; None derives it from the machine. `extensions` names those of the
    project's that are deployed, too.
    """
    with stack.held(state), _session(state):
        with step("environments") as show:
            further = [name for extension in _wanted(extensions) for name in extension.environments]
            make_environments(state, "emulator", "sam", "runtime", *further, interrupts=interrupts, show=show)
        with _emulator(state, _options(enforce_iam, concurrency), interrupts) as child, _published(state):
            # `sam build` requires the profile, and calls no service.
            environment.write_aws_config(state, environment.NOWHERE, "of no use")

            def begun() -> StackRecord:
                with step("emulator"):
                    serving = _ready(state, child, interrupts)
                environment.write_aws_config(state, serving.aws_endpoint_url, serving.aws_secret)
                restore(state)
                return serving

            serving = _build_and_deploy(state, begun, _Wanted(parameters, extensions), interrupts, step)
            write_record(state.stack_file, serving)
            yield serving, child


def redeploy(state: State, *, parameters: Mapping[str, str], interrupts: Interrupts, step: Step) -> StackRecord:
    """Build and deploy to the running stack, which keeps its extensions, and all of its parameters but the given ones;
    raises Interrupted, InvalidParameter and any of the failures."""
    serving = stack.running(state)
    parameters = {**still_known(recorded_stack(serving).parameters), **parameters}
    check_rules(parameters)
    wanted = _Wanted(parameters, list(serving.extensions))
    serving = _build_and_deploy(state, lambda: serving, wanted, interrupts, step)
    stack.running(state)  # a stack that has stopped meanwhile must not be announced again
    write_record(state.stack_file, serving)
    return serving


def serve(emulator: Child, interrupts: Interrupts, *, look: Callable[[], None] = lambda: None) -> None:
    """Wait until a stop is requested (Interrupted) or the emulator exits on its own (CommandFailed); `look` is called
    again and again meanwhile."""
    while emulator.exit_status is None:
        interrupts.pause(_SERVE_SECONDS)
        look()
    raise CommandFailed("the emulator", emulator.exit_status, emulator.log)


def _build_and_deploy(
    state: State,
    begun: Callable[[], StackRecord],
    wanted: _Wanted,
    interrupts: Interrupts,
    step: Step,
) -> StackRecord:
    """Deploys to the emulator that `begun` describes; only the build does not need it, and may run while it starts."""
    with stack.deploying(state, interrupts.pause):
        # Before the build reads the files, so that an edit meanwhile counts as one after it.
        sources, deployed = Sources.now(), DeployedLayers.read(state)
        with step("build") as show:
            unchanged = deployed.unchanged(sources)
            template = build(state, interrupts=interrupts, show=show, deployed_layers=unchanged)
        serving = begun()
        with step("deploy") as show:
            parameters = dict(wanted.parameters)
            outputs = deploy(state, template, parameters=parameters, interrupts=interrupts, show=show)
            deployed.write_after(state, sources, template)
        of_extensions = dict[str, dict[str, str]]()
        for extension in _wanted(wanted.extensions):
            with step(extension.name) as show:
                made = _deploy_extension(state, extension, outputs, interrupts, show)
                parameters |= extension.given_back(made)
                outputs = deploy(state, template, parameters=parameters, interrupts=interrupts, show=show)
                of_extensions[extension.name] = made
        with step("API answers"):
            api_key = serving.api_key
            if api_key is None:
                api_key = given().credential(outputs, interrupts)
            await_answer(serving.api_url, interrupts, given().probe(outputs, api_key))
    return replace(serving, outputs=outputs, api_key=api_key, extensions=of_extensions)


def _wanted(names: Sequence[str]) -> list[Extension]:
    return [extension for extension in given().extensions if extension.name in names]


def _deploy_extension(
    state: State, extension: Extension, outputs: Mapping[str, str], interrupts: Interrupts, show: Callable[[str], None]
) -> dict[str, str]:
    layers = {name: layer.uri for name, layer in DeployedLayers.read(state).layers.items()}
    template = build_extension(state, extension, interrupts=interrupts, show=show, deployed_layers=layers)
    return deploy(
        state,
        template,
        parameters=extension.parameters(outputs),
        interrupts=interrupts,
        show=show,
        stack_name=extension.stack_name,
    )


def make_environments(state: State, *names: str, interrupts: Interrupts, show: Callable[[str], None]) -> None:
    """Create or renew Python environments; raises CommandFailed."""
    run(
        "setting up the Python environments",
        [given().setup, *names],
        environment=environment.child_environment(state),
        folder=given().root,
        log=state.logs / "environments.log",
        interrupts=interrupts,
        show=show,
    )


@contextmanager
def _session(state: State) -> Iterator[None]:
    """A folder for files that live only as long as the stack; removes one that a killed supervisor left behind."""
    stack.withdraw(state)
    shutil.rmtree(state.session, ignore_errors=True)
    state.temporary.mkdir(parents=True)
    try:
        yield
    finally:
        shutil.rmtree(state.session, ignore_errors=True)


@contextmanager
def _published(state: State) -> Iterator[None]:
    """Remove the ways to the stack as soon as it begins to stop: stack.json and the profile."""
    try:
        yield
    finally:
        stack.withdraw(state)
        state.aws_config.unlink(missing_ok=True)


def _options(enforce_iam: bool, concurrency: int | None) -> list[str]:
    return [
        *(["--enforce-iam"] if enforce_iam else []),
        *(["--concurrency", str(concurrency)] if concurrency is not None else []),
    ]


def _emulator(state: State, options: list[str], interrupts: Interrupts) -> Child:
    command: list[str | Path] = [
        *(given().emulator_python, "-m", "local_aws.server"),
        *("--ready-file", state.ready_file, "--data-dir", state.emulator_data, "--relay-file", state.relay_file),
        *("--function-python", given().function_python, "--layers-dir", given().unpacked_layers),
        *(option for function in given().initialised_ahead for option in ("--initialise", function)),
        *(
            "--how-to-sign",
            f"Use the profile {given().stack_name} in {_short(state.aws_config)} (AWS_CONFIG_FILE, AWS_PROFILE).",
        ),
        *("--how-to-allow", f"Name it: {given().command} up --allowed-origins ORIGIN"),
        *options,
    ]
    clock.set_ahead(state.clock, 0)
    variables = environment.child_environment(state, PYTHONPATH=str(_IMPORTED_FROM), PYTHONUNBUFFERED="1")
    variables |= clock.variables(given().emulator_python, state.clock)
    log = state.logs / "emulator.log"
    interrupts.check()
    return Child(command, environment=variables, folder=state.session, log=log, grace_seconds=2)


def _short(file: Path) -> str:
    return str(file.relative_to(given().root) if file.is_relative_to(given().root) else file)


def _ready(state: State, emulator: Child, interrupts: Interrupts) -> StackRecord:
    """Where the emulator listens, as soon as it does."""
    while not state.ready_file.exists():
        if emulator.exit_status is not None:
            raise CommandFailed("the emulator", emulator.exit_status, emulator.log)
        interrupts.pause(_POLL_SECONDS)
    ready = json.loads(state.ready_file.read_bytes())
    return StackRecord(
        api_url=ready["front_url"],
        aws_endpoint_url=ready["gateway_url"],
        aws_secret=ready["secret"],
        region=environment.REGION,
        stack_name=given().stack_name,
        clock_file=str(state.clock),
    )
