"""Gives a simulated policy the context that its caller names.

Gap: MiniStack simulates without `ContextEntries`: a statement with a condition on one of its keys never applies.
AWS: "Whenever a context key is evaluated in one of the simulated IAM permissions policies, the corresponding value is
supplied."
https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html

What still differs from AWS: each key has one value, and only the first resource is simulated.
"""

from collections.abc import Callable
from contextvars import ContextVar
from itertools import count, takewhile
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_given: ContextVar[dict[str, str] | None] = ContextVar("given", default=None)


def apply(emulator: Emulator) -> None:
    """Hand the entries of a simulation on to its evaluation."""
    handlers = internals("services.iam")._IAM_HANDLERS
    handlers["SimulatePrincipalPolicy"] = _noting(handlers["SimulatePrincipalPolicy"])
    replace(internals("core.iam_evaluator"), "evaluate", _with_what_was_given)


def _noting(simulate: Callable[..., Any]) -> Callable[..., Any]:
    def noting(parameters: Any) -> Any:
        token = _given.set(_entries(parameters))
        try:
            return simulate(parameters)
        finally:
            _given.reset(token)

    return noting


def _entries(parameters: Any) -> dict[str, str]:
    read = internals("services.iam")._p
    members = (f"ContextEntries.member.{number}" for number in count(1))
    named = takewhile(lambda member: read(parameters, f"{member}.ContextKeyName"), members)
    return {
        read(parameters, f"{member}.ContextKeyName").lower(): read(parameters, f"{member}.ContextKeyValues.member.1")
        for member in named
    }


def _with_what_was_given(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    def evaluating(context: Any, *policies: Any, **options: Any) -> Any:
        context.service_context |= _given.get() or {}
        return evaluate(context, *policies, **options)

    return evaluating
