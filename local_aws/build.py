"""Builds the template with SAM CLI, for the local stack and for AWS; reuses downloaded packages, but never an outdated
source file."""

import hashlib
import json
import os
import platform
import shutil
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from local_aws.environment import child_environment, interpreter_folder, with_first_on_path
from local_aws.paths import State
from local_aws.processes import Interrupts, run
from local_aws.project import Extension, given

_MADE_FROM = "made-from"
_LOCAL = "local"
"""The local stack's environment in samconfig.toml."""
_WITHOUT_COLLECTIONS = """
import gc, runpy, sys
gc.disable()
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}


def build(
    state: State,
    *,
    interrupts: Interrupts,
    show: Callable[[str], None],
    deployed_layers: Mapping[str, str] | None = None,
) -> Path:
    """Run `sam build` and return the built template; raises CommandFailed.

    If it would read the same files as the last time, that build is used. Otherwise SAM CLI, with --cached, keeps the
    packages of each requirements.txt until that file changes, and copies every source file again (without
    `__pycache__`), so an edit is never missed. `deployed_layers`, by logical id, are not built: the template refers to
    the given S3 URIs.
    """
    prepare_sam(state)
    deployed_layers = deployed_layers or {}
    template = given().template
    # Before the build reads the files, so that an edit meanwhile counts as one after it.
    inputs = inputs_now()
    # SAM CLI drops the downloads of a layer that a build leaves out, so such a build has its own folder.
    is_whole = not deployed_layers or made_from(state.sam) == inputs
    folder = state.sam if is_whole else state.sam / "partial"
    excluded = [] if is_whole else sorted(deployed_layers)
    if made_from(folder) != (wanted := "\n".join([inputs, *excluded])):
        (folder / _MADE_FROM).unlink(missing_ok=True)  # guard: build-failed-leftovers-unused
        _sam_build(state, template, folder, excluded, interrupts=interrupts, show=show)
        _write_as_json(folder / "build")
        (folder / _MADE_FROM).write_text(wanted)
    return _to_deploy(folder, deployed_layers)


def build_extension(
    state: State,
    extension: Extension,
    *,
    interrupts: Interrupts,
    show: Callable[[str], None],
    deployed_layers: Mapping[str, str],
) -> Path:
    """The same for the template of an extension, whose layers with a name of `deployed_layers` are those."""
    folder = state.sam / extension.name
    own = {line[2:].partition(":")[0] for line in extension.template.read_text().splitlines() if line[:2] == "  "}
    shared = {layer: uri for layer, uri in deployed_layers.items() if layer in own}
    wanted = "\n".join([inputs_now(), fingerprint([extension.template]), *sorted(shared)])
    if made_from(folder) != wanted:
        (folder / _MADE_FROM).unlink(missing_ok=True)
        _sam_build(state, extension.template, folder, sorted(shared), interrupts=interrupts, show=show)
        _write_as_json(folder / "build")
        (folder / _MADE_FROM).write_text(wanted)
    return _to_deploy(folder, shared)


def _write_as_json(built: Path) -> None:
    """Makes the built templates JSON, which is YAML, too: to read them takes a tenth of the time, and SAM CLI does it
    five times while it deploys."""
    for template in built.rglob("template.yaml"):
        document = yaml.load(template.read_text(), Loader=yaml.CSafeLoader)
        template.write_text(json.dumps(document, default=str))  # a date is a text in CloudFormation


def _to_deploy(folder: Path, deployed_layers: Mapping[str, str]) -> Path:
    template = folder / "build" / "template.yaml"
    document = json.loads(template.read_text())
    for layer, uri in deployed_layers.items():
        document["Resources"][layer]["Properties"]["ContentUri"] = uri
    to_deploy = template.with_name("template-to-deploy.json")
    to_deploy.write_text(json.dumps(document))
    return to_deploy


def build_for_aws(
    state: State,
    environment: str,
    *,
    parameters: Mapping[str, str],
    extension: Extension | None = None,
    interrupts: Interrupts,
    show: Callable[[str], None],
) -> None:
    """Run `sam build` for an environment of samconfig.toml, into the folder in which `sam deploy` looks for its result,
    or, for an extension, into one with its name; raises CommandFailed.

    It differs from the local stack's in having the caller's variables: no service is called, but samconfig.toml may
    name a profile. `parameters` are the template's that differ from that environment's.
    """
    prepare_sam(state)
    # So that nobody deploys an earlier build after one that failed.
    built = built_for_aws(extension)
    shutil.rmtree(given().root / built, ignore_errors=True)  # guard: build-failed-deploys-nothing
    ambient = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    files = () if extension is None else ("--template-file", extension.template, "--build-dir", built)
    _run_sam_build(
        state,
        [*sam_command(), "build", *files, *sam_options(environment, **parameters)],
        environment={**ambient, "PYTHONPYCACHEPREFIX": str(given().bytecode), **_sam_settings(state)},
        folder=given().root,
        downloaded=given().root / ".aws-sam" / "downloaded",
        interrupts=interrupts,
        show=show,
    )


def built_for_aws(extension: Extension | None = None) -> str:
    """The folder of the checkout into which such a build goes."""
    return f".aws-sam/{'build' if extension is None else extension.name}"


def environments_of_aws() -> list[str]:
    """The environments of samconfig.toml that deploy to AWS."""
    return [name for name in tomllib.loads(given().samconfig.read_text()) if name not in ("version", _LOCAL)]


def inputs_now() -> str:
    """A fingerprint of all files that `sam build` reads, and of how its result is made here."""
    folders = [given().root / name for name in given().folders]
    return fingerprint(
        [*build_instructions(), Path(__file__), *(file for folder in folders for file in sources_in(folder))]
    )


def build_instructions() -> list[Path]:
    """The files that say how everything is built."""
    pins = [given().root / name for name in given().pins]
    return [given().template, given().samconfig, *pins]


def sources_in(folder: Path) -> list[Path]:
    """The files that a build takes from a folder."""
    return sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def made_from(folder: Path) -> str | None:
    """What the build in the folder was made from; None if there is none, or if its making was interrupted."""
    record, template = folder / _MADE_FROM, folder / "build" / "template.yaml"
    return record.read_text() if record.exists() and template.exists() else None


def _check(state: State, interrupts: Interrupts, show: Callable[[str], None]) -> None:
    check = given().check
    if check is not None:
        run(
            check.name,
            [sys.executable, "-m", check.module],
            environment={**child_environment(state), "PYTHONPATH": os.pathsep.join(map(str, check.folders))},
            folder=given().root,
            log=state.logs / f"{check.log}.log",
            interrupts=interrupts,
            show=show,
        )


def _sam_build(
    state: State,
    template: Path,
    folder: Path,
    excluded: Iterable[str],
    *,
    interrupts: Interrupts,
    show: Callable[[str], None],
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _run_sam_build(
        state,
        [
            *(*sam_command(), "build", "--cached", "--parallel", "--template-file", template),
            *("--build-dir", folder / "build", "--cache-dir", folder / "cache"),
            *local_options(),
            *(option for layer in excluded for option in ("--exclude", layer)),
        ],
        environment=sam_environment(state),
        folder=folder,
        downloaded=folder / "downloaded",
        interrupts=interrupts,
        show=show,
    )


def _run_sam_build(
    state: State,
    command: list[str | Path],
    *,
    environment: Mapping[str, str],
    folder: Path,
    downloaded: Path,
    interrupts: Interrupts,
    show: Callable[[str], None],
) -> None:
    _check(state, interrupts, show)
    with _downloads_never_half(folder, downloaded):
        run(
            "sam build",
            command,
            # SAM CLI and the layers' makefiles take the first `python3.13` on the path: here it is one that has pip and
            # that works in every folder. pyenv's works only where a .python-version is.
            environment=with_first_on_path(environment, interpreter_folder()),  # guard: build-interpreter-with-pip
            folder=folder,
            log=state.logs / "build.log",
            interrupts=interrupts,
            show=show,
        )


@contextmanager
def _downloads_never_half(folder: Path, known: Path) -> Iterator[None]:
    """Delete SAM CLI's downloads if they were interrupted: it would take half a folder for a complete one."""
    lists = [file for name in given().folders for file in (given().root / name).rglob("requirements.txt")]
    wanted = fingerprint(sorted(lists))
    if not known.exists():
        shutil.rmtree(folder / ".aws-sam", ignore_errors=True)  # guard: build-half-download-dropped
    elif known.read_text() != wanted:
        known.unlink()
    yield
    known.write_text(wanted)


