"""Manages the process's memory: keeps it from one picture to the next, and limits it during decoders that might take
any amount.

Every stage of a picture is a block of megabytes. By default glibc maps and unmaps each such block anew, and the kernel
clears all its pages each time: about a twelfth of an image's CPU time.
"""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# mallopt(3), malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8

KEPT_BYTES = 128 * 1024 * 1024
"""How much free memory at the heap's end is not returned: what developing a 12-megapixel photo needs, and some more."""


def keep_memory() -> bool:
    """Sets up the process's allocator; False if it is not glibc's, which only affects speed.

    Blocks of up to 32 MiB, the most that glibc allows here, come from the heap. All threads share one arena, because
    libvips's next thread does not find what another thread's arena keeps.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((_M_MMAP_THRESHOLD, 32 * 1024 * 1024), (_M_TRIM_THRESHOLD, KEPT_BYTES), (_M_ARENA_MAX, 1))
    accepted = [mallopt(name, value) == 1 for name, value in settings]
    return all(accepted)


@contextmanager
def at_most(allowance_bytes: int) -> Iterator[None]:
    """Limits the additional memory of the process while it lasts; further allocations fail.

    The limit is on private writable memory (RLIMIT_DATA, setrlimit(2)): reserved addresses and mapped files are free.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = _data_bytes() + allowance_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if soft == resource.RLIM_INFINITY else min(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int:
    # proc_pid_statm(5): the sixth number is data and stack, in pages.
    return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
