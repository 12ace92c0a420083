"""Memory that a process shares with its forks.

CPython writes into each object that it uses, to count references. In a fork, the first such write copies a page, and
that takes a third of the time of a short-lived one.
"""

from __future__ import annotations

import gc
from ctypes import c_uint32

_UNCOUNTED = 0xFFFF_FFFF
"""The count of references that CPython never changes: https://peps.python.org/pep-0683/"""


def share_with_forks() -> None:
    """Keeps all objects that are alive for as long as this process lives, without counting their references.

    What is shared already is not looked at again.
    """
    gc.collect()
    ahead: list[object] = gc.get_objects()  # what is frozen is not among them
    gc.freeze()  # nor does the collector touch them
    uncounted = c_uint32.from_address
    known = set(map(id, ahead))
    known |= {id(ahead), id(known)}
    while ahead:
        found = []
        for each in ahead:
            uncounted(id(each)).value = _UNCOUNTED
            for part in gc.get_referents(each):
                if id(part) not in known and uncounted(id(part)).value != _UNCOUNTED:
                    known.add(id(part))
                    found.append(part)
        ahead = found
