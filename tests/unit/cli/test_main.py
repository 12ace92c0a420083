from __future__ import annotations

import re

import pytest

from tests.unit.cli.conftest import Run


@pytest.mark.parametrize("command", ["upload", "status", "download", "ls", "rm", "delay", "redo"])
def test_help_shows_examples_and_explains_the_exit_status(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"./darkroom {command} " in result.stdout
    for text in ("Examples", "Exit status", "130"):
        assert text in result.stdout


def test_the_version_names_the_commit(run: Run) -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert re.fullmatch(r"darkroom \d+\.\d+\.\d+ \((unknown commit|[\w.-]+)\)\n", result.stdout)


@pytest.mark.parametrize("environment", ["local", "production"])
def test_a_build_for_aws_names_the_environments_that_there_are(run: Run, environment: str) -> None:
    result = run("build", "--config-env", environment)
    assert result.exit_code == 2
    assert "staging, prod" in " ".join(result.stderr.replace("│", " ").split())
