"""The work of `darkroom audit`, once the command line is parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from darkroom.domain.kernel.instants import Milliseconds, rfc3339
from darkroom_cli.operator.domain.audit import Recorded, State
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display

_IDS_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class ActionFilters:
    """Which actions: of the last `seconds`, with this name, and about this id; None for all."""

    seconds: float
    action: str | None = None
    about: str | None = None

    def includes(self, action: Action) -> bool:
        """Whether it is one of them, its time apart."""
        entry = action.first.entry
        return self.action in (None, entry.action) and (
            self.about is None or self.about in action.targets or self.about in entry.about.values()
        )


@dataclass(kw_only=True)
class Action:
    """An action, joined from its entries."""

    first: Recorded
    state: State
    ended_at: Milliseconds | None = None
    targets: dict[str, None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    error: str | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The action as JSON."""
        entry = self.first.entry
        return {
            "action_id": entry.action_id,
            "action": entry.action,
            "state": self.state.value,
            "actor": self.first.actor,
            "stack": self.first.stack,
            "began_at": rfc3339(entry.at),
            "ended_at": rfc3339(self.ended_at),
            "about": dict(entry.about),
            "targets": list(self.targets),
            "counts": dict(self.counts),
            "error": self.error,
        }


def joined(entries: Iterable[Recorded]) -> Sequence[Action]:
    """The actions of these entries, which are in any order, in the order in which they began."""
    actions: dict[str, Action] = {}
    for recorded in sorted(entries, key=lambda recorded_action: recorded_action.entry.at):
        entry = recorded.entry
        action = actions.setdefault(entry.action_id, Action(first=recorded, state=entry.state))
        action.targets.update(dict.fromkeys(entry.targets))
        if entry.state not in (State.BEGUN, State.GOING_ON):
            action.state, action.ended_at, action.error = entry.state, entry.at, entry.error
            action.counts.update(entry.counts)
        elif entry.state is State.BEGUN:
            action.first = recorded
            action.state = State.BEGUN if action.state is State.GOING_ON else action.state
    return list(actions.values())


def newest(stack: Stack, wanted: ActionFilters, *, limit: int) -> tuple[Sequence[Action], bool]:
    """The wanted actions, the newest first, and whether these are all."""
    now = stack.clock()
    with stack.explained():
        entries = list(stack.audit_log.entries(since=max(0, now - round(1000 * wanted.seconds)), until=now + 60_000))
    actions = [
        action
        for action in joined(entries)
        if wanted.action in (None, action.first.entry.action)
        and (
            wanted.about is None or wanted.about in action.targets or wanted.about in action.first.entry.about.values()
        )
    ]
    return actions[::-1][:limit], len(actions) <= limit


def show(stack: Stack, wanted: ActionFilters, *, limit: int, as_json: bool) -> None:
    """`audit`."""
    actions, is_all = newest(stack, wanted, limit=limit)
    if as_json:
        display.print_json({"actions": [action.document for action in actions], "complete": is_all})
        return
    out = display.output()
    if not actions:
        display.line(out, "Nothing was done in that time, or nothing of that kind.")
        return
    display.table(out, ("began", "actor", "action", "state", "counts", "about"), map(_row, actions), right=frozenset())
    if not is_all:
        display.line(display.errors(), f"There are more: --limit {2 * limit} shows twice as many.")


def _row(action: Action) -> tuple[str, ...]:
    entry = action.first.entry
    words = [f"{name}={value}" for name, value in entry.about.items()]
    ids = [*action.targets][:_IDS_SHOWN]
    more = [f"… and {len(action.targets) - _IDS_SHOWN:,} more"] if len(action.targets) > _IDS_SHOWN else []
    return (
        str(rfc3339(entry.at)),
        action.first.actor.rpartition(":")[2],
        entry.action,
        action.state.value if action.error is None else f"{action.state}: {action.error}",
        ", ".join(f"{count:,} {name}" for name, count in action.counts.items()),
        " ".join([*words, *ids, *more]),
    )
