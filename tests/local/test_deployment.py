"""The page of the deployment, followed on a fresh machine with an older Python: each of its command lines is run."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from darkroom.domain.tenants.api_keys import key_id_of
from local_aws.stacks.clients import isolated_clients, of_account
from local_aws.stacks.record import ACCESS_KEY_ID
from local_aws.tests.emulator_server import EmulatorServer
from tests.local.local_stack import REPOSITORY
from tests.support.documents import DOCS, code

pytest_plugins = ("local_aws.tests.emulator_fixtures",)

X86_64, ARM64 = 62, 183
"""Processors as ELF names them (`e_machine`)."""

OTHER, MACHINE = ("x86_64", X86_64) if platform.machine() in ("aarch64", "arm64") else ("arm64", ARM64)

SAM = ".darkroom/venvs/sam/bin/sam"
STACK = "darkroom-staging"
REGION = "eu-west-1"

SETTINGS = f"export AWS_PROFILE=shop AWS_REGION={REGION} AWS_DEFAULT_REGION={REGION}"
BUILD = "./darkroom build --config-env staging"
DEPLOY = f"{SAM} deploy --config-env staging --parameter-overrides Environment=staging Access=keys Architecture=arm64"

OF_ITS_OWN = (
    f"{SAM} deploy --config-env prod --parameter-overrides Environment=prod ApiDomainName=images.example.com "
    "ApiCertificate=arn:aws:acm:eu-west-1:ACCOUNT:certificate/ID ApiHostedZone=Z0123456789ABCDEFGHIJ "
    "ExecuteApiEndpoint=closed"
)

NAMES = {
    *("./darkroom build", "./darkroom tenants", "./darkroom keys", "./darkroom capacity", "./darkroom audit"),
    "./darkroom doctor",
    *("./darkroom orphans remove", "./darkroom keys rotate", "aws", "keys", "sam deploy", f"{SAM} deploy"),
}
"""What the page calls commands by, without saying what to type."""

ELSEWHERE = {
    "./darkroom upload photo.jpg --wait --url <ApiUrl>": "tests/local/test_keys.py uploads with a key",
    "./darkroom upload photo.jpg --iam --url <ApiUrl>": "test_signing.py: IAM answers only on AWS",
    'echo "Authorization: Bearer $DARKROOM_API_KEY" | curl -H @- …': "it ends in an ellipsis",
    "./darkroom trace ID --stack darkroom-prod": "tests/smoke/test_traces.py: here no image was developed",
    f"{SAM} deploy --config-env local": "tests/local/test_isolation.py: it is refused",
    "aws cloudformation continue-update-rollback --stack-name darkroom-prod": "no stack is in that state here",
    f"./darkroom delay stop --yes --stack {STACK}": "tests/unit/cli/delay/: it waits for two minutes",
    "./darkroom doctor --repair --yes": "tests/contract/test_repair.py",
    "./darkroom tenants enlist --yes --stack darkroom-prod": "tests/unit/cli/tenants/: no image is unlisted here",
    "./darkroom tenants enlist --stack darkroom-prod": "tests/unit/cli/tenants/: no image is unlisted here",
    "aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 "
    "--desired-value 1000": "only AWS raises a quota",
    "aws iam create-open-id-connect-provider --url https://token.actions.githubusercontent.com "
    "--client-id-list sts.amazonaws.com": "only AWS trusts GitHub",
    "aws apigatewayv2 get-domain-name --domain-name images.example.com": "nobody has that domain here",
    OF_ITS_OWN: "nobody has that domain here",
}
"""Command lines that are not run here, each with the reason."""


def command_lines() -> list[str]:
    """The command lines of the page in its order; not the lists of subcommands."""
    programs = r"\./darkroom|\.darkroom/\S+|aws|sam|make|python3?|curl|echo|export|git|keys|tenants"
    starts = rf"(?:[A-Z_]+=\S+ )*(?:{programs})(?:\s|$)"
    lines = [" ".join(line.split()) for text in code(DOCS / "deploy.md") for line in text.splitlines()]
    matching = filter(re.compile(starts).match, lines)
    return [line for line in dict.fromkeys(matching) if line not in NAMES and " | ls " not in line]


@dataclass(kw_only=True)
class Machine:
    """A machine with a checkout that was never used, an older `python3`, and a `python3.13` that works as pyenv's does
    outside of a checkout: not at all. uv has a Python 3.13 of its own, as after its first use."""

    folder: Path
    emulator: EmulatorServer
    variables: Mapping[str, str]

    def type(self, line: str, *, answer: str = "") -> subprocess.CompletedProcess[str]:
        """Type a line of the page in the checkout, after the page's settings."""
        return subprocess.run(
            ["/bin/sh", "-c", f"{SETTINGS}\n{line}"],
            cwd=self.folder,
            env=self.variables,
            input=answer,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )

    def client(self, service: str) -> Any:
        """A client of the emulator, in the page's region."""
        return isolated_clients(self.emulator.gateway_url, REGION, of_account(self.emulator.secret))(service)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, emulator: EmulatorServer) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("machine")
    checkout = folder / "checkout"  # of the last commit
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, checkout], check=True)
    programs = {
        "python3": f'exec {older_python()} "$@"',
        "python3.13": "echo 'pyenv: python3.13: command not found' >&2; exit 127",
        "aws": f'exec {sys.executable} {Path(__file__).with_name("aws_stand_in.py")} "$@"',
    }
    (folder / "bin").mkdir()
    for name, text in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    managed = folder / "uv" / f"cpython-{platform.python_version()}-linux-{platform.machine()}-gnu"
    managed.mkdir(parents=True)
    for name in ("bin", "include", "lib"):
        (managed / name).symlink_to(Path(sys.base_prefix, name))
    (folder / "aws").write_text(
        f"[profile shop]\nendpoint_url = {emulator.gateway_url}\n"
        f"aws_access_key_id = {ACCESS_KEY_ID}\naws_secret_access_key = {emulator.secret}\n"
    )
    astray = ("AWS_", "DARKROOM_", "PYENV_", "PYTHON", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(astray)}
    variables = kept | {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "UV_PYTHON_INSTALL_DIR": str(folder / "uv"),
        "AWS_CONFIG_FILE": str(folder / "aws"),
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "SAM_CLI_TELEMETRY": "0",
        "__SAM_CLI_APP_DIR": str(folder / "sam"),
    }
    yield Machine(folder=checkout, emulator=emulator, variables=variables)
    shutil.rmtree(folder)


