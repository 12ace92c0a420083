"""The documents are correct: their links lead somewhere, and what they name exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer.main

from checks.test_tiers import TIERS
from darkroom.domain.images.image import TOMBSTONE_FIELDS, Image
from darkroom.domain.kernel.lanes import LANES
from darkroom_cli.doctor.priority import ROOM_FOR_THE_API
from darkroom_cli.main import whole
from repository.expand_template import deployed, expanded_template, raw_template, resources
from repository.report import ROOT
from tests.guards import promises
from tests.prove import PARTS
from tests.support.documents import DOCS, code
from tests.support.template import statements, unless_polled

README = ROOT / "README.md"
DECISIONS = DOCS / "decisions"
PAGES = sorted([README, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS.rglob("*.md")])


COMMAND: Any = typer.main.get_command(whole())


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_code_blocks(page: Path) -> str:
    return re.sub(r"^( *)```.*?^\1```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of the page, as GitHub makes them of its headings."""
    headings = re.findall(r"^#+ (.+)$", without_code_blocks(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def commands(page: Path, start: str) -> list[str]:
    """The commands that begin like this, each to the end of its line or its pipe; `a | b` means two subcommands."""
    commands_of_page = []
    for text in code(page):
        for group, words in re.findall(rf"({start}(?: [a-z]+)+) ([a-z]+(?: \| [a-z]+)+)", text):
            commands_of_page += [f"{group} {word}" for word in words.split(" | ")]
        commands_of_page += re.findall(rf"(?:^|[\s(;])({start} [^\n|;]*)", text, re.MULTILINE)
    return commands_of_page


def test_the_readme_is_short() -> None:
    assert len(README.read_bytes()) <= 8 * 1024


def test_the_readme_has_one_diagram_of_at_most_seven_boxes() -> None:
    (diagram,) = re.findall(r"```mermaid\n(.*?)```", README.read_text(), re.DOTALL)
    assert 3 <= len(set(re.findall(r"\b(\w+)(?=[\[(])", re.sub(r'"[^"]*"', "", diagram)))) <= 7


def test_architecture_shows_every_function_in_its_diagram_and_in_its_table() -> None:
    functions = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}
    section = (DOCS / "architecture.md").read_text().partition("\n## Functions\n")[2].partition("\n## ")[0]
    (diagram,) = re.findall(r"```mermaid\n(.*?)```", section, re.DOTALL)
    assert set(re.findall(r"\[([a-z]+(?:_[a-z]+)+)\]", diagram)) == functions
    rows = re.findall(r"^\| `(\w+)` \| ", section, re.MULTILINE)
    assert sorted(rows) == sorted(functions)


QUESTIONS = {
    "Where is the retry policy?": "docs/changing.md#the-retry-policy",
    "What happens if SQS is down?": "docs/runbook.md#s3-dynamodb-or-sqs-is-down",
    "How do I add a lane?": "docs/changing.md#a-lane",
    "What does it cost?": "docs/deploy.md#what-it-costs",
    "How do I turn webhooks off?": "docs/parts.md#off",
    "What is stored where?": "docs/privacy.md",
    "How do I replay a dead letter?": "docs/runbook.md#dead-letters",
    "How do I add a preset?": "docs/changing.md#a-preset",
    "How do I restore a deleted table?": "docs/recovery.md",
    "Who can read the pictures?": "docs/privacy.md#who-can-read-the-pictures",
    "How do I roll back?": "docs/runbook.md#a-bad-deployment",
    "How do I scale?": "docs/deploy.md#size-it",
    "What does a status mean?": "docs/api.md#what-a-status-means",
    "How do I run it locally?": "docs/local.md",
}
"""What somebody new asks, and the heading that answers it."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_of_somebody_new_is_answered_two_links_from_the_readme(question: str) -> None:
    def linked(page: Path) -> set[Path]:
        paths = re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", without_code_blocks(page))
        return {(page.parent / path).resolve() for path in paths if path.endswith(".md")}

    name, _, anchor = QUESTIONS[question].partition("#")
    first = linked(README)
    assert ROOT / name in first.union(*(linked(page) for page in first))
    assert not anchor or anchor in anchors(ROOT / name)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_to_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]+`", "", without_code_blocks(page)))
    for link in links:
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT) and target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_that_it_names_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {name for line in re.findall(r"^([a-z][a-z -]*):", makefile, re.MULTILINE) for name in line.split()}
    assert {command.split()[1] for command in commands(page, "make")} <= targets


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_darkroom_command_that_it_names_exists(page: Path) -> None:
    for command in commands(page, r"\./darkroom"):
        known = COMMAND
        for word in command.split()[1:]:
            if not hasattr(known, "commands") or word.startswith("-"):
                break
            known = known.get_command(None, word)
            assert known is not None, command
        names = {name for parameter in known.params for name in (*parameter.opts, *parameter.secondary_opts)}
        given = re.sub(r'"?\$\([^()]*(\([^()]*\)[^()]*)*\)"?', "VALUE", command)  # not those of a substituted command
        assert set(re.findall(r"\s(--[a-z][a-z-]+)", given)) <= names | {"--help"}, command


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_program_that_it_runs_is_one_that_a_checkout_has(page: Path) -> None:
    ours = "PYTHONPATH=scripts:cli:layers/core:. .darkroom/venvs/dev/bin/python -m "
    for line in (line.strip() for text in code(page) for line in text.splitlines()):
        assert not re.match(r"sam \w+ +-", line), f"{line}: its SAM CLI is .darkroom/venvs/sam/bin/sam"
        if re.search(r"\bpython3? -m ", line):
            assert line.startswith(ours), line
            assert find_spec(line.removeprefix(ours).split()[0]), line


def test_the_page_of_the_command_line_names_every_command() -> None:
    def leaves(command: Any, path: str) -> Iterator[str]:
        for name, sub in command.commands.items():
            yield from leaves(sub, f"{path} {name}") if hasattr(sub, "commands") else (f"{path} {name}",)

    named = commands(DOCS / "command-line.md", r"\./darkroom")
    missing = [
        command
        for command in leaves(COMMAND, "./darkroom")
        if not any(re.match(rf"{re.escape(command)}(\s|$)", described) for described in named)
    ]
    assert missing == []


def test_the_page_of_the_tests_lists_every_tier_and_every_part_of_prove() -> None:
    page = (DOCS / "testing.md").read_text()
    assert [f"| {tier.name} | `make test-{tier.name}` |" in page for tier in TIERS] == [True] * len(TIERS)
    for tier in TIERS:
        long = "" if tier.long_seconds is None else f"{tier.long_seconds} s "
        assert re.search(rf"^\| {tier.name} \|.*\| {tier.budget_seconds} s \| {long}\|$", page, re.MULTILINE), tier
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(PARTS)


def test_every_promise_rests_on_guards_or_sweeps_and_the_page_lists_their_tests() -> None:
    page = promises.PAGE.read_text()
    assert page == promises.with_tests(page), "make described"
    named = [names for _, names in promises.rows(page)]
    assert len(named) > 90
    sweeps, guards = promises.sweeps(), promises.tests_of_guards()
    assert sweeps.keys() <= {name for names in named for name in names}
    assert sum(sweeps.keys() >= {*names} for names in named) <= 9, "a new promise names a guard"
    # The page's first lines say which command runs which folder.
    files = {file for names in named for name in names for file in (sweeps | guards)[name]}
    of_the_long_run = {tier.name for tier in TIERS if not tier.is_quick}
    assert {file.parts[1] for file in files} & of_the_long_run == {"local"}


def test_the_page_about_privacy_lists_every_store_and_every_field_of_a_row() -> None:
    stores, _, row = (DOCS / "privacy.md").read_text().partition("## The row")
    named = {name for line in stores.splitlines() if line.startswith("| ") for name in re.findall(r"`(\w+)`", line)}
    kinds = ("DynamoDB::Table", "S3::Bucket", "SQS::Queue", "Logs::LogGroup", "StepFunctions::StateMachine")
    of_functions = {name.removesuffix("Function") + "Logs" for name in resources("AWS::Lambda::Function")}
    of_lanes = {f"{lane.capitalize()}{kind}" for lane in LANES for kind in ("Queue", "DeadLetters")}
    assert {"<Lane>Queue", "<Lane>DeadLetters"} <= {*re.findall(r"`([^`]+)`", stores)}
    assert {name for kind in kinds for name in resources(f"AWS::{kind}")} - of_functions - of_lanes <= named
    assert {"EventsTopic", "the functions' logs"} <= {*named, *re.findall(r"^\| ([^|`]+) \|", stores, re.MULTILINE)}
    kept = {"yes": set[str](), "no": set[str]()}
    for names, answer in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (yes|no)", row, re.MULTILINE):
        kept[answer] |= set(re.findall(r"`(\w+)`", names))
    assert kept["yes"] == TOMBSTONE_FIELDS
    assert kept["no"] == {field.name for field in fields(Image)} - TOMBSTONE_FIELDS


def test_the_page_of_the_deployment_lists_every_parameter_of_the_template() -> None:
    page = (DOCS / "deploy.md").read_text()
    rows = re.findall(
        r"^\| (`[A-Z]\w+`(?:, `\w+`)*) \|", page.partition("## Parameters")[2].partition("\n## ")[0], re.MULTILINE
    )
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    of_lanes = {f"{lane.capitalize()}{name}" for lane in LANES for name in ("Concurrency", "Pollers")}
    assert "| `<Lane>Concurrency` |" in page and "| `<Lane>Pollers` |" in page
    assert sorted(listed) == sorted(raw_template()["Parameters"].keys() - of_lanes)


def test_the_page_of_the_deployment_has_parameters_that_fit_into_each_account() -> None:
    section = (DOCS / "deploy.md").read_text().partition("## Before the first deployment")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", section, re.MULTILINE)
    assert [words == "the defaults" for _, words in rows] == [True, False, False]
    parameters = raw_template()["Parameters"]
    for unreserved, words in rows:
        chosen = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", words)}
        for name, value in chosen.items():
            assert parameters[name]["MinValue"] <= value <= parameters[name]["MaxValue"]
        values = {name: chosen.get(name, parameter.get("Default")) for name, parameter in parameters.items()}
        capacities = [
            unless_polled(resource["Properties"])["MaximumConcurrency"]
            for resource in deployed(Environment="prod", Access="keys").values()
            if "ScalingConfig" in resource.get("Properties", {})
        ]
        wanted = sum(capacity if isinstance(capacity, int) else values[capacity["Ref"]] for capacity in capacities)
        if words == "the defaults":
            assert f"may take {wanted} together" in section
            assert wanted == int(int(unreserved) * (1 - ROOM_FOR_THE_API))
        assert wanted <= int(int(unreserved) * (1 - ROOM_FOR_THE_API))
        # Such an account has no executions to reserve, since Lambda keeps 100 without a reservation.
        assert values["ReservedWorkers"] == 0


def test_the_page_of_the_deployment_names_every_service_in_which_a_deployer_creates_something() -> None:
    called_otherwise = {"StepFunctions": "states"}
    kinds = {resource["Type"].split("::")[1] for resource in expanded_template()["Resources"].values()}
    services = {called_otherwise.get(kind, kind.lower().removesuffix("v2")) for kind in kinds} | {"cloudformation"}
    section = (DOCS / "deploy.md").read_text().partition("## Who may deploy")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z0-9]+)`", section.partition("Less is enough")[2]))
    assert named == services - {"iam"}


def test_the_page_of_the_deployment_names_the_sam_cli_that_is_installed() -> None:
    (version,) = re.findall(r"^aws-sam-cli==(\S+)", (ROOT / "requirements" / "sam.txt").read_text(), re.MULTILINE)
    assert f"the one that we test with, {version}," in " ".join((DOCS / "deploy.md").read_text().split())


def test_the_page_of_the_deployment_says_what_a_boundary_must_allow_and_a_deployer_may_pass() -> None:
    section = (DOCS / "deploy.md").read_text().partition("## Roles within bounds")[2].partition("\n## ")[0]
    roles = resources("AWS::IAM::Role").values()
    allowed = [statement for role in resources("AWS::IAM::Role") for statement in statements(role, optional=True)]
    for policy in resources("AWS::IAM::ManagedPolicy").values():
        allowed += policy["PolicyDocument"]["Statement"]
    actions = re.findall(r"\b([a-z0-9]+):[A-Z]\w+", " ".join(str(statement["Action"]) for statement in allowed))
    sentence = section.partition("They call ")[2].partition(".\n")[0]
    assert set(re.findall(r"`([a-z0-9]+)`", sentence)) == set(actions)
    trusts = [trust for role in roles for trust in role["AssumeRolePolicyDocument"]["Statement"]]
    rights = json.loads((DOCS / "pipeline" / "roles.json").read_text())
    (passed,) = (
        right["Condition"]["StringEquals"]["iam:PassedToService"]
        for right in rights["Statement"]
        if right["Action"] == "iam:PassRole"
    )
    assert set(passed) == {trust["Principal"]["Service"] for trust in trusts}
    assert f"All {len(roles)} roles" in section


WITH_COMMANDS = [
    *PAGES,
    *sorted((ROOT / "cli/darkroom_cli").rglob("*.py")),
    *sorted((ROOT / "layers/page/web").rglob("*.js")),
    *sorted((ROOT / "cli/darkroom_cli/operate/web").rglob("*.js")),
]
"""Files that have commands for people to paste."""


@pytest.mark.parametrize("file", WITH_COMMANDS, ids=name_of)
def test_no_command_to_paste_puts_a_secret_into_arguments_which_every_user_of_a_machine_can_read(file: Path) -> None:
    # The shell's own `echo` is no process: echo "Authorization: Bearer $KEY" | curl -H @-
    text = file.read_text().replace("\\\n", " ")
    secrets = re.findall(r"""-H[\\'",\s]*Authorization.*|--secret-string\s+["$].*""", text)
    if file.suffix == ".md":
        secrets += re.findall(r"--api-(?:key|token) .*", text)
    assert secrets == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name_of)
def test_no_line_is_longer_than_120_characters_but_in_tables_and_for_addresses(page: Path) -> None:
    lines = [line for line in page.read_text().splitlines() if not line.lstrip(" +-").startswith("|")]
    assert [line for line in lines if len(re.sub(r"\]\([^)]*\)|https?://\S+", "", line)) > 120] == []


def test_what_operators_attach_to_a_role_they_detach_before_they_remove_the_stack() -> None:
    pages = "\n".join(page.read_text() for page in PAGES)
    policies = {name for name in resources("AWS::IAM::ManagedPolicy") if f"`{name}`" in pages}
    attached = {*re.findall(r"aws iam attach-(?:role|user|group)-policy [^`]*resource (\w+)", pages)}
    assert attached and attached <= policies
    removal = (DOCS / "deploy.md").read_text().partition("\n## Remove it")[2].partition("`sam delete")[0]
    assert {name for name in policies if f"`{name}`" in removal} == policies
    for kind in re.findall(r"aws iam attach-(role|user|group)-policy", pages):
        assert f"aws iam detach-{kind}-policy" in removal


RECORDS = sorted(DECISIONS.glob("[0-9]*.md"))

PARTS_OF_A_RECORD = ["Context", "Decision", "Why", "Alternatives considered", "How to undo it"]


def test_the_index_of_decisions_lists_every_record_once_and_names_five_to_read_first() -> None:
    index = (DECISIONS / "README.md").read_text()
    listed = re.findall(r"^- \[(\d{4})\]\((\1-[a-z0-9-]+\.md)\) ", index, re.MULTILINE)
    assert [name for _, name in listed] == [path.name for path in RECORDS]
    assert len({number for number, _ in listed}) == len(listed), "the number of a record that is dropped stays unused"
    assert index.count(") **(first)** ") == 5


@pytest.mark.parametrize("record", RECORDS, ids=name_of)
def test_a_record_of_a_decision_has_its_status_and_its_parts(record: Path) -> None:
    text = record.read_text()
    assert re.match(rf"# {record.name[:4]}\. .+\n\nStatus: accepted \d{{4}}-\d\d-\d\d[.,]", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS_OF_A_RECORD


@pytest.mark.parametrize("record", RECORDS, ids=name_of)
def test_every_file_that_a_record_names_exists(record: Path) -> None:
    roots = ("", "layers/core/darkroom", "layers/core/darkroom/imaging", "cli/darkroom_cli", "docs")
    for name in re.findall(r"`(\w[\w.-]*/[\w./-]*\w(?:/|\.py|\.toml|\.yaml|\.sh))`", record.read_text()):
        assert any((ROOT / root / name).exists() for root in roots), name


def test_the_records_of_decisions_are_short() -> None:
    assert len(RECORDS) <= 35
    assert sum(len(path.read_bytes()) for path in DECISIONS.iterdir()) <= 75_000


def test_the_glossary_has_few_words_and_each_once() -> None:
    words = re.findall(r"\*\*([^*]+)\*\*", (DOCS / "glossary.md").read_text())
    assert len(words) <= 35
    assert len(set(words)) == len(words)
