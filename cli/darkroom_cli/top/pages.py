"""Draws an observation for a window of any size: what is wrong first, and less of each list in a small window."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from urllib.parse import urlsplit

from rich.cells import cell_len
from rich.text import Text

from darkroom.domain.images.load_shedding import high_water_mark
from darkroom.domain.images.service_level import FAST_BURN, FAST_MINUTES, LEAST_BAD, OBJECTIVE, SLOW_BURN, SLOW_MINUTES
from darkroom.domain.kernel.fingerprint import WORKER, StackFrame
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import Lane, retries_of
from darkroom.domain.sweeping.due import BEHIND_SECONDS
from darkroom.domain.tenants.shares import WINDOW_MINUTES
from darkroom_cli.operator.domain.budgets import BUDGET_DAYS, WEBHOOKS, Budget
from darkroom_cli.operator.domain.observation import (
    ERROR_MINUTES,
    Alarm,
    Condition,
    Counted,
    LaneWaits,
    QueueCount,
    Working,
    causes_of,
    condition_since,
)
from darkroom_cli.operator.operations.observation.observe_stack import PANELS, Observation, Panel, Unfinished
from darkroom_cli.places import as_typed
from darkroom_cli.terminal.display import age, of, printable

TWO_COLUMNS_FROM = 150
"""The width from which panels stand side by side."""

ROWS = 12
"""The most rows of a list, in a window that has room for them."""

_GAP = 3
_BAD, _WARN, _GOOD, _DIM, _HEAD = "bold red", "yellow", "green", "bright_black", "bold"
_WARN_FULL, _BAD_FULL = 0.5, 0.8

FAILING_PERCENT = 20
"""The share of attempts that fail from which an alarm goes off."""

_WARN_LEFT_PERCENT = 25
_LEAST_SHOWN_BURN = 0.05
_HERE = "./darkroom top"
_NARROWEST = 20
_SLOW_ACCEPT_MILLISECONDS = 2000
"""More than photos of 4 MiB take: a store or the account's concurrency is slow."""

_OF_LANES = ("queues", "unfinished", "drains", "outcomes", "budgets", "measured")


@dataclass(frozen=True, kw_only=True)
class View:
    """What is drawn: the observation, at the moment `now`, why parts could not be read, and the `options` with which
    other commands reach the same stack."""

    observation: Observation
    problems: Mapping[str, str]
    now: Milliseconds
    stack: str
    region: str
    options: str


@dataclass(kw_only=True)
class Section:
    """A panel as it is drawn: its name, a summary in the same line, the command that shows more, and its lines."""

    name: str
    summary: Text
    command: str | None = None
    lines: list[Text] = field(default_factory=list)


def page(view: View, *, width: int, height: int | None) -> list[Text]:
    """The lines of the page, none wider than `width`; no more than `height` unless that is None: a small window gets no
    empty lines, and then less of each list."""
    drawn = _drawn(view, width, ROWS, is_dense=False)
    for rows in range(ROWS, 0, -1):
        if height is None or len(drawn) <= height:
            break
        drawn = _drawn(view, width, rows, is_dense=True)
    return drawn[:height]


def _drawn(view: View, width: int, rows: int, *, is_dense: bool) -> list[Text]:
    if width < TWO_COLUMNS_FROM:
        return [_header(view, width), *_column(_ALL, view, width, rows, is_dense=is_dense)]
    own = (width - _GAP) * 3 // 5
    first = _column(_LEFT, view, own, rows, is_dense=is_dense)
    second = _column(_RIGHT, view, width - _GAP - own, rows, is_dense=is_dense)
    beside = []
    for left, right in zip_longest(first, second, fillvalue=Text()):
        line = left.copy()
        line.pad_right(own + _GAP - line.cell_len)
        beside.append(line + right)
    return [_header(view, width), *beside]


