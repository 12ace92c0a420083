"""What the embedded AWS is given of the project that it runs: its files, its names, and what only it knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from local_aws.processes import Interrupts


@dataclass(frozen=True, kw_only=True)
class Check:
    """A command that reads the project's files before each build and fails if they are of no use; `module` runs with
    this interpreter, and imports from `folders`. Its log is `<log>.log`."""

    name: str
    module: str
    folders: Sequence[Path]
    log: str


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A request to the deployed API, and what a function answers to it, as API Gateway never does.

    If something else answers, each function of `behind` is invoked with its sample event, to see how it fails.
    """

    path: str
    status: HTTPStatus
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    behind: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Extension:
    """A second template of a project, a stack of its own that is deployed where it is asked for, after the project's.

    `parameters` makes its parameters of the outputs of the project's stack, and `given_back` makes of its outputs
    parameters with which that stack is deployed once more. `environments` names what it needs beside the others:
    `node` for CloudFront Functions.
    """

    name: str
    template: Path
    parameters: Callable[[Mapping[str, str]], Mapping[str, str]]
    given_back: Callable[[Mapping[str, str]], Mapping[str, str]]
    environments: Sequence[str] = ()

    @property
    def stack_name(self) -> str:
        """The name of its local stack."""
        return f"{given().stack_name}-{self.name}"


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project with a SAM template, and its environments.

    `home` has the Python environments and, unless the variable `state_variable` names another, the state folder.
    `setup` makes the environments that it is asked for by name. A build reads `folders` and `pins`. `command` begins
    the commands `up`, `deploy` and `down`, `start` is the shortest way to a running stack; messages name them.
    `credential` makes one for the stack's own commands, where the outputs say that the API asks for it; `probe` says
    by which request one sees that the API answers, with that credential. `extensions` are its further templates.
    """

    name: str
    root: Path
    home: Path
    setup: Path
    state_variable: str
    command: str
    start: str
    probe: Callable[[Mapping[str, str], str | None], Probe]
    credential: Callable[[Mapping[str, str], Interrupts], str | None] = lambda _outputs, _interrupts: None
    folders: Sequence[str] = ("functions", "layers")
    pins: Sequence[str] = ()
    initialised_ahead: Sequence[str] = ()
    check: Check | None = None
    extensions: Sequence[Extension] = ()

    @property
    def stack_name(self) -> str:
        """The name of the local stack, and of the AWS profile that leads to it."""
        return f"{self.name}-local"

    @property
    def template(self) -> Path:
        return self.root / "template.yaml"

    @property
    def samconfig(self) -> Path:
        return self.root / "samconfig.toml"

    @property
    def emulator_python(self) -> Path:
        return self.home / "venvs" / "emulator" / "bin" / "python"

    @property
    def function_python(self) -> Path:
        return self.home / "venvs" / "runtime" / "bin" / "python"

    @property
    def sam(self) -> Path:
        return self.home / "venvs" / "sam" / "bin" / "sam"

    @property
    def bytecode(self) -> Path:
        """The compiled modules of all stacks of the checkout."""
        return self.home / "bytecode"

    @property
    def unpacked_layers(self) -> Path:
        """The layers that all stacks of the checkout run, unpacked."""
        return self.home / "build" / "layers"


class NothingGiven(Exception):
    """This process has been given no project; the message says what to do."""


_projects: list[Project] = []


def give(project: Project) -> None:
    """Say which project this process runs."""
    _projects[:] = [project]


def given() -> Project:
    """The project that this process was given; raises NothingGiven."""
    if not _projects:
        raise NothingGiven(
            "Nobody has said which project this process runs: call local_aws.project.give(Project(…)), "
            "or import the module that calls it, before anything that builds, starts or addresses a stack."
        )
    return _projects[0]
