"""The forms of every program: the usual one, LONG=1 for the published counts, and SHORT=1, which takes seconds.

The short form runs all of a program, its report included, and measures nothing well: it shows that the program works.
Its reports have a folder of their own. What it counts and does not depend on how much is sent is as in the usual form.
"""

from __future__ import annotations

import os

from repository.report import REPORTS

IS_SHORT = os.environ.get("SHORT") == "1"
IS_LONG = os.environ.get("LONG") == "1" and not IS_SHORT

FOLDER = REPORTS / "short" if IS_SHORT else REPORTS
"""Where the reports are written."""


def by_form[T](*, short: T, usual: T, long: T | None = None) -> T:
    """The value for the form that runs; the long one is the usual one unless it is given."""
    if IS_SHORT:
        return short
    return long if IS_LONG and long is not None else usual
