"""Which failures are one defect: those with the same exception, raised through the same function of ours, and of AWS's
errors those of the same call."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FRAME = re.compile(r'^ *File "([^"]+)", line (\d+), in (.+)$(?:\n(?! *File ") +(.*\S))?', re.MULTILINE)
_BLOCK = re.compile(r'^  File "([^"]+)", line \d+, in .+\n(?:    .*\n)*', re.MULTILINE)
_OWN = re.compile(r"/darkroom/(?:\w+/)*\w+\.py$|/app\.py$")
"""The package, wherever a layer or a checkout has it, and handlers: no folder of a package has a dot or a hyphen, so
third-party code below a folder that happens to be called darkroom does not count."""
_LAYER = "/darkroom/"
_HANDLER = "app.py"

_PART = re.compile(r"^((?:domain|operations|aws|http|wiring)/)\w+/|^(imaging/)scaling/")
"""The folder of a part, which does not count: once all files lay beside each other, and rows have stacks of then."""

_WRAPPERS = frozenset({"aws/clients.py", "aws/circuits.py", "aws/errors.py"})
"""Files through which every AWS call goes: their frames are in all stacks, and no failure is theirs."""

_CALL = re.compile(r"^AWS call: (\w+), ([\w.-]+)(?:, [a-z]+ (\S+))?$\s*\Z", re.MULTILINE)
"""The last line of a stack that ends with a failed AWS call: see `call_note`."""

WORKER = "transcode_image"
"""The function whose attempts a row remembers: a handler's frame in one of their stacks is of its `app.py`."""


@dataclass(frozen=True, kw_only=True)
class StackFrame:
    """A place in our code: the file within the package, or a handler's name; the line, the function, and what the line
    says if the traceback shows it."""

    file: str
    line: int
    function: str
    source: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"

    def path(self, handler: str | None) -> str:
        """The file from the root of a checkout: `layers/core/darkroom/operations/images/read_image.py`. A function's
        bundle does not name the function, so of a handler it needs the name; `app.py` without one."""
        if self.file == _HANDLER:
            return _HANDLER if handler is None else f"functions/{handler}/{_HANDLER}"
        folder = "" if self.file.endswith(f"/{_HANDLER}") else "layers/core/darkroom/"
        return f"{folder}{self.file}"


def call_note(operation: str, failure: str, resource: str | None) -> str:
    """The note with which an AWS call's exception ends in a stack: "AWS call: GetObject, NoSuchBucket, bucket photos".
    `failure` is AWS's code. The resource is one of the stack's, never an object's key or a row's."""
    return ", ".join([f"AWS call: {operation}", failure, *([resource] if resource else [])])


def calls_of(error: BaseException) -> list[str]:
    """The notes of AWS calls that an exception has."""
    return [note for note in getattr(error, "__notes__", ()) if _CALL.search(note)]


def own_frames(stack: str) -> list[StackFrame]:
    """The frames of our own code in a traceback as Python prints it, the innermost first, without wrappers of AWS calls
    unless there is nothing else."""
    frames = _all_own_frames(stack)
    # guard: fingerprints-aws-wrappers-skipped
    return [frame for frame in frames if _named(frame.file) not in _WRAPPERS] or frames


def _is_ours(path: str) -> bool:
    return _OWN.search(path) is not None and _named(_file_of(path)) not in _WRAPPERS


def _file_of(path: str) -> str:
    return path.rpartition(_LAYER)[2] if _LAYER in path else path.rpartition("/")[2]


def _named(file: str) -> str:
    return _PART.sub(r"\1\2", file)


def _all_own_frames(stack: str) -> list[StackFrame]:
    frames = []
    for path, line, function, source in _FRAME.findall(stack):
        if _OWN.search(path):  # guard: fingerprints-own-code-only
            frames.append(StackFrame(file=_file_of(path), line=int(line), function=function, source=source))
    return frames[::-1]


STACK_CHARACTERS = 2000
"""How much of a stack a row keeps per attempt."""


def shortened(stack: str, characters: int = STACK_CHARACTERS) -> str:
    """The end of a traceback. If it is too long, frames of others go first, the outermost before the inner ones and the
    last one never: a dozen of a library's would leave none of ours."""
    others = [frame[0] for frame in _BLOCK.finditer(stack) if not _is_ours(frame[1])][:-1]
    for frame in others:
        if len(stack) <= characters:
            break
        stack = stack.replace(frame, "", 1)
    return stack[-characters:]


def guilty_frame(stack: str) -> StackFrame | None:
    """The innermost frame of our own code, or None if there is none. What a third party's code raises is our call's
    fault until shown otherwise."""
    return next(iter(own_frames(stack)), None)


def fingerprint(error_type: str, stack: str) -> str:
    """`KeyError@operations/transcode_image.py:_develop`: the exception's type, the file and the function, without the
    line, so that an edit elsewhere in the file makes no new defect of an old one. `@?` if the stack shows no code of
    ours. Of a failed AWS call, the operation, AWS's code and the resource follow, separated by slashes."""
    call = _CALL.search(stack)
    return "/".join([_place(error_type, guilty_frame(stack)), *(filter(None, call.groups()) if call else ())])


def is_defect(wanted: str, error_type: str, stack: str) -> bool:
    """Whether a failure has this fingerprint, or had it before wrappers were skipped: lines of the log and operators'
    notes may be as old."""
    former = _place(error_type, next(iter(_all_own_frames(stack)), None))
    return wanted in (fingerprint(error_type, stack), former)  # guard: fingerprints-former-name


def _place(error_type: str, frame: StackFrame | None) -> str:
    return f"{error_type}@{'?' if frame is None else f'{_named(frame.file)}:{frame.function}'}"
