"""Each built function initialises from its own bundle and layers alone, and the check of it reports what does not."""

import json
import shutil
from pathlib import Path

import pytest

from checks.initialise_functions import (
    BuiltFunction,
    built_functions,
    initialise,
    main,
    unpacked_layers,
)
from repository.expand_template import without_loops
from tests.local.local_stack import LENT

FUNCTION = "AWS::Serverless::Function"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template of the shared build, with its layers unpacked as Lambda unpacks them."""
    ours = tmp_path_factory.mktemp("built") / "build"
    shutil.copytree(LENT / "sam" / "build", ours)
    for archive in (LENT / "sam" / "layers").glob("*.zip"):
        shutil.unpack_archive(archive, ours / archive.stem)
    return ours / "template.yaml"


def test_every_function_initialises_from_its_own_bundle(template: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--template", str(template)]) == 0, capsys.readouterr().out


def test_without_pillow_in_its_layer_the_transcoder_fails_and_is_named(
    template: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layers = {"ImagingLayer", "BytecodeLayer"}
    for part in template.parent.iterdir():
        if part.name not in layers:
            (tmp_path / part.name).symlink_to(part)
    for layer in layers:
        packages = tmp_path / layer / "python"
        packages.mkdir(parents=True)
        for package in (template.parent / layer / "python").iterdir():
            if package.name != "PIL":
                (packages / package.name).symlink_to(package)
    (tmp_path / template.name).unlink()
    document = without_loops(template)
    others = {name for name, resource in document["Resources"].items() if resource["Type"] == FUNCTION} - {
        *("TranscodeImageFunction", "ReadImageFunction")
    }
    for name in others:  # that they need no Pillow is the test below
        del document["Resources"][name]
    (tmp_path / template.name).write_text(json.dumps(document))

    assert main(["--template", str(tmp_path / template.name)]) == 1

    said = capsys.readouterr().out
    assert "TranscodeImageFunction does not initialise" in said
    assert "Runtime.ImportModuleError: Unable to import module 'app': No module named 'PIL'" in said
    assert said.count("does not initialise") == 1


def test_only_the_transcoder_carries_pillow(template: Path) -> None:
    carriers = {
        function.name
        for function in built_functions(template)
        for folder in (function.code, *function.layers)
        if any(folder.rglob("PIL/__init__.py"))
    }
    assert carriers == {"TranscodeImageFunction"}


def written(code: str, folder: Path, *layers: Path) -> BuiltFunction:
    """A function whose app.py is `code`."""
    (folder / "app.py").write_text(code)
    return BuiltFunction(
        name="Example",
        handler="app.handler",
        code=folder,
        layers=layers,
        variables={},
        memory_megabytes=128,
        timeout_seconds=3,
    )


def error_of(function: BuiltFunction) -> str | None:
    """Why the function does not initialise."""
    with unpacked_layers([function]) as layers:
        return initialise(function, layers[function.layers]).error


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import os\nos.environ['MISSING']\ndef handler(event, context): ...", "KeyError: 'MISSING'"),
        ("def main(event, context): ...", "Runtime.HandlerNotFound: Handler 'handler' missing on module 'app'"),
        ("def handler(event, context) ...", "Runtime.UserCodeSyntaxError"),
        ("import os\nos._exit(3)", "The runtime's process ended while it loaded the function"),
    ],
    ids=["it raises", "it has no handler", "it is no Python", "its process ends"],
)
def test_what_keeps_a_function_from_initialising_is_reported(tmp_path: Path, code: str, error: str) -> None:
    assert error in (error_of(written(code, tmp_path)) or "")


def test_a_handler_that_refuses_the_event_has_initialised(tmp_path: Path) -> None:
    assert error_of(written("def handler(event, context): raise KeyError('not in the event')", tmp_path)) is None


def test_a_function_finds_nothing_of_the_development_environment(tmp_path: Path) -> None:
    function = written("import boto3\ndef handler(event, context): ...", tmp_path)
    assert "No module named 'boto3'" in (error_of(function) or "")


def test_a_later_layer_lies_over_an_earlier_one(tmp_path: Path) -> None:
    for layer, module in (("first", "both"), ("first", "one"), ("second", "both"), ("second", "two")):
        file = tmp_path / layer / "python" / "package" / f"{module}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"layer = {layer!r}")
    code = """
from package import both, one, two
assert [both.layer, one.layer, two.layer] == ["second", "first", "second"]
def handler(event, context): ...
"""
    assert error_of(written(code, tmp_path, tmp_path / "first", tmp_path / "second")) is None
