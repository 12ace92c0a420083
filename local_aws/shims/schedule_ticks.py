"""Runs schedules as soon as their time has come.

Gap: MiniStack looks every ten seconds whether a rule is due, so that after a move of the clock (`warp.py`)
nothing scheduled happens for up to ten seconds of this machine's time, however much of the stack's time that is.
AWS: a rule with a rate runs within 60 seconds of its time, usually within a second.
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-rule-schedule.html
"""

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

INTERVAL_SECONDS = 0.5


def apply(emulator: Emulator) -> None:
    """Look more often; the loop reads the interval before each pause."""
    replace(internals("services.eventbridge"), "_SCHEDULER_TICK_INTERVAL", lambda _: INTERVAL_SECONDS)
