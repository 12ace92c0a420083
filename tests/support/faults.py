"""Faults at any call of any port: the process dies, the call is refused, throttled or repeated, its answer is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Never, get_args

from botocore.exceptions import ClientError

from darkroom.domain.kernel.errors import Retryable

type Mode = Literal["dies before", "dies after", "throttled", "denied", "answer lost", "applied late", "read damaged"]
"""What strikes a call: before or after it is made, its process dies; it is refused; it is made, and its answer never
comes, or it is made later than its caller believes; or what is read arrives with one bit turned."""

BEFORE: frozenset[Mode] = frozenset({"dies before", "throttled", "denied"})
"""With these, the call is not made."""


class ProcessDied(BaseException):
    """The process is gone: no handler sees this."""


class Call(NamedTuple):
    """A call of a port: the first is number 0, its name is `<port>.<method>`."""

    number: int
    name: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]


type Plan = Callable[[Call], Mode | BaseException | None]
"""What strikes a call; an exception is raised instead of it."""


def at(number: int, mode: Mode) -> Plan:
    """Strikes the call with that number."""
    return lambda call: mode if call.number == number else None


@dataclass
class Faults:
    """Strikes the calls of the ports that it wraps as `plan` says.

    All of them are one process's, so none is answered after its death, unless `is_one_process` says otherwise.
    """

    plan: Plan = lambda call: None
    is_one_process: bool = True
    repeats_lost: bool = False
    """Whether a call whose answer is lost is made again, as by the SDK, instead of failing."""
    records: bool = True
    calls: list[str] = field(default_factory=list)
    """The names of the calls so far, if it `records` them."""
    struck: Counter[str] = field(default_factory=Counter)
    """How often each mode has struck."""
    number: int = 0
    is_dead: bool = False

    def around[P](self, name: str, port: P) -> P:
        """The port, whose calls may be struck."""
        struck: Any = Struck(name, port, self)
        return struck  # type: ignore[no-any-return]

    def call(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any], make: Callable[[], Any]) -> Any:
        """The call's answer, unless a fault strikes it."""
        if self.is_dead:
            raise ProcessDied
        mode = self.plan(self.next_call(name, arguments, options))
        if mode is None:
            return make()
        self.struck[str(mode)] += 1
        if isinstance(mode, BaseException):
            raise mode
        return strike(mode, name, make, die=self._die, repeats=self.repeats_lost)

    def next_call(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Call:
        """Counts the call."""
        call = Call(self.number, name, arguments, options)
        self.number += 1
        if self.records:
            self.calls.append(name)
        return call

    def _die(self) -> Never:
        self.is_dead = self.is_one_process
        raise ProcessDied


def strike(
    mode: Mode,
    name: str,
    make: Callable[[], Any],
    *,
    die: Callable[[], Never],
    later: Callable[[Callable[[], Any]], None] | None = None,
    repeats: bool = False,
) -> Any:
    """What becomes of a call that is struck: `die` ends its process, and `later` takes what is applied late.

    Returns the answer only if a call whose answer is lost `repeats`.
    """
    if mode == "dies before":
        die()
    if mode == "throttled":
        raise Retryable(f"{name}: throttled")
    if mode == "denied":
        raise PermissionError(name)
    if mode == "applied late" and later is not None:
        later(make)
    else:
        make()
    if mode == "dies after":
        die()
    if repeats:
        return make()
    raise Retryable(f"{name}: the answer never came")


def read_replay(description: str) -> tuple[str, dict[int, Mode]]:
    """The history and its strikes by their calls' numbers, of `HISTORY: MODE at CALL; …`, as a failure prints it.

    Raises KeyError if there is no such mode.
    """
    name, _, strikes = description.rpartition(": ")
    modes: dict[str, Mode] = {mode: mode for mode in get_args(Mode.__value__)}
    parts = (strike.partition(" at ") for strike in strikes.split("; "))
    return name, {int(number): modes[mode] for mode, _, number in parts}


class Struck:
    """A port whose every call may be struck."""

    def __init__(self, name: str, port: Any, faults: Faults) -> None:
        self._name, self._port, self._faults = name, port, faults

    def __getattr__(self, method: str) -> Any:
        value = getattr(self._port, method)
        if not callable(value) or method == "url_of":  # which asks nobody
            return value
        return self._around(f"{self._name}.{method}", value)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._around(self._name, self._port)(*arguments, **options)

    def _around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            return self._faults.call(name, arguments, options, lambda: method(*arguments, **options))

        return call


def refuse(
    client: Any, *operations: str, code: str = "AccessDenied", status: int = 403, error: Exception | None = None
) -> Callable[[], None]:
    """From now on AWS refuses these operations of the client (none: all of them) with the code, or they meet the error.

    Returns what ends it.
    """

    def refused(event_name: str, **_: object) -> None:
        operation = event_name.rpartition(".")[2]
        if not operations or operation in operations:
            answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise error or ClientError(answer, operation)

    client.meta.events.register_first("before-call", refused)
    return lambda: client.meta.events.unregister("before-call", refused)


def failing[P](port: P, method: str, error: BaseException, when: Callable[..., bool] = lambda *_, **__: True) -> P:
    """The port, one of whose methods raises when it is called with arguments for which `when` holds."""

    def plan(call: Call) -> BaseException | None:
        is_struck = call.name == f".{method}" and when(*call.arguments, **call.options)
        return error if is_struck else None

    return Faults(plan).around("", port)


def raising(error: BaseException | type[BaseException]) -> Callable[..., Never]:
    """A function that raises."""

    def call(*_: object, **__: object) -> Never:
        raise error

    return call


def meanwhile(port: Any, method: str, action: Callable[..., object], *, times: int | None = None) -> None:
    """Lets `action`, which gets the arguments, happen at the beginning of each call of the method, or of so many."""
    call, left = getattr(port, method), times

    def interrupted(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        if left is None or left > 0:
            left = None if left is None else left - 1
            action(*arguments, **options)
        return call(*arguments, **options)

    setattr(port, method, interrupted)


def calls_of(port: Any, method: str) -> list[Any]:
    """What the method is called with from now on: the first argument of each call."""
    calls: list[Any] = []
    meanwhile(port, method, lambda *arguments, **_: calls.append(arguments[0]))
    return calls
