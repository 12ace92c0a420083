"""The work of `darkroom drill`: opens a drill, waits for its alarms, and puts everything back, whatever happens."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import typer

from darkroom.domain.kernel.ids import image_id_from_bits
from darkroom.domain.kernel.instants import Milliseconds
from darkroom_cli.drill import pages
from darkroom_cli.drill.alarms import AlarmHistory, DrillAlarms
from darkroom_cli.drill.clocks import LONGEST_STEP_SECONDS, MINUTE_SECONDS, DrillClock, clock_of
from darkroom_cli.drill.drills import CRITICAL, DRILLS, INCIDENT, Drill, Where
from darkroom_cli.drill.opened import AnotherIsOpen, OpenDrill, OpenDrills
from darkroom_cli.drill.result import DrillResult
from darkroom_cli.drill.scene import Scene, api_url_of
from darkroom_cli.drill.switches import Restoration, Setting, plan, put_back, throw
from darkroom_cli.stack.operators import Stack
from darkroom_cli.terminal import display
from darkroom_cli.terminal.interrupts import INTERRUPTED, LEAVING, Interrupted, Interrupts
from darkroom_client.client import ApiError

KEEP_SECONDS = 2 * 3600
"""How long the switches of a drill may stay thrown, unless it is told otherwise."""

_CALM_MINUTES = 20
_MOMENT_SECONDS = 1.2


def open_drills(stack: Stack) -> OpenDrills:
    """The stack's place for an open drill."""
    return OpenDrills(stack.client("dynamodb"), stack.physical_id("ThroughputTable"))


def list_(stack: Stack, *, as_json: bool) -> None:
    """`drill ls`."""
    with stack.explained():
        opened = open_drills(stack).find()
    if as_json:
        drills = [
            {
                "name": drill.name,
                "rehearses": drill.rehearses,
                "alarms": sorted(drill.expected),
                "where": drill.where,
                "part": drill.part,
            }
            for drill in DRILLS.values()
        ]
        display.print_json({"open": None if opened is None else opened.name, "drills": drills})
    else:
        pages.list_drills(display.output(), opened, stack.options, stack.parts)


def is_there(stack: Stack, drill: Drill) -> bool:
    """Whether the stack has the part that the drill rehearses."""
    return drill.part is None or drill.part in stack.parts


def check_allowed(stack: Stack, drill: Drill, *, in_production: bool) -> None:
    """Raises ApiError if the drill may not run there."""
    if stack.parameters.get("Observability") == "false":
        raise ApiError("Drills ring alarms that a stack has only with Observability=true.")
    if not is_there(stack, drill):  # guard: drill-absent-part
        raise ApiError(f"{drill.name} rehearses {drill.part}, which {stack.name} is deployed without.")
    is_production = stack.parameters.get("Environment") == "prod"
    if drill.where is Where.LOCAL and not stack.is_local:
        raise ApiError(f"{drill.name} runs only on the local stack: {drill.because}.")
    if drill.where is Where.NOT_IN_PRODUCTION and is_production:  # guard: drill-harmful-not-in-production
        raise ApiError(f"{drill.name} does not run on a production stack: {drill.because}.")
    if is_production and not in_production:  # guard: drill-production-consent
        raise ApiError(
            f"{stack.name} is a production stack, and {drill.name} really breaks something: {drill.rehearses}. "
            "If that is what you want, and the person on call knows of it: --yes-in-production"
        )
    if drill.needs_keys and stack.access != "keys":
        raise ApiError(
            f"{drill.name} needs tenants of several tiers, so a stack whose API asks for keys: "
            "./darkroom local up --access keys"
        )


def run(
    stack: Stack,
    drill: Drill,
    *,
    keep_seconds: float,
    token: str | None,
    report: pages.DrillReport,
    interrupts: Interrupts,
) -> DrillResult:
    """Runs a drill from its first switch to the last alarm's end. Raises ApiError if it cannot begin or everything
    could not be put back, and Interrupted after everything was put back."""
    clock = clock_of(stack, interrupts.pause)
    alarms = DrillAlarms(stack)
    scene = Scene(stack=stack, api_url=api_url_of(stack), clock=clock, pause=interrupts.pause, token=token)
    began = time.monotonic()
    result = DrillResult(drill=drill)
    already = open_drills(stack).find()
    if already is not None:
        raise ApiError(another_is_open(stack, already))
    _await_calm(stack, clock, alarms, report)
    started_at = stack.clock()
    report.begin(drill, clock.is_moved)
    try:
        with (
            stack.audit.action("drill", drill.name),
            _opened(stack, drill, scene, keep_seconds, report) as opened,
        ):
            clock.is_swept = not any(setting.kind == "schedule" for setting in opened.settings)
            drill.load.begin(scene)
            watch = _Watch(stack, clock, alarms, drill, scene, started_at, opened, report)
            _await_alarms(watch, result)
            report.show_operator(drill, alarms.on(), scene)
    finally:
        clock.is_swept = True
        if interrupts.requested:  # whoever interrupts a drill wants it cleaned up, but not to wait for every image
            scene.pause, scene.clock, scene.is_hurried = time.sleep, clock_of(stack, time.sleep), True
        _without_signals(lambda: drill.load.recover(scene), report, result)
        _without_signals(scene.revoke_keys, report, result)
    _await_clear(watch, result)
    _judge(alarms.since(started_at), result, scene)
    result.seconds = time.monotonic() - began
    return result


