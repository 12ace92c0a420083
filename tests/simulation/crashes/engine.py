"""The engine in a world that forks: each original is developed once, before the first branch."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from darkroom.domain.kernel.errors import Rejected
from tests.simulation.crashes.promises import Broken, ViolationKind
from tests.support.fakes.engine import already

type Develop = Callable[..., AbstractContextManager[Any]]

_DEVELOPED: dict[tuple[Any, ...], Any] = {}


def develop_once(
    develop: Develop, original: bytes, recipe: Any, options: dict[str, Any]
) -> AbstractContextManager[Any]:
    """What the engine makes of the original, made once: tests/engine checks that it makes the same bytes every time."""
    # Overlays count by their bytes: whence they come is another function in every world.
    overlays = tuple(map(options["overlay_of"], recipe.overlay_images))
    others = {name: value for name, value in options.items() if name != "overlay_of"}
    key = (original, recipe.digest(), overlays, tuple(sorted(others.items())))
    if key not in _DEVELOPED:
        if _DEVELOPED_BEFORE:
            raise Broken(ViolationKind.DIFFERING, "an original is developed as in no undisturbed history")
        try:
            with develop(original, recipe, **options) as picture:
                _DEVELOPED[key] = picture.developed()
        except Rejected as refusal:
            _DEVELOPED[key] = _Refused(code=refusal.code, message=refusal.message)
    made = _DEVELOPED[key]
    if isinstance(made, _Refused):
        raise Rejected(made.code, made.message)
    return already(made)


@dataclass(frozen=True, kw_only=True)
class _Refused:
    code: str
    message: str


def developed() -> bytes:
    """Everything that the engine has made in this process, for another one to `remember`."""
    return pickle.dumps(_DEVELOPED)


def is_prepared() -> bool:
    """Whether this process, or one that it branched from, remembers what another has developed."""
    return bool(_DEVELOPED_BEFORE)


def remember(made: bytes) -> None:
    """Takes what another process has developed, so that no child of this one needs to load the engine's threads."""
    _DEVELOPED.update(pickle.loads(made))
    _DEVELOPED_BEFORE.append(True)


_DEVELOPED_BEFORE: list[bool] = []
