"""What the operators' page does: each action is the command line's own work, and says first what it would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any, Literal

import typer
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from darkroom.domain.kernel.instants import rfc3339
from darkroom.domain.kernel.tenants import MAX_BURST, MAX_REQUESTS_PER_SECOND, TenantState, Tier
from darkroom.domain.tenants.api_keys import KeyState
from darkroom_cli.backfill import work as backfill
from darkroom_cli.delay import work as delay
from darkroom_cli.delay.choice import Choice, days_of
from darkroom_cli.dlq import work as dlq
from darkroom_cli.dlq.filters import DeadLetterFilters
from darkroom_cli.drill import pages as drill_pages
from darkroom_cli.drill import work as drill
from darkroom_cli.drill.drills import DRILLS
from darkroom_cli.images import redo
from darkroom_cli.images.ids import checked_image_id
from darkroom_cli.operate.parts import checked_filters, checked_seconds
from darkroom_cli.operate.problems import OperateProblem, invalid
from darkroom_cli.operate.running import Running
from darkroom_cli.operator.operations.webhooks.enable_webhook import EnableWebhookPorts, enable_webhook
from darkroom_cli.pauses import work as pauses
from darkroom_cli.pauses.commands import reason_of, subject_named
from darkroom_cli.stack.operators import Stack
from darkroom_cli.tenants import work as tenants
from darkroom_cli.tenants.commands import lane_named, tenant_named
from darkroom_cli.tenants.keys import key_id_named
from darkroom_cli.terminal import display
from darkroom_cli.terminal.many import IMAGES_PER_SECOND
from darkroom_cli.webhooks.commands import webhook_id_named
from darkroom_client.client import ApiError

MOST_IDS = 1000
"""The most ids that an action takes, or that an answer names; more are chosen by other words."""

LIMIT = 1000
"""The most dead letters that are read of each queue before they are replayed or dropped, to say what would be."""


class _Request(BaseModel):
    """The body of an action. Nothing in it is guessed: an unknown field may be a misspelled limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)  # guard: operate-unknown-fields

    dry_run: StrictBool


class _OfDeadLetters(_Request):
    lane: str | None = None
    cause: str | None = None
    fingerprint: str | None = None
    tenant: str | None = None
    older_than: str | None = None
    newer_than: str | None = None
    images: Annotated[list[str], Field(max_length=MOST_IDS)] = []

    def each(self, verdict: str | None = None) -> Sequence[DeadLetterFilters]:
        """The filters of the command, one for each of the images."""
        names = ("lane", "cause", "fingerprint", "tenant", "older_than", "newer_than")
        words = {name: getattr(self, name) for name in names}
        images: Sequence[str | None] = self.images or [None]
        chosen = [DeadLetterFilters(**words, verdict=verdict, image=image) for image in images]
        for filters in chosen:
            checked_filters(filters)
        return chosen


class _Replay(_OfDeadLetters):
    rate: Annotated[int, Field(ge=1, le=500)] = dlq.STANDARD_RATE


class _Drop(_OfDeadLetters):
    verdict: str | None = None
    force: StrictBool = False


class _Redo(_Request):
    images: Annotated[list[str], Field(min_length=1, max_length=MOST_IDS)]
    rate: Annotated[int, Field(ge=1, le=500)] = 10


class _OfADay(_Request):
    day: str
    hour: str | None = None
    lane: str | None = None
    tenant: str | None = None
    zone: str | None = None
    images: Annotated[list[str], Field(max_length=MOST_IDS)] = []
    rate: Annotated[int, Field(ge=1, le=500)] = IMAGES_PER_SECOND

    @property
    def choice(self) -> Choice:
        """The images as the command chooses them."""
        return Choice(
            day=self.day,
            hour=self.hour,
            lane=self.lane,
            tenant=self.tenant,
            zone=self.zone,
            image=tuple(self.images),
        )


class _Reschedule(_OfADay):
    by: str


class _Drill(_Request):
    drill: str
    in_production: StrictBool = False


class _OfAKey(_Request):
    key: str


class _Rotate(_OfAKey):
    overlap: str = "7d"


class _ChangeTenant(_Request):
    tenant: str
    tier: Tier | None = None
    lane: str | None = None
    requests_per_second: Annotated[int | None, Field(ge=1, le=MAX_REQUESTS_PER_SECOND)] = None
    burst: Annotated[int | None, Field(ge=1, le=MAX_BURST)] = None
    usual_limits: StrictBool = False
    state: Literal[TenantState.ACTIVE, TenantState.SUSPENDED] | None = None


class _OfAWebhook(_Request):
    tenant: str
    webhook: str