def older_python() -> str:
    """A Python before 3.13 that can create environments; this one on a machine without."""
    looks = "import ensurepip, sys, venv; sys.exit(sys.version_info >= (3, 13))"
    for python in ("/usr/bin/python3", *map(str, Path.home().glob(".pyenv/versions/3.*/bin/python3"))):
        if (
            Path(python).exists()
            and subprocess.run([python, "-c", looks], capture_output=True, check=False).returncode == 0
        ):
            return python
    return sys.executable


def test_every_command_line_of_the_page_is_run_here_or_has_a_reason() -> None:
    assert set(command_lines()) - {SETTINGS, BUILD} == {*AFTER_THE_BUILD, *ELSEWHERE}


@pytest.fixture(scope="module")
def built(machine: Machine) -> Path:
    done = machine.type(BUILD if OTHER == "arm64" else f"{BUILD} --architecture {OTHER}")
    assert done.returncode == 0, done.stdout
    assert f"Built for {OTHER}" in done.stdout
    return machine.folder / ".aws-sam" / "build"


def test_every_library_is_for_the_processor_of_the_functions(built: Path) -> None:
    machines = {
        file.relative_to(built): int.from_bytes(head[18:20], "little")
        for file in built.rglob("*")
        if file.is_file() and (head := _head(file)).startswith(b"\x7fELF")
    }
    assert len(machines) > 20
    assert {file: machine for file, machine in machines.items() if machine != MACHINE} == {}


def test_the_bytecode_comes_along(built: Path) -> None:
    assert len(list((built / "BytecodeLayer").rglob("*.cpython-313.pyc"))) > 500
    assert len(list((built / "CoreLayer").rglob("*.cpython-313.pyc"))) > 100