def fingerprint(files: Iterable[Path]) -> str:
    """A fingerprint that changes when one of the files or its path in the checkout changes."""
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{os.path.relpath(file, given().root)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def local_options(**parameters: str) -> list[str]:
    """The arguments that `sam build` and `sam deploy` share for the local stack, on this machine's architecture."""
    return sam_options(_LOCAL, Architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()), **parameters)


def sam_options(environment: str, **parameters: str) -> list[str]:
    """The arguments that choose an environment of samconfig.toml, and the template parameters that differ from it."""
    options = ["--config-file", str(given().samconfig), "--config-env", environment]
    usual = configured_parameters(environment)
    wanted = {**usual, **parameters}
    if wanted == usual:
        return options
    # In quotes, which SAM CLI takes off, a value may have blanks or be empty.
    return [*options, "--parameter-overrides", *(f'{name}="{value}"' for name, value in wanted.items())]


def configured_parameters(environment: str) -> dict[str, str]:
    """The template parameters of an environment of samconfig.toml, which may have them as a list or as a text."""
    of_all = tomllib.loads(given().samconfig.read_text())[environment].get("global", {}).get("parameters", {})
    configured = of_all.get("parameter_overrides", [])
    pairs = configured.split() if isinstance(configured, str) else configured
    return dict(parameter.split("=", 1) for parameter in pairs)


def sam_command() -> list[str | Path]:
    """SAM CLI, which does not look for reference cycles: that would take a sixth of the few seconds that it runs."""
    return [given().sam.with_name("python"), "-P", "-c", _WITHOUT_COLLECTIONS, given().sam]


def sam_environment(state: State) -> dict[str, str]:
    """The environment of SAM CLI on the local stack: a clean one, with frequent deployment polls."""
    return child_environment(state, None, **_sam_settings(state), SAM_CLI_POLL_DELAY="0.25")


def _sam_settings(state: State) -> dict[str, str]:
    return {"__SAM_CLI_APP_DIR": str(state.sam / "home"), "SAM_CLI_TELEMETRY": "0", "PYTHONUNBUFFERED": "1"}


def prepare_sam(state: State) -> None:
    """Create SAM CLI's home, and record that it just checked for a newer version: its version is pinned."""
    home = state.sam / "home"
    home.mkdir(parents=True, exist_ok=True)
    (home / "metadata.json").write_text(json.dumps({"lastVersionCheck": time.time(), "telemetryEnabled": False}))
