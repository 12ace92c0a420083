"""What is done beside the work and decides nothing: if it fails, that is logged, and its caller goes on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from darkroom.domain.kernel.errors import Retryable

log = logging.getLogger("darkroom.bookkeeping")
"""Where failures are logged. `telemetry` writes these lines as its own; operations know no Powertools."""


@contextmanager
def bookkeeping(otherwise: str, **about: str) -> Iterator[None]:
    """A failure in this block is logged as `otherwise`, with `about`, and the caller goes on after it."""
    try:
        yield
    except Exception as failure:  # guard: bookkeeping-failure-contained
        report_failure(otherwise, failure, **about)


def report_failure(message: str, failure: Exception, **about: str) -> None:
    """Logs what failed beside the work: an outage as a warning, anything else as an error of the function."""
    if isinstance(failure, Retryable):
        log.warning(message, extra={**about, "cause": str(failure)})
    else:
        # The alarm of functions' errors counts lines with an `errorType`: nobody would notice a denial otherwise.
        cause = {"cause": str(failure), "errorType": type(failure).__name__}  # guard: bookkeeping-denial-alarms
        log.error(message, exc_info=failure, extra={**about, **cause})