def _head(file: Path) -> bytes:
    with file.open("rb") as content:
        return content.read(20)


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a command line of the page says, and how it ends, if `answer` is typed. `named` are words of the page that
    stand for a name, each with the resource whose name takes their place."""

    says: str = ""
    answer: str = ""
    status: int = 0
    named: Mapping[str, str] = field(default_factory=dict)


AFTER_THE_BUILD = {
    "aws lambda get-account-settings": Step(says="UnreservedConcurrentExecutions"),
    f"{DEPLOY} AlarmEmail=you@example.com": Step(says="Deploy this changeset? [y/N]", answer="y\n"),
    f"./darkroom tenants add acme --tier paid --stack {STACK}": Step(says="acme"),
    f"./darkroom keys create acme --stack {STACK}": Step(says="dr_"),
    "./darkroom tenants change acme --max-stored 50GB --max-images unlimited": Step(says="50"),
    "./darkroom tenants move acme bulk": Step(says="lane bulk"),
    "keys create acme --scope images:read": Step(says="dr_"),
    "keys create acme --expires 90d": Step(says="dr_"),
    "keys rotate ID --overlap 7d": Step(says="dr_", named={"ID": "key"}),
    "keys ls": Step(says="acme"),
    "keys ls --revoked": Step(),
    "./darkroom doctor --stack darkroom-prod --production": Step(says=" checks: ", status=1),
    "./darkroom top --stack darkroom-prod": Step(says="fast"),
    "./darkroom capacity --rate 200 --seconds 3": Step(says="AlarmEmail=you@example.com"),
    "PYTHONPATH=scripts:cli:layers/core:. .darkroom/venvs/dev/bin/python -m checks.idle_cost": Step(says="alarms"),
    "aws apigatewayv2 delete-route-settings --api-id ID --stage-name '$default' --route-key 'GET /app'": Step(
        named={"ID": "Api"}
    ),
    "aws cloudformation deploy --region us-east-1 --stack-name darkroom-edge --template-file edge.yaml "
    "--parameter-overrides ApiDomain=a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com": Step(),
    "aws iam detach-role-policy --role-name ROLE --policy-arn ARN": Step(named={"ROLE": "role", "ARN": "policy"}),
    f"./darkroom delay stop --stack {STACK}": Step(says="Nothing was changed."),
    "aws sns subscribe --topic-arn ARN --protocol email --notification-endpoint you@example.com": Step(
        says="SubscriptionArn", named={"ARN": "WarningAlarms"}
    ),
    "aws cloudformation update-termination-protection --stack-name darkroom-prod --no-enable-termination-protection": (
        Step(says=STACK)
    ),
    f"{SAM} delete --config-env staging": Step(says="Deleted successfully", answer="y\ny\n"),
    "aws s3 rb s3://NAME --force": Step(named={"NAME": "UploadsBucket"}),
    "aws dynamodb update-table --table-name NAME --no-deletion-protection-enabled": Step(named={"NAME": "ImagesTable"}),
    "aws dynamodb delete-table --table-name NAME": Step(named={"NAME": "ImagesTable"}),
    "aws secretsmanager delete-secret --secret-id ARN": Step(named={"ARN": "MessageKey"}),
    "aws kms schedule-key-deletion --key-id ID": Step(named={"ID": "kms key"}),
}
"""The command lines of the page, in an order in which they can be typed."""


def test_each_command_line_does_what_the_page_says(machine: Machine, built: Path) -> None:
    names = {"role": "of-a-person"}
    for line, step in AFTER_THE_BUILD.items():
        typed = f"./darkroom {line}" if line.startswith("keys ") else line
        for word, of in step.named.items():
            typed = re.sub(rf"\b{word}\b", names[of], typed)
        typed = typed.replace("darkroom-prod", STACK)
        if re.match(r"\./darkroom (keys|tenants) ", typed) and "--stack" not in typed:
            typed = f"{typed} --stack {STACK}"
        done = machine.type(typed, answer=step.answer)
        assert done.returncode == step.status, f"{typed}\n{done.stdout}"
        assert step.says in done.stdout, f"{typed}\n{done.stdout}"
        assert "Traceback" not in done.stdout or step.status, f"{typed}\n{done.stdout}"
        if line.startswith(SAM) and "deploy" in line:
            names |= resources_of(machine)
        if key := re.search(r"\bdr_\S+", done.stdout):
            names.setdefault("key", key_id_of(key[0]) or "")


def resources_of(machine: Machine) -> dict[str, str]:
    """The physical ids of the stack's resources, and of what the account has besides."""
    pages = machine.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=STACK)
    physical_ids = {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
    }
    iam = machine.client("iam")
    iam.create_role(RoleName="of-a-person", AssumeRolePolicyDocument="{}")
    document = json.dumps({"Statement": [{"Effect": "Allow", "Action": "kms:Decrypt", "Resource": "*"}]})
    policy = iam.create_policy(PolicyName="UseOfTheKey", PolicyDocument=document)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="of-a-person", PolicyArn=policy)
    key = machine.client("kms").create_key()["KeyMetadata"]["KeyId"]
    return physical_ids | {"policy": policy, "kms key": key}
