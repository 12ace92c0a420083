"""Reads the presets in a process of its own, as functions do when they start: with a faulty one it says what is wrong.

SAM CLI would build and deploy them, and every function would fail at its start.
"""

import sys


def main() -> int:
    """The exit status."""
    try:
        from darkroom.domain.recipes import presets  # noqa: PLC0415
    except ValueError as error:  # its InvalidPreset: the module cannot be imported for the name of it
        sys.stdout.write(f"{error}\n")
        return 1
    sys.stdout.write("".join(f"{name}\n" for name in presets.PRESETS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
