"""Parameters chosen for the local stack: those that the template has, with the values that CloudFormation takes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from darkroom_cli.local.project import PROJECT
from local_aws import project
from local_aws.build import local_options
from local_aws.project import given
from local_aws.template_parameters import FIXED, InvalidParameter, check_rules, read, still_known
from repository.expand_template import raw_template
from tests.unit.cli.conftest import Run


@pytest.mark.parametrize(
    "text",
    [
        "ExtraInputFormats=avif,heic",
        "ExtraInputFormats=",
        "MaxUploadBytes=4194304",
        "MaxUploadBytes=100000000",
        "AllowedOrigins=http://localhost:3000,https://app.example.com",
        "AllowedOrigins=",
        "JwtAudience=one, another",
        "RolePath=/teams/images/",
        "Access=iam",
    ],
)
def test_a_value_that_the_template_allows_is_taken(text: str) -> None:
    name, _, value = text.partition("=")
    assert read([text]) == {name: value}


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("ExtraInputFormats=png", "'', 'avif', 'heic', 'avif,heic'"),
        ("ExtraInputFormats", "has no value"),
        ("extrainputformats=avif", "It has Access, JwtIssuer, "),
        ("=avif", "has no parameter ''"),
        ("MaxUploadBytes=4194303", "at least 4194304 and at most 100000000"),
        ("MaxUploadBytes=100000001", "at least 4194304 and at most 100000000"),
        ("MaxUploadBytes=25_000_000", "it is a number"),
        ("MaxUploadBytes=nan", "it is a number"),
        ("MaxUploadBytes=", "it is a number"),
        ("UnusualDailyBytes=0", "at least 1"),
        ("AllowedOrigins=http://localhost:3000,ftp://example.com", "Origins are comma-separated"),
        ("WebhookPorts=443,0", "Ports are comma-separated numbers"),
        ("WebhookPorts=443\u0664", "Ports are comma-separated numbers"),
        (f"RolePath=/{'a' * 511}/", "at most 512 characters"),
        ('JwtAudience=a"b', "without quotes, backslashes and line breaks"),
        ("JwtAudience=a\\", "without quotes, backslashes and line breaks"),
        ("Environment=prod", "always `local`"),
        ("Architecture=arm64", "this machine's"),
    ],
)
def test_any_other_is_refused_and_what_there_is_is_said(text: str, refusal: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read([text])
    assert refusal in str(refused.value)


def test_a_parameter_has_one_value() -> None:
    assert read(["Access=keys", "Access=keys"]) == {"Access": "keys"}
    with pytest.raises(InvalidParameter, match="two values"):
        read(["Access=keys", "Access=iam"])


def test_the_templates_rules_hold_here_too() -> None:
    check_rules({"Access": "anonymous"})
    with pytest.raises(InvalidParameter, match="Access=jwt needs JwtIssuer and JwtAudience"):
        check_rules({"Access": "jwt", "JwtIssuer": "https://issuer.example"})
    check_rules({"Access": "jwt", "JwtIssuer": "https://issuer.example", "JwtAudience": "darkroom"})


def test_every_default_of_the_template_may_be_chosen() -> None:
    parameters = raw_template()["Parameters"]
    texts = [f"{name}={parameter['Default']}" for name, parameter in parameters.items() if name not in FIXED]
    assert read(texts).keys() == parameters.keys() - FIXED.keys()


def test_a_deployment_keeps_the_parameters_that_the_template_still_has_but_not_what_is_shown_instead_of_a_value() -> (
    None
):
    deployed = {"Environment": "local", "MaxUploadBytes": "5000000", "Gone": "1", "ExtraInputFormats": ""}
    assert still_known(deployed) == {"MaxUploadBytes": "5000000", "ExtraInputFormats": ""}
    assert still_known({"PagerEndpoint": "****", "MaxUploadBytes": "5000000"}) == {"MaxUploadBytes": "5000000"}


@pytest.mark.parametrize("template", ["Resources: [", "Parameters: {", "Parameters:\n  - [\nRules:\n  - [\n"])
def test_a_template_that_cannot_be_read_is_left_to_the_build_unless_a_parameter_is_chosen(
    template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "template.yaml").write_text(template)
    monkeypatch.setattr(project, "_projects", [replace(PROJECT, root=tmp_path)])
    assert read([]) == {}
    check_rules({"Access": "anonymous"})
    with pytest.raises(InvalidParameter, match="the build says why"):
        read(["Access=keys"])


def test_sam_gets_empty_values_and_blanks_as_they_are() -> None:
    options = local_options(ExtraInputFormats="", JwtAudience="one, another")
    assert options[options.index("--parameter-overrides") :][-2:] == [
        'ExtraInputFormats=""',
        'JwtAudience="one, another"',
    ]


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["up", "--set", "ExtraInputFormats=png"], "ExtraInputFormats cannot be 'png'"),
        (["up", "--set", "Access=jwt"], "Access=jwt needs JwtIssuer"),
        (["up", "--access", "keys", "--set", "Access=iam"], "another value by --access"),
        (["up", "--set", "Access=iam", "--develop", str(given().root / "README.md")], "made elsewhere"),
        (["deploy", "--set", "MaxUploadBytes=1"], "at least 4194304"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_starts(
    run: Run, tmp_path: Path, arguments: list[str], refusal: str
) -> None:
    environment = dict(os.environ)
    refused = run("local", *arguments)
    assert refused.exit_code == 2
    assert refusal in " ".join(refused.stderr.replace("│", " ").split())
    assert not (tmp_path / "no stack runs here").exists()
    assert dict(os.environ) == environment
