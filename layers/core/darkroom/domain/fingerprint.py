"""Which failures are one defect: those with the same exception, raised through the same function of ours."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FRAME = re.compile(r'^ *File "([^"]+)", line (\d+), in (.+)$(?:\n(?! *File ") +(.*\S))?', re.MULTILINE)
_OWN = re.compile(r"/darkroom/(?:\w+/)*\w+\.py$|/app\.py$")
"""The package, wherever a layer or a checkout has it, and handlers: no folder of a package has a dot or a hyphen, so
third-party code below a folder that happens to be called darkroom does not count."""
_LAYER = "/darkroom/"
_HANDLER = "app.py"

WORKER = "transcode_image"
"""The function whose attempts a row remembers: a handler's frame in one of their stacks is of its `app.py`."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A place in our code: the file within the package, or a handler's name; the line, the function, and what the line
    says if the traceback shows it."""

    file: str
    line: int
    function: str
    source: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"

    def path(self, handler: str | None) -> str:
        """The file from the root of a checkout: `layers/core/darkroom/operations/transcode_image.py`. A function's
        bundle does not name the function, so of a handler it needs the name; `app.py` without one."""
        if self.file == _HANDLER:
            return _HANDLER if handler is None else f"functions/{handler}/{_HANDLER}"
        folder = "" if self.file.endswith(f"/{_HANDLER}") else "layers/core/darkroom/"
        return f"{folder}{self.file}"


def own_frames(stack: str) -> list[Frame]:
    """The frames of our own code in a traceback as Python prints it, the innermost first."""
    found = []
    for path, line, function, source in _FRAME.findall(stack):
        if _OWN.search(path):
            file = path.rpartition(_LAYER)[2] if _LAYER in path else path.rpartition("/")[2]
            found.append(Frame(file=file, line=int(line), function=function, source=source))
    return found[::-1]


def guilty_frame(stack: str) -> Frame | None:
    """The innermost frame of our own code, or None if there is none. What a third party's code raises is our call's
    fault until shown otherwise."""
    return next(iter(own_frames(stack)), None)


def fingerprint(error_type: str, stack: str) -> str:
    """`KeyError@operations/transcode_image.py:_develop`: the exception's type, the file and the function, without the
    line, so that an edit elsewhere in the file makes no new defect of an old one. `@?` if the stack shows no code of
    ours."""
    frame = guilty_frame(stack)
    return f"{error_type}@{'?' if frame is None else f'{frame.file}:{frame.function}'}"
