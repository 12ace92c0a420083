"""The process's memory: kept from one picture to the next, and bounded while a decoder runs that might take any amount.

Every stage of a picture is a block of megabytes. By default glibc maps such a block anew and unmaps it again, and the
system clears all its pages each time: about a twelfth of the processor's time of an image.
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
"""Free memory at the heap's end that is not returned: what developing a 12-megapixel photo needs, and some more."""


def keep_memory() -> bool:
    """Sets the process's allocator up; False where it is not glibc's, which changes nothing but the speed.

    Blocks of up to 32 MiB, the most that glibc allows here, come from the heap. One arena for all threads, because what
    another thread's arena keeps, libvips's next thread does not find.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = ((_M_MMAP_THRESHOLD, 32 * 1024 * 1024), (_M_TRIM_THRESHOLD, KEPT_BYTES), (_M_ARENA_MAX, 1))
    accepted = [mallopt(name, value) == 1 for name, value in settings]
    return all(accepted)


@contextmanager
def at_most(allowance_bytes: int) -> Iterator[None]:
    """While it lasts, the process gets at most that much more memory; whoever asks for more is told that there is none.

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