def _without_signals(work: Callable[[], object], report: pages.DrillReport, result: DrillResult) -> None:
    """Cleaning up goes on after a problem, which is told."""
    try:
        work()
    except Interrupted:
        raise
    except Exception as error:
        result.problems.append(f"cleaning up: {error}")
        report.trouble(f"Cleaning up: {error}")


def _await_calm(stack: Stack, clock: DrillClock, alarms: DrillAlarms, report: pages.DrillReport) -> None:
    """A drill begins while nothing is on: otherwise nobody could tell what it caused."""
    for _ in range(_CALM_MINUTES):
        on = alarms.on()
        if not on:
            return
        if not clock.is_moved:
            break
        report.note(f"waiting until {', '.join(sorted(on))} is over")
        clock.pass_seconds(MINUTE_SECONDS)
    raise ApiError(
        f"Alarms are on: {', '.join(sorted(on))}. A drill begins on a stack without any: "
        "end the incident first (docs/runbook.md)."
    )


# ── Switches ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _opened(
    stack: Stack, drill: Drill, scene: Scene, keep_seconds: float, report: pages.DrillReport
) -> Iterator[OpenDrill]:
    """The drill, open for the length of the block: everything is noted in the stack before the first change, and put
    back at the end however the block ends."""
    places = open_drills(stack)
    row = image_id_from_bits(secrets.token_bytes(16))
    settings = tuple(plan(stack, throw.kind, throw.target.format(row=row), throw.during) for throw in drill.throws)
    useless = [setting for setting in settings if setting.before == setting.during]
    if useless:
        raise ApiError(
            f"{useless[0].target} is already as this drill would make it, so it would show nothing. "
            "Is it the rest of an earlier one? Look at the stack first."
        )
    now = stack.clock()
    opened = OpenDrill(
        name=drill.name,
        token=secrets.token_hex(8),
        settings=settings,
        began_at=now,
        expires_at=now + round(keep_seconds * 1000),
    )
    try:
        places.open(opened)
    except AnotherIsOpen as error:
        raise ApiError(another_is_open(stack, error.drill)) from error
    try:
        drill.load.prepare(scene)
        for setting in settings:
            throw(stack, setting)
            report.thrown(setting)
        yield opened
    finally:
        restore(stack, opened, report)


def another_is_open(stack: Stack, drill: OpenDrill) -> str:
    """Why no drill may begin, and what to do."""
    since = pages.ago(stack.clock() - drill.began_at)
    state = (
        "it should have been over by now: nobody is running it any more"
        if stack.clock() > drill.expires_at
        else "somebody may be running it"
    )
    return (
        f"The drill {drill.name} is open since {since} ({state}). "
        f"To put back what it has changed: ./darkroom drill undo{stack.options}"
    )


def restore(stack: Stack, opened: OpenDrill, report: pages.DrillReport) -> list[Restoration]:
    """Puts every switch back, and removes the note once all are. Raises ApiError if some could not be; the note then
    names those."""
    restorations, left, problems = list[Restoration](), list[Setting](), list[str]()
    for setting in reversed(opened.settings):
        try:
            restorations.append(put_back(stack, setting))
            report.restored(restorations[-1])
        except Exception as error:  # guard: drill-restore-failure-isolated
            left.append(setting)
            problems.append(f"{setting.target}: {error}")
    open_drills(stack).close(opened, left=list(reversed(left)))
    if left:
        raise ApiError(
            "Not everything could be put back: "
            + "; ".join(problems)
            + f". It is still noted in the stack. Again: ./darkroom drill undo{stack.options}"
        )
    return restorations


def undo(stack: Stack, report: pages.DrillReport) -> OpenDrill | None:
    """Puts back what an interrupted drill has changed; returns it, or None if none is open."""
    opened = open_drills(stack).find()
    if opened is not None:
        report.undoing(opened, stack.clock())
        with stack.audit.action("undo_drill", opened.name):
            restore(stack, opened, report)
    return opened


