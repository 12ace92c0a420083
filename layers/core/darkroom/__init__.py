"""Darkroom: an image pipeline that never loses an upload."""

import gc
import sys
from importlib.machinery import ModuleSpec

IS_IN_LAMBDA = "awslambdaric" in sys.modules
"""Whether Lambda's runtime loads this: a function's process then does nothing else."""

if IS_IN_LAMBDA:
    # What is imported stays: looking for garbage among it takes a fifteenth of a cold start. `entry_point`, which comes
    # last, enables it again.
    gc.disable()


class _FormerNames:
    """Has the import system, which asks it last, find modules where they lay before."""

    @staticmethod
    def find_spec(name: str, path: object, target: object = None) -> ModuleSpec | None:
        del path, target
        if not name.startswith("darkroom."):
            return None
        from darkroom.former_names import module_named  # noqa: PLC0415 -- for one release

        return module_named(name)


sys.meta_path.append(_FormerNames)
