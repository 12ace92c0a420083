"""The command that each alarm tells whoever is paged to type first, on the local stack."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor

from darkroom_cli.operator.aws.alarms import alarm_of
from tests.local.local_stack import LocalStack


def test_every_first_command_works_without_options_and_says_something(stack: LocalStack) -> None:
    listed = stack.client("cloudwatch").describe_alarms(AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    alarms = [alarm_of(answer, str, warnings="") for answer in [*listed["MetricAlarms"], *listed["CompositeAlarms"]]]
    commands = {alarm.command for alarm in alarms}
    assert None not in commands and len(commands) >= 5, commands

    def run(command: str) -> subprocess.CompletedProcess[str]:
        program, *arguments = command.split()
        assert program == "./darkroom"
        return stack.darkroom(*arguments)

    typed = sorted(filter(None, commands))
    with ThreadPoolExecutor(max_workers=2) as workers:  # each starts an interpreter
        for command, ran in zip(typed, workers.map(run, typed), strict=True):
            # 1 is how a command says that it found something.
            assert ran.returncode in (0, 1), f"{command}: {ran.stdout}"
            assert ran.stdout.strip() and "Traceback" not in ran.stdout, f"{command}: {ran.stdout}"
            assert "error:" not in ran.stdout, f"{command}: {ran.stdout}"
