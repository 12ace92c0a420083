"""The stack that a program measures: its own or, in the short form, one that several share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.forms import IS_SHORT
from darkroom.domain.kernel.tenants import MAX_BURST, MAX_REQUESTS_PER_SECOND
from local_aws.stacks.record import record_file
from tests.support.running.serving import serving
from tests.support.running.stack import Stack

SHARED = "BENCH_STACK"
"""Names the state folder of a running stack, with keys and delivery: programs in the short form use it instead of their
own."""


@contextmanager
def stack_of(state: Path, *options: str) -> Iterator[Stack]:
    """The program's own stack, with that state folder and these options of `darkroom local up`; or the shared one."""
    shared = Path(os.environ.get(SHARED, "/nowhere"))
    if IS_SHORT and record_file(shared).exists():
        yield Stack(state=shared)
    else:
        with serving(state, *options) as stack:
            yield stack


def unlimited_key(stack: Stack, tenant: str) -> str | None:
    """A key of a tenant that may send as fast as it can; None if the API asks for none."""
    if stack.record.api_key is None:
        return None
    return stack.key_of_tenant(tenant, tier="free", requests_per_second=MAX_REQUESTS_PER_SECOND, burst=MAX_BURST)