class _OfASubject(_Request):
    kind: Literal["lane", "tenant", "webhook"]
    name: str


class _Pause(_OfASubject):
    reason: str = ""


class _OfABackfill(_Request):
    backfill: str
    state: Literal["paused", "running", "cancelled"]


class _Recover(_OfAWebhook):
    since: str = "30d"


@dataclass
class _Done:
    """What came of an action: how many things it was or would be done to, their ids if they are known, and what else
    the page is told."""

    count: int | None = None
    ids: Sequence[str] = ()
    more: dict[str, Any] = field(default_factory=dict)


class Actions:
    """Acts on one stack."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.running = Running(clock=stack.clock)
        self._actions: Mapping[str, tuple[type[_Request], Callable[[Any], _Done]]] = {
            "replay": (_Replay, self._replay),
            "drop": (_Drop, self._drop),
            "redo": (_Redo, self._redo),
            "reschedule": (_Reschedule, self._reschedule),
            "cancel": (_OfADay, self._cancel),
            "drill": (_Drill, self._drill),
            "undo_drill": (_Request, self._undo_drill),
            "revoke_key": (_OfAKey, self._revoke_key),
            "rotate_key": (_Rotate, self._rotate_key),
            "change_tenant": (_ChangeTenant, self._change_tenant),
            "enable_webhook": (_OfAWebhook, lambda request: self._mend(request, since=None)),
            "recover_webhook": (_Recover, lambda request: self._mend(request, since=request.since)),
            "pause": (_Pause, self._pause),
            "resume": (_OfASubject, self._resume),
            "decide_backfill": (_OfABackfill, self._decide_backfill),
        }

    def act(self, name: str, body: bytes, *, is_writable: bool) -> dict[str, Any]:
        """Does it, or with `dry_run` says what it would do: what the command says, line by line. It is not `complete`
        if something was left undone, which the notes name. What takes longer than a moment goes on: the answer is then
        the document of its run, which `running` knows.

        Raises ApiError and Problem; what had been said before that is with the problem.
        """
        request = self._request(name, body, is_writable=is_writable)
        if request.dry_run:
            return self._answer(name, request, display.Shown())
        return self.running.begin(name, lambda shown: self._answer(name, request, shown))

    def _request(self, name: str, body: bytes, *, is_writable: bool) -> _Request:
        if name not in self._actions:
            raise OperateProblem(
                HTTPStatus.NOT_FOUND,
                "unknown_action",
                f"There is no action {display.printable(name)!r}. There are: {', '.join(sorted(self._actions))}.",
            )
        request = _read(self._actions[name][0], body)
        if not request.dry_run and not is_writable:  # guard: operate-read-only-by-default
            raise OperateProblem(
                HTTPStatus.FORBIDDEN,
                "read_only",
                "This page only reads, and so was nothing done. To let it act, end `darkroom operate` and start it "
                f"again with --write: ./darkroom operate --write{self._stack.options}",
            )
        return request

    def _answer(self, name: str, request: _Request, shown: display.Shown) -> dict[str, Any]:
        work = self._actions[name][1]
        with display.listening(shown):
            is_complete, done = True, _Done()
            try:
                done = work(request)
            except typer.Exit as end:
                is_complete = end.exit_code == 0
            except ApiError as error:
                for line in shown.lines:
                    error.add_note(line)
                raise
        return {
            "action": name,
            "dry_run": request.dry_run,
            "complete": is_complete,
            "says": shown.lines,
            "notes": shown.complaints,
            "count": done.count,
            "ids": list(done.ids)[:MOST_IDS],
            **done.more,
        }

    def _replay(self, request: _Replay) -> _Done:
        return self._to_dead_letters(
            request.each(),
            foresee=lambda filters: dlq.preview_replay(
                self._stack, filters, everything=False, rate=request.rate, limit=LIMIT
            ),
            do=lambda filters: dlq.replay(self._stack, filters, rate=request.rate),
            is_dry=request.dry_run,
        )

    def _drop(self, request: _Drop) -> _Done:
        return self._to_dead_letters(
            request.each(request.verdict),
            foresee=lambda filters: dlq.tell_drop(self._stack, filters, force=request.force, limit=LIMIT),
            do=lambda filters: dlq.drop(self._stack, filters, force=request.force),
            is_dry=request.dry_run,
        )

    def _to_dead_letters(
        self,
        each: Sequence[DeadLetterFilters],
        *,
        foresee: Callable[[DeadLetterFilters], Sequence[str]],
        do: Callable[[DeadLetterFilters], None],
        is_dry: bool,
    ) -> _Done:
        """Each of the images chosen by their ids may be refused: the others are done all the same."""
        ids, refused = list[str](), 0
        for filters in each:
            try:
                if is_dry:
                    ids += foresee(filters)
                else:
                    do(filters)
            except ApiError as error:
                if len(each) == 1:
                    raise
                refused += 1
                display.complain(str(error))
        if refused:
            display.complain(f"{refused:,} of {len(each):,} images were refused.")
            if not is_dry:
                raise typer.Exit(1)
        return _Done(count=len(ids) if is_dry else None, ids=ids)

    def _redo(self, request: _Redo) -> _Done:
        ids = list(dict.fromkeys(map(checked_image_id, request.images)))
        if request.dry_run:
            _say(
                f"{display.of(len(ids), 'image')} would be developed again, those that are done. Their variants can be "
                "fetched until others have replaced them. Nothing was changed."
            )
            return _Done(count=len(ids), ids=ids)
        redo.redo(self._stack, ids, rate=request.rate)
        return _Done(count=len(ids), ids=ids)

    def _reschedule(self, request: _Reschedule) -> _Done:
        return _Done(
            count=delay.reschedule(
                self._stack, request.choice, days=days_of(request.by), rate=request.rate, yes=not request.dry_run
            )
        )

    def _cancel(self, request: _OfADay) -> _Done:
        return _Done(count=delay.cancel(self._stack, request.choice, rate=request.rate, yes=not request.dry_run))

    def _drill(self, request: _Drill) -> _Done:
        chosen = DRILLS.get(request.drill)
        if chosen is None:
            raise invalid(f"There is no drill {display.printable(request.drill)!r}. There are: {', '.join(DRILLS)}.")
        with self._stack.explained():
            # guard: operate-production-consent
            drill.check_allowed(self._stack, chosen, in_production=request.in_production or request.dry_run)
            if request.dry_run:
                drill_pages.print_plan(display.output(), chosen, self._stack.options)
                return _Done(count=1)
            report = drill_pages.Page(display.output())
            with drill.interruptible(report, said="Stopped") as interrupts:
                result = drill.run(
                    self._stack,
                    chosen,
                    keep_seconds=drill.KEEP_SECONDS,
                    token=None,
                    report=report,
                    interrupts=interrupts,
                )
        report.end(result)
        if result.problems:
            raise typer.Exit(1)
        return _Done(count=1)

    def _undo_drill(self, request: _Request) -> _Done:
        with self._stack.explained():
            opened = drill.open_drills(self._stack).find()
            if opened is None:
                _say("No drill is open: there is nothing to put back.")
            elif request.dry_run:
                drill_pages.tell_undo(display.output(), opened)
            else:
                drill.undo(self._stack, drill_pages.Page(display.output()))
                _say("Everything is put back.")
        return _Done(count=0 if opened is None else 1)

    def _revoke_key(self, request: _OfAKey) -> _Done:
        key_id = key_id_named(request.key)
        if request.dry_run:
            tenant_id, state = self._key(key_id)
            _say(
                f"The key {key_id} of {tenant_id}, which is {state}, would be revoked for good. Requests with it are "
                "refused within 60 seconds. Nothing was changed."
            )
        else:
            tenants.revoke_key(self._stack, key_id)
        return _Done(count=1, ids=[key_id])

    def _rotate_key(self, request: _Rotate) -> _Done:
        key_id, overlap_seconds = key_id_named(request.key), checked_seconds(request.overlap) or 0
        if request.dry_run:
            tenant_id, state = self._key(key_id)
            if state is not KeyState.ACTIVE:
                raise ApiError(f"The key {key_id} of {tenant_id} is {state}: there is nothing to replace.")
            _say(
                f"{tenant_id} would get a new key that may do the same as {key_id}, which would open the API for "
                f"{display.age(overlap_seconds)} more. The new key is shown once. Nothing was changed."
            )
            return _Done(count=1, ids=[key_id])
        with display.listening() as shown:
            tenants.rotate_key(self._stack, key_id, overlap_seconds=overlap_seconds)
        for note in shown.complaints:
            _say(note)
        return _Done(count=1, ids=[key_id], more={"key": shown.lines[0]})

    def _key(self, key_id: str) -> tuple[str, KeyState]:
        with self._stack.explained():
            key = self._stack.tenants.key(key_id)
        if key is None:
            raise ApiError(f"There is no key {key_id} in {self._stack.name}.")
        return key.tenant_id, key.state(self._stack.clock())

    def _change_tenant(self, request: _ChangeTenant) -> _Done:
        tenant_id = tenant_named(request.tenant) or ""
        limits = (request.requests_per_second, request.burst)
        if request.usual_limits and any(limits):
            raise invalid("usual_limits removes what requests_per_second and burst set: send one or the other.")
        has_terms = bool(request.tier or any(limits) or request.usual_limits)
        if not has_terms and request.state is None and request.lane is None:
            raise invalid("Say what to change: tier, lane, requests_per_second, burst, usual_limits or state.")
        lane = None if request.lane is None else lane_named(request.lane)
        if request.dry_run:
            with self._stack.explained():
                tenant = self._stack.tenants.tenant(tenant_id)
            if tenant is None:
                raise ApiError(f"There is no tenant {display.printable(tenant_id)} in {self._stack.name}.")
            now = f"{tenant.tier}, {tenant.state}, {tenant.allowance.requests_per_second:,} requests per second, "
            wanted = [
                *([f"tier {request.tier}"] if request.tier else []),
                *([f"lane {lane}"] if lane else []),
                *([f"{request.requests_per_second:,} requests per second"] if request.requests_per_second else []),
                *([f"{request.burst:,} at once"] if request.burst else []),
                *(["its tier's own limits"] if request.usual_limits else []),
                *([f"state {request.state}"] if request.state else []),
            ]
            _say(
                f"{tenant_id} is {now}{tenant.allowance.burst:,} at once. It would get {', '.join(wanted)}, within 60 "
                "seconds. Nothing was changed."
            )
            return _Done(count=1, ids=[tenant_id])
        if has_terms:
            tenants.change(
                self._stack,
                tenant_id,
                tier=request.tier,
                requests_per_second=request.requests_per_second,
                burst=request.burst,
                usual_limits=request.usual_limits,
            )
        if lane is not None:
            tenants.move(self._stack, tenant_id, lane)
        if request.state is not None:
            tenants.set_state(self._stack, tenant_id, request.state)
        return _Done(count=1, ids=[tenant_id])

    def _mend(self, request: _OfAWebhook, *, since: str | None) -> _Done:
        tenant_id, webhook_id, stack = (
            tenant_named(request.tenant) or "",
            webhook_id_named(request.webhook),
            self._stack,
        )
        from_ = None if since is None else stack.clock() - round(1000 * (checked_seconds(since) or 0))
        recovery = "" if from_ is None else f", and its failed deliveries of events since {rfc3339(from_)} tried again"
        with stack.explained():
            row = stack.endpoints.get(tenant_id, webhook_id)
        if row is None:
            raise ApiError(f"There is no webhook {webhook_id} of {tenant_id} in {stack.name}.")
        if request.dry_run:
            state = "enabled" if row.is_enabled else "disabled"
            _say(
                display.printable(
                    f"{webhook_id} of {tenant_id} ({row.url}), which is {state}, would be enabled{recovery}, slowly at "
                    "first. Nothing was changed."
                )
            )
        else:
            ports = EnableWebhookPorts(endpoints=stack.endpoints, clock=stack.clock, audit=stack.audit)
            with stack.explained():
                enable_webhook(ports, tenant_id, webhook_id, since=from_)
            _say(f"{webhook_id} of {tenant_id} is enabled{recovery}, slowly at first.")
        return _Done(count=1, ids=[webhook_id])

    def _pause(self, request: _Pause) -> _Done:
        name, reason = subject_named(request.kind, request.name), reason_of(request.reason)
        if request.dry_run:
            return _Done(count=int(pauses.tell_pause(self._stack, request.kind, name)), ids=[name])
        pauses.pause(self._stack, request.kind, name, reason=reason)
        return _Done(count=1, ids=[name])

    def _resume(self, request: _OfASubject) -> _Done:
        name = subject_named(request.kind, request.name)
        if request.dry_run:
            return _Done(count=int(pauses.tell_resume(self._stack, request.kind, name)), ids=[name])
        pauses.resume(self._stack, request.kind, name)
        return _Done(count=1, ids=[name])

    def _decide_backfill(self, request: _OfABackfill) -> _Done:
        chosen = (self._stack, request.backfill, request.state)
        if request.dry_run:
            return _Done(count=int(backfill.tell_decide(*chosen)), ids=[request.backfill])
        backfill.decide(*chosen)
        return _Done(count=1, ids=[request.backfill])


def _say(text: str) -> None:
    display.line(display.output(), text)


def _read(kind: type[_Request], body: bytes) -> _Request:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        clauses = (
            f"{'.'.join(map(str, problem['loc'])) or 'the body'}: {problem['msg']}" for problem in error.errors()[:5]
        )
        raise invalid(display.printable("; ".join(clauses))) from error