def _column(panels: Sequence[Draw], view: View, width: int, rows: int, *, is_dense: bool) -> list[Text]:
    lines: list[Text] = []
    was_short = False
    for place, draw in enumerate(panels):
        section = draw(view, width, rows)
        if section is None:
            continue
        is_short = not section.lines
        # Panels with nothing to say stand together.
        if not is_dense and not (is_short and was_short and place):
            lines.append(Text())
        lines += [_title(section, width), *section.lines]
        was_short = is_short
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _title(section: Section, width: int) -> Text:
    title = Text.assemble((section.name, _HEAD), "  ", section.summary)
    if section.command is not None and title.cell_len + 2 + cell_len(as_typed(section.command)) <= width:
        title.append("  ")
        title.append(as_typed(section.command), style=_DIM)
    return title


def _header(view: View, width: int) -> Text:
    alarms = view.observation.alarms.value or ()
    critical = sum(alarm.is_critical for alarm in alarms)
    if len(view.problems) == len(PANELS):
        state = Text("nothing can be read", style=_BAD)
    elif "alarms" in view.problems:
        state = Text("alarms cannot be read", style=_WARN)
    elif any(alarm.children for alarm in alarms):
        state = Text(f"incident: {of(critical - 1, 'critical alarm')}" if critical > 1 else "incident", style=_BAD)
    elif critical:
        state = Text(of(critical, "critical alarm"), style=_BAD)
    elif alarms:
        state = Text(of(len(alarms), "warning"), style=_WARN)
    elif view.problems:
        state = Text("not all could be read", style=_WARN)
    else:
        state = Text("no alarm", style=_GOOD)
    header = Text.assemble((view.stack, _HEAD), "  ", state, "  ", (view.region, _DIM))
    header.truncate(width, overflow="ellipsis")
    moment = Text(f"{datetime.fromtimestamp(view.now / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC", style=_DIM)
    left = width - header.cell_len - moment.cell_len
    return header + Text(" " * left) + moment if left > 0 else header