# ── Alarms ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Watch:
    """What waiting for alarms needs."""

    stack: Stack
    clock: DrillClock
    alarms: DrillAlarms
    drill: Drill
    scene: Scene
    started_at: Milliseconds
    opened: OpenDrill
    report: pages.DrillReport

    def settled(self) -> Mapping[str, str]:
        """The alarms that are on a moment later: one may fire just now."""
        self.scene.pause(_MOMENT_SECONDS)
        return self.alarms.on()

    @property
    def minutes(self) -> float:
        return (self.stack.clock() - self.started_at) / 60_000


def _await_alarms(watch: _Watch, result: DrillResult) -> None:
    drill, clock = watch.drill, watch.clock
    base = watch.minutes
    while True:
        _note_fired(watch, result)
        passed = watch.minutes - base
        if drill.expected and drill.expected <= result.fired.keys():
            return
        if passed >= drill.lead_minutes + drill.patience_minutes:
            if drill.expected:
                result.problems.append(f"{', '.join(sorted(drill.expected - result.fired.keys()))} did not fire")
            return
        if drill.throws and watch.stack.clock() > watch.opened.expires_at:
            result.problems.append("the drill's time was over before its alarms were on (see --keep-for)")
            return
        is_early = clock.is_moved and passed < drill.lead_minutes
        left_seconds = round((drill.lead_minutes - passed) * MINUTE_SECONDS)
        clock.pass_seconds(max(MINUTE_SECONDS, min(LONGEST_STEP_SECONDS, left_seconds)) if is_early else MINUTE_SECONDS)
        if clock.is_moved and not is_early and drill.minute_lasts_seconds:
            watch.scene.pause(drill.minute_lasts_seconds)
        drill.load.each_minute(watch.scene)


def _note_fired(watch: _Watch, result: DrillResult) -> None:
    for name in watch.alarms.since(watch.started_at).fired:
        if name not in result.fired:
            result.fired[name] = round(watch.minutes, 1)
            watch.report.fired(name, result.fired[name])


def _await_clear(watch: _Watch, result: DrillResult) -> None:
    """Waits until no alarm is on."""
    stack, clock, drill, alarms = watch.stack, watch.clock, watch.drill, watch.alarms
    began = stack.clock()
    while on := alarms.on() or watch.settled():
        passed = (stack.clock() - began) / 60_000
        if passed >= drill.clear_minutes:
            result.problems.append(f"{', '.join(sorted(on))} did not clear")
            return
        clock.pass_seconds(LONGEST_STEP_SECONDS if clock.is_moved else MINUTE_SECONDS // 2, is_last=False)
    result.cleared_after = round((stack.clock() - began) / 60_000, 1)


def _judge(history: AlarmHistory, result: DrillResult, scene: Scene) -> None:
    drill = result.drill
    unexpected = history.fired.keys() - drill.allowed  # guard: drill-unexpected-alarm-fails
    if unexpected:
        result.problems.append(f"{', '.join(sorted(unexpected))} fired too")
    result.pages, result.all_clears = history.pages.total(), history.all_clears.total()
    expected = int(drill.pages or bool(history.fired.keys() & drill.perhaps & CRITICAL))
    if result.pages != expected or history.pages.keys() - {INCIDENT}:
        result.problems.append(f"{result.pages} pages instead of {expected}")
    if result.all_clears != expected:
        result.problems.append(f"{result.all_clears} messages that all is clear instead of {expected}")
    if lost := [f"{row.image_id} is {row.status}" for row in scene.unfinished() if row.deleted_at is None]:
        result.problems.append(f"images that were accepted are not done: {', '.join(lost[:3])}")
    for name in history.fired.keys() - result.fired.keys():
        result.fired[name] = float("nan")


def run_all(
    stack: Stack,
    drills: Sequence[Drill],
    *,
    keep_seconds: float,
    report: pages.DrillReport,
    interrupts: Interrupts,
) -> list[DrillResult]:
    """Runs them one after another; one that cannot begin does not keep the others from it."""
    results = []
    for drill in drills:
        try:
            results.append(
                run(stack, drill, keep_seconds=keep_seconds, token=None, report=report, interrupts=interrupts)
            )
        except ApiError as error:
            results.append(DrillResult(drill=drill, problems=[str(error)]))
        report.end(results[-1])
    return results


@contextmanager
def interruptible(report: pages.DrillReport, *, said: str = "Interrupted") -> Iterator[Interrupts]:
    """Ctrl-C, and the end of the terminal, end a drill in order, which is told; then the command ends too."""
    try:
        with Interrupts(*LEAVING) as interrupts:
            yield interrupts
    except Interrupted:
        report.trouble(f"{said}: everything was put back.")
        raise typer.Exit(INTERRUPTED) from None