# ── The panels ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _alarms(view: View, width: int, rows: int) -> Section:
    panel = view.observation.alarms
    section = Section(name="ALARMS", summary=Text("none is on", style=_GOOD), lines=_unread(view, "alarms"))
    if panel.value is None:
        section.summary = Text("unknown", style=_WARN)
        return section
    alarms = sorted(panel.value, key=lambda alarm: not alarm.is_critical)
    if alarms:
        section.summary = Text(f"{len(alarms)} on", style=_BAD if alarms[0].is_critical else _WARN)
    shown = max(1, rows // 2)
    causes = {cause.name for alarm in alarms for cause in causes_of(alarm, alarms)}
    for alarm in alarms[:shown]:
        section.lines += _alarm(alarm, view, width, is_cause=alarm.name in causes)
    section.lines += _rest(len(alarms) - shown)
    return section


def _alarm(alarm: Alarm, view: View, width: int, *, is_cause: bool) -> list[Text]:
    """What causes an incident stands below it, further to the right."""
    word, style = ("CRITICAL", _BAD) if alarm.is_critical else ("warning ", _WARN)
    indent = " " * (4 if is_cause else 2)
    word = "INCIDENT" if alarm.children else word
    head = Text.assemble(indent, (word, style), "  ", (alarm.name, _HEAD), f"  {_since(alarm.since, view.now)}")
    if alarm.section is not None:
        head.append(f"  {printable(alarm.section)}", style=_DIM)
    lines = [head]
    indent += " " * len(f"{word}  ")
    effect = textwrap.wrap(printable(alarm.effect), max(width - len(indent), _NARROWEST))
    lines += [Text(f"{indent}{line}") for line in effect]
    if alarm.command is not None and alarm.command != _HERE:  # what it says to look at is shown here
        lines.append(Text.assemble(indent, (printable(f"{alarm.command}{view.options}"), "cyan")))
    return lines


def _lanes(view: View, width: int, rows: int) -> Section:
    observation = view.observation
    section = Section(
        name="LANES",
        summary=Text(_flow_note(view), style=_DIM),
        lines=[line for name in _OF_LANES for line in _unread(view, name)],
    )
    late = 0
    table = _Table(
        ("lane", "waiting", "in flight", "oldest", "SLA", "late", "in/min", "out/min", "full", "clears in"),
        left={"lane"},
        dispensable=("clears in", "full"),
    )
    for lane in observation.service.values():
        waits = None if observation.unfinished.value is None else observation.unfinished.value.lanes.get(lane.name)
        is_paused = any((pause.kind, pause.name) == ("lane", lane.name) for pause in observation.pauses.value or ())
        late += 0 if waits is None or is_paused else waits.late.number
        table.add(*_lane(view, lane, waits, is_paused=is_paused))
    section.lines += table.lines(width)
    section.lines += _budgets(view, width)
    section.lines += _p99(view)
    if late:
        section.command = f"./darkroom ls --late{view.options}"
    return section


def _p99(view: View) -> list[Text]:
    measured = view.observation.measured.value
    if measured is None:
        return []
    took, receives = measured.accept_p99_milliseconds, measured.receives_p99
    parts = [] if took is None else [f"accepting {took:,.0f} ms"]
    parts += [] if receives is None else [f"receives of a message {receives:,.0f}"]
    sentence = f"  p99 in the worst five minutes of the last hour: {', '.join(parts)}"
    is_slow = (took or 0) > _SLOW_ACCEPT_MILLISECONDS
    return [Text(sentence, style=_WARN if is_slow else _DIM)] if parts else []


def _lane(view: View, lane: Lane, waits: LaneWaits | None, *, is_paused: bool) -> list[Text]:
    observation = view.observation
    count = (observation.queues.value or {}).get(lane.name)
    flow = None if observation.measured.value is None else observation.measured.value.flows.get(lane.name)
    drain = (observation.drains.value or {}).get(lane.name)
    oldest = None if waits is None or waits.oldest_since is None else (view.now - waits.oldest_since) / 1000
    return [
        Text(f"{lane.name}, paused", style=_WARN) if is_paused else Text(lane.name),
        _number(None if count is None else count.waiting),
        _number(None if count is None else count.in_flight),
        _oldest(oldest, lane, is_known=waits is not None, is_paused=is_paused),
        Text(age(lane.sla_seconds), style=_DIM),
        _unknown() if waits is None else _counted(waits.late, style=_DIM if is_paused else _WARN),
        _number(None if flow is None else flow.incoming),
        _number(None if flow is None else flow.outgoing),
        *_fullness(lane, count, drain),
    ]


def _oldest(oldest_seconds: float | None, lane: Lane, *, is_known: bool, is_paused: bool) -> Text:
    if oldest_seconds is None:
        return Text("-", style=_DIM) if is_known else _unknown()
    style = _BAD if oldest_seconds > lane.stuck_seconds else _WARN if oldest_seconds > lane.sla_seconds else ""
    return Text(age(oldest_seconds), style="" if is_paused else style)


def _fullness(lane: Lane, count: QueueCount | None, drain: float | None) -> list[Text]:
    if count is None or drain is None:
        return [_unknown(), _unknown()]
    share = count.backlog / high_water_mark(lane, drain)
    style = _BAD if share >= _BAD_FULL else _WARN if share >= _WARN_FULL else ""
    clears = Text(age(count.backlog / drain)) if count.backlog else Text("-", style=_DIM)
    return [Text(f"{share:.0%}", style=style), clears]


def _paused(view: View, width: int, rows: int) -> Section | None:
    """Nothing, if nothing is paused."""
    pauses, unread = view.observation.pauses.value, _unread(view, "pauses")
    if not pauses and not unread:
        return None
    summary = "unknown" if pauses is None else f"{len(pauses):,}"
    section = Section(name="PAUSED", summary=Text(summary, style=_WARN), lines=unread)
    section.command = f"./darkroom pause ls{view.options}"
    for pause in (pauses or ())[:rows]:
        named = Text.assemble("  ", (f"{pause.kind} {printable(pause.name)}", _HEAD))
        section.lines.append(named + Text(f"  {_since(pause.since, view.now)}  {printable(pause.reason)}".rstrip()))
    section.lines += _rest(len(pauses or ()) - rows)
    return section


def _flow_note(view: View) -> str:
    measured = view.observation.measured.value
    if measured is None or not measured.flows:
        return "in and out: nothing was counted in the last hour"
    latest = max(flow.minute_at for flow in measured.flows.values())
    ended = (view.now - latest) / 1000 - 60
    moment = f"{datetime.fromtimestamp(latest / 1000, UTC):%H:%M}"
    return f"in and out: the minute {moment}, which ended {age(ended)} ago"


def _budgets(view: View, width: int) -> list[Text]:
    budgets, outcomes = view.observation.budgets.value or {}, view.observation.outcomes.value or {}
    table = _Table(
        ("lane", f"budget of {BUDGET_DAYS} days", "fast burn", "slow burn", "attempts fail"),
        left={"lane"},
    )
    for lane in view.observation.service:
        recent = outcomes.get(lane)
        table.add(
            Text(lane),
            _left(budgets.get(lane)),
            _unknown() if recent is None else _burn(recent.fast_burn, FAST_BURN),
            _unknown() if recent is None else _burn(recent.slow_burn, SLOW_BURN),
            _unknown() if recent is None else _failing(recent.failing_percent),
        )
    of_lanes = {lane: budgets[lane] for lane in view.observation.service if lane in budgets}
    return [*table.lines(width), *_budget_note(of_lanes, width)]


def _budget_note(budgets: Mapping[str, Budget], width: int) -> list[Text]:
    """Why a budget may be spent while nothing burns: they look at different times."""
    bad = [f"{lane} {budget.bad:,} of {budget.ended:,}" for lane, budget in budgets.items() if budget.bad]
    if not bad:
        return []
    (short, hour), (half_hour, hours) = FAST_MINUTES, SLOW_MINUTES
    sentence = (
        f"budget: bad images of {BUDGET_DAYS} days: {', '.join(bad)}; {1 - OBJECTIVE:.1%} may be. "
        f"burn: how fast it is spent now, the lower of {short} min and {hour // 60} h (fast), {half_hour} min and "
        f"{hours // 60} h (slow); - for fewer than {LEAST_BAD} bad images"
    )
    return [Text(f"  {line}", style=_DIM) for line in textwrap.wrap(sentence, max(width - 2, _NARROWEST))]


def _left(budget: Budget | None) -> Text:
    if budget is None:
        return _unknown()
    left = budget.left_percent
    if left is None:
        return Text("—", style=_DIM)
    style = _BAD if left <= 0 else _WARN if left < _WARN_LEFT_PERCENT else ""
    return Text(f"{left:,.1f}% left" if left > 0 else f"spent {1 - left / 100:,.1f}×", style=style)


def _burn(burn: float, limit: float) -> Text:
    if burn == 0:
        return Text("-", style=_DIM)
    shown = f"{burn:,.1f}×" if burn >= _LEAST_SHOWN_BURN else "<0.1×"
    return Text(shown, style=_BAD if burn >= limit else _WARN)


def _failing(percent: float) -> Text:
    if percent == 0:
        return Text("-", style=_DIM)
    return Text(f"{percent:.0f}%", style=_BAD if percent >= FAILING_PERCENT else _WARN)


def _retrying(view: View, width: int, rows: int) -> Section:
    unfinished = view.observation.unfinished.value
    section = Section(name="RETRYING", summary=Text("nothing that failed", style=_GOOD))
    if unfinished is None:
        section.summary = Text("unknown", style=_WARN)
        return section
    images = sum(len(defect.images) for defect in unfinished.defects)
    lost = [worker for worker in unfinished.working if worker.is_lost]
    failed = [f"{of(images, 'image')}, {of(len(unfinished.defects), 'defect')}"] if images else []
    parts = [*failed, *([f"worker lost: {len(lost):,}"] if lost else [])]
    if parts:
        section.summary = Text(f"{', '.join(parts)}{_of_the_longest(unfinished)}", style=_WARN)
    if images:
        section.command = f"./darkroom dlq ls{view.options}"
    elif not parts and not unfinished.is_all:
        section.summary = Text(f"nothing{_of_the_longest(unfinished)}", style=_GOOD)
    shown = max(1, rows // 2)
    for defect in unfinished.defects[:shown]:
        next_at = min((image.not_before or 0 for image in defect.images), default=0)
        when = f"next {_ahead(next_at, view.now)}"
        tries = f"up to attempt {defect.attempts} of {retries_of(defect.images[0].lane).attempts}, {when}"
        number = f"  {len(defect.images):>5}  "
        message = printable(" ".join(f"{defect.cause.error_type}: {defect.cause.message}".split()))
        section.lines.append(Text.assemble((number, _WARN), (message, _HEAD)))
        place = Text.assemble(" " * len(number), printable(defect.fingerprint))
        section.lines.append(_placed(place, defect.frame, width))
        section.lines.append(Text.assemble((f"{' ' * len(number)}{defect.images[0].image_id}", _DIM), f"  {tries}"))
    section.lines += _rest(len(unfinished.defects) - shown)
    if lost:
        section.lines += _lost(lost, view)
    return section


def _lost(lost: Sequence[Working], view: View) -> list[Text]:
    """Images whose worker died: they wait for the sweeper."""
    last = max((worker.returns_by for worker in lost if worker.returns_by is not None), default=None)
    when = "" if last is None else f", back by {datetime.fromtimestamp(last / 1000, UTC):%H:%M:%S}"
    if last is not None and last <= view.now:
        when = ", the sweeper is late for them"
    number = f"  {len(lost):>5}  "
    tries = f"attempt {lost[0].attempt} of {retries_of(lost[0].lane).attempts}"
    return [
        Text.assemble((number, _WARN), ("worker lost", _HEAD), when),
        Text(f"{' ' * len(number)}{lost[0].image_id}  {tries}", style=_DIM),
    ]


def _dead_letters(view: View, width: int, rows: int) -> Section:
    dead = view.observation.dead_letters.value
    section = Section(name="DEAD LETTERS", summary=Text("none", style=_GOOD), lines=_unread(view, "dead_letters"))
    if dead is None:
        section.summary = Text("unknown", style=_WARN)
        return section
    depths = [f"{printable(queue)} {depth:,}" for queue, depth in dead.depths.items() if depth]
    if dead.coming.number:  # given up, and the sweeper has not come by yet
        depths.append(f"{_words(dead.coming)} coming within a minute")
    if depths:
        section.summary = Text(f"{dead.number:,}: {', '.join(depths)}", style=_BAD)
        section.command = f"./darkroom dlq ls{view.options}"
    shown = max(1, rows // 2)
    for cause in dead.causes[:shown]:
        head = Text.assemble(
            (f"  {cause.dead_letters:>5}  ", _BAD), (printable(cause.fingerprint or cause.cause), _HEAD)
        )
        section.lines.append(_placed(head, cause.frame, width, printable(cause.queue)))
        message = printable(" ".join((cause.message or "").split()))
        if cause.image_id is not None or message:
            section.lines.append(Text.assemble((f"         {printable(cause.image_id or '')}", _DIM), f"  {message}"))
    section.lines += _rest(len(dead.causes) - shown)
    if dead.sampled and dead.sampled < dead.number:
        section.lines.append(Text(f"         causes of {dead.sampled} of them", style=_DIM))
    return section


def _functions(view: View, width: int, rows: int) -> Section | None:
    """Nothing, if there are no errors."""
    errors = view.observation.function_errors.value
    unread = _unread(view, "function_errors")
    if errors == {} and not unread:
        return None
    counts = ", ".join(f"{printable(name)} {number:,}" for name, number in (errors or {}).items())
    summary = f"errors in {ERROR_MINUTES} min: {counts or 'none'}"
    return Section(name="FUNCTIONS", summary=Text("unknown" if errors is None else summary, style=_WARN), lines=unread)


def _workers(view: View, width: int, rows: int) -> Section:
    unfinished = view.observation.unfinished.value
    section = Section(name="WORKERS", summary=Text("unknown", style=_WARN))
    if unfinished is None:
        return section
    service = view.observation.service
    busy = {name: sum(worker.lane == name for worker in unfinished.working) for name in service}
    lanes = ", ".join(f"{name} {busy[name]} of {lane.concurrency}" for name, lane in service.items())
    section.summary = Text(f"busy: {lanes}{_of_the_longest(unfinished) if unfinished.working else ''}")
    table = _Table(
        ("image", "lane", "try", "for", "lease", "request", "tenant"),
        left={"image", "lane", "request", "tenant"},
        dispensable=("tenant",),
        shortened="request",
    )
    for worker in unfinished.working[:rows]:
        left = None if worker.lease_until is None else (worker.lease_until - view.now) / 1000
        lapsed = worker.is_lost or (left is not None and left < 0)
        table.add(
            Text(worker.image_id),
            Text(printable(worker.lane)),
            Text(f"{worker.attempt}/{retries_of(worker.lane).attempts}"),
            _unknown() if worker.since is None else Text(age((view.now - worker.since) / 1000)),
            Text("lapsed" if lapsed else "-" if left is None else age(left), style=_WARN if lapsed else ""),
            Text(printable(worker.request_id or "-"), style=_DIM),
            Text(printable(worker.tenant_id)),
        )
    if unfinished.working:
        section.lines += table.lines(width)
    section.lines += _rest(len(unfinished.working) - rows)
    if unfinished.unreadable:
        sentence = (
            f"  {of(unfinished.unreadable, 'row')} of a newer version cannot be read: ./darkroom doctor{view.options}"
        )
        section.lines.append(Text(sentence, style=_WARN))
    return section


def _tenants(view: View, width: int, rows: int) -> Section | None:
    """Nothing, if no lane has worked for anybody lately."""
    shares, unread = view.observation.tenants.value, _unread(view, "tenants")
    each = [(lane, share) for lane, of_lane in (shares or {}).items() for share in of_lane]
    if not each and not unread:
        return None
    summary = "unknown" if shares is None else f"what they took of their lanes in {WINDOW_MINUTES} min"
    section = Section(name="TENANTS", summary=Text(summary, style=_WARN if shares is None else _DIM), lines=unread)
    each.sort(key=lambda item: (not item[1].is_noisy, -item[1].of_capacity))
    table = _Table(
        ("tenant", "lane", "of its work", "of capacity", "x median"), left={"tenant", "lane"}, dispensable=("x median",)
    )
    for lane, share in each[:rows]:
        times = "-" if share.times_median is None else f"{share.times_median:,.1f}"
        table.add(
            Text(printable(share.tenant_id), style=_WARN if share.is_noisy else ""),
            Text(printable(lane)),
            *(Text(f"{100 * part:.0f}%") for part in (share.of_work, share.of_capacity)),
            Text(times, style=_WARN if share.is_noisy else _DIM),
        )
    if each:
        section.lines += table.lines(width)
    section.lines += _rest(len(each) - rows)
    if any(share.is_noisy for _, share in each):
        section.command = f"./darkroom tenants move TENANT LANE{view.options}"
    return section


def _scheduled(view: View, width: int, rows: int) -> Section:
    upcoming, unfinished = view.observation.scheduled.value, view.observation.unfinished.value
    measured = view.observation.measured.value
    section = Section(name="SCHEDULED", summary=Text("none waits for its time"), lines=_unread(view, "scheduled"))
    if upcoming is None:
        section.summary = Text("unknown", style=_WARN)
    elif upcoming.next_at is not None:
        section.summary = Text(f"{_words(upcoming.images)}, the next {_ahead(upcoming.next_at, view.now)}")
        section.command = f"./darkroom delay ls{view.options}"
        within = f"  {_words(upcoming.within_hour)} within an hour, {_words(upcoming.within_day)} within a day"
        section.lines.append(Text(within))
    if unfinished is not None and unfinished.overdue.images:
        late = unfinished.overdue
        sentence = f"  {late.images:,} due and not begun, the latest for {age(late.latest_seconds)}"
        section.lines.append(Text(sentence, style=_WARN if late.latest_seconds > 60 else ""))
    if measured is not None and measured.release_lateness_seconds is not None:
        lateness = measured.release_lateness_seconds
        sentence = f"  in the last hour they reached their lanes at most {age(lateness)} late"
        section.lines.append(Text(sentence, style=_WARN if lateness > 60 else ""))
    return section


_CONDITIONS = dict.fromkeys(Condition, _WARN) | {Condition.HEALTHY: "", Condition.DISABLED: _BAD}


def _webhooks(view: View, width: int, rows: int) -> Section | None:
    if "webhooks" not in view.observation.parts:
        return None
    webhooks = view.observation.webhooks.value
    section = Section(name="WEBHOOKS", summary=Text("unknown", style=_WARN), lines=_unread(view, "webhooks"))
    if webhooks is None:
        return section
    if not webhooks.endpoints.number:
        section.summary = Text("none")
        return section
    section.summary = Text(f"{_words(webhooks.endpoints)}: ")
    conditions = [(condition, number) for condition, number in webhooks.conditions.items() if number]
    for place, (condition, number) in enumerate(conditions):
        section.summary.append(", " if place else "")
        section.summary.append(f"{number:,} {condition}", style=_CONDITIONS[condition] or _GOOD)
    table = _Table(
        ("webhook", "state", "since", "waiting", "tenant", "host"),
        left={"webhook", "state", "tenant", "host"},
        dispensable=("host", "tenant"),
    )
    for webhook in webhooks.unhealthy[:rows]:
        since = condition_since(webhook.endpoint)
        table.add(
            Text(webhook.endpoint.endpoint_id),
            Text(webhook.condition, style=_CONDITIONS[webhook.condition]),
            _unknown() if since is None else Text(_since(since, view.now)),
            _counted(webhook.deliveries),
            Text(printable(webhook.endpoint.tenant_id)),
            Text(printable(urlsplit(webhook.endpoint.url).hostname or ""), style=_DIM),
        )
    section.lines += _first_attempts(view)
    if webhooks.unhealthy:
        section.lines += table.lines(width)
    unhealthy = sum(number for condition, number in webhooks.conditions.items() if condition is not Condition.HEALTHY)
    section.lines += _rest(unhealthy - min(rows, len(webhooks.unhealthy)))
    return section


def _first_attempts(view: View) -> list[Text]:
    """Nothing, if none has counted for as long as a budget lasts."""
    budget, measured = (view.observation.budgets.value or {}).get(WEBHOOKS), view.observation.measured.value
    if budget is None or not budget.ended:
        return []
    good = f"{100 * (1 - budget.bad / budget.ended):.2f}%"
    lines = [Text.assemble(f"  first attempts: {good} good, ", _left(budget), f" of the budget of {BUDGET_DAYS} days")]
    if measured is not None and measured.first_attempt_p99_seconds is not None:
        half = measured.first_attempt_p50_seconds or 0
        answered = (
            f"  answered after p50 {half:,.1f} s, p99 {measured.first_attempt_p99_seconds:,.1f} s of their events"
        )
        lines.append(Text(answered, style=_DIM))
    if budget.repeated:
        lines.append(Text(f"  perhaps sent twice: {budget.repeated:,}", style=_WARN))
    return lines


def _queues(view: View, width: int, rows: int) -> Section:
    observation = view.observation
    section = Section(name="OTHER QUEUES", summary=Text("unknown", style=_WARN))
    if observation.queues.value is None:
        return section
    others = [(name, count) for name, count in observation.queues.value.items() if name not in observation.service]
    section.summary = Text("  ").join(
        Text.assemble((f"{printable(name)} ", _DIM), f"{count.total:,}" if count.total else ("0", _DIM))
        for name, count in sorted(others)
    )
    return section


def _sweeper(view: View, width: int, rows: int) -> Section | None:
    late = view.observation.sweeper.value
    if not late and view.observation.sweeper.problem is None:
        return None
    section = Section(name="SWEEPER", summary=Text("unknown" if late is None else "is late: ", style=_WARN))
    worst_first = sorted((late or {}).items(), key=lambda item: -item[1] / BEHIND_SECONDS[item[0]])
    section.summary.append(", ".join(f"{kind} {age(seconds)}" for kind, seconds in worst_first))
    section.lines += _unread(view, "sweeper")
    return section


type Draw = Callable[[View, int, int], Section | None]
"""Draws a panel for a width, with so many rows of its list; None if there is nothing to say."""

_ALL: Sequence[Draw] = (
    *(_alarms, _lanes, _paused, _retrying, _dead_letters, _sweeper, _functions),
    *(_workers, _tenants, _scheduled, _webhooks, _queues),
)
"""The panels from top to bottom: what may be wrong comes first."""

_LEFT: Sequence[Draw] = (_alarms, _lanes, _paused, _retrying, _workers)
_RIGHT: Sequence[Draw] = (_dead_letters, _sweeper, _functions, _tenants, _scheduled, _webhooks, _queues)


# ── Their parts ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _unread(view: View, name: str) -> list[Text]:
    """Why a part could not be read now, and how old what is shown is."""
    problem = view.problems.get(name)
    if problem is None:
        return []
    panel: Panel[object] = getattr(view.observation, name)
    since = "" if panel.read_at is None else f" for {age((view.now - panel.read_at) / 1000)}"
    return [Text(f"  not read{since}: {printable(problem)}", style=_BAD)]


def _of_the_longest(unfinished: Unfinished) -> str:
    return "" if unfinished.is_all else f", of the {unfinished.looked_at:,} that have waited longest"


def _placed(text: Text, frame: StackFrame | None, width: int, *more: str) -> Text:
    """The text with the line's path in a checkout behind it, if there is room, and otherwise with its number alone."""
    short = [] if frame is None else [f"line {frame.line}"]
    place = [] if frame is None else [printable(f"{frame.path(WORKER)}:{frame.line}")]
    where = ", ".join([*place, *more])
    if text.cell_len + 2 + cell_len(where) > width:
        where = ", ".join([*short, *more])
    return Text.assemble(text, (f"  {where}", _DIM)) if where else text


def _rest(number: int) -> list[Text]:
    return [Text(f"  … and {number:,} more", style=_DIM)] if number > 0 else []


def _since(instant: Milliseconds, now: Milliseconds) -> str:
    return f"for {age((now - instant) / 1000)}"


def _ahead(instant: Milliseconds, now: Milliseconds) -> str:
    return f"in {age((instant - now) / 1000)}" if instant - now >= 1000 else "any moment"


def _unknown() -> Text:
    return Text("?", style=_DIM)


def _number(number: int | None) -> Text:
    return _unknown() if number is None else Text(f"{number:,}", style=_DIM if number == 0 else "")


def _counted(counted: Counted, *, style: str = "") -> Text:
    return Text(_words(counted), style=style if counted.number else _DIM)


def _words(counted: Counted) -> str:
    return f"{counted.number:,}{'' if counted.is_all else '+'}"


class _Table:
    """Aligned columns that fit a width: it first shortens one of them, and then leaves out `dispensable` ones."""

    def __init__(
        self, heads: Sequence[str], *, left: set[str], dispensable: Sequence[str] = (), shortened: str | None = None
    ) -> None:
        self._heads, self._left, self._dispensable, self._shortened = heads, left, dispensable, shortened
        self._rows: list[list[Text]] = []

    def add(self, *cells: Text) -> None:
        """Adds a row."""
        self._rows.append(list(cells))

    def lines(self, width: int) -> list[Text]:
        """The table's lines."""
        heads = list(self._heads)
        rows = self._rows
        if self._shortened is not None and self._width(heads, rows) > width:
            place = heads.index(self._shortened)
            rows = [[*row[:place], _short(row[place]), *row[place + 1 :]] for row in rows]
        for dispensable in self._dispensable:
            if self._width(heads, rows) <= width:
                break
            place = heads.index(dispensable)
            heads = heads[:place] + heads[place + 1 :]
            rows = [row[:place] + row[place + 1 :] for row in rows]
        widths = self._widths(heads, rows)
        titles = [Text(head, style=_DIM) for head in heads]
        return [self._line(heads, cells, widths) for cells in [titles, *rows]]

    def _line(self, heads: Sequence[str], cells: Sequence[Text], widths: Sequence[int]) -> Text:
        line = Text(" ")
        for head, cell, width in zip(heads, cells, widths, strict=True):
            padding = " " * (width - cell.cell_len)
            line.append(" ")
            line += cell + Text(padding) if head in self._left else Text(padding) + cell
            line.append(" ")
        line.rstrip()
        return line

    def _width(self, heads: Sequence[str], rows: Sequence[Sequence[Text]]) -> int:
        return 1 + sum(width + 2 for width in self._widths(heads, rows)) - 1

    def _widths(self, heads: Sequence[str], rows: Sequence[Sequence[Text]]) -> list[int]:
        return [max(cell_len(head), *(row[place].cell_len for row in rows), 0) for place, head in enumerate(heads)]


_SHORT_CHARACTERS = 9


def _short(text: Text) -> Text:
    short = text.copy()
    short.truncate(_SHORT_CHARACTERS, overflow="ellipsis")
    return short
