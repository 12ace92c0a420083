"""The size of the simulated world: as deployed, or with smaller numbers of things that only repeat."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from unittest.mock import patch

import darkroom.domain.images.image
from darkroom.domain.kernel.retry import RETRIES
from repository.report import ROOT


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Each sweep queries so many partitions of rescues, and of the other kinds in proportion, at least one; a run has
    so many attempts, and a message as many receives."""

    shards: int
    attempts: int

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within this block, every module that takes these numbers from the domain gets them from here."""
        numbers = {
            "DUE_SHARDS": self.shards,
            "DUE_SHARD_NAMES": darkroom.domain.images.image.DUE_SHARD_NAMES[: self.shards],
            "DUE_PARTITIONS": {
                kind: names[: max(1, len(names) * self.shards // darkroom.domain.images.image.DUE_SHARDS)]
                for kind, names in darkroom.domain.images.image.DUE_PARTITIONS.items()
            },
            "MAX_ATTEMPTS": self.attempts,
            "MAX_RECEIVES": self.attempts,
        }
        for path in sorted((ROOT / "layers/core/darkroom/operations").glob("*.py")):
            importlib.import_module(f"darkroom.operations.{path.stem}".removesuffix(".__init__"))
        usual = replace(RETRIES["standard"], attempts=self.attempts)
        with ExitStack() as stack:
            stack.enter_context(patch.dict(RETRIES, {"standard": usual}))
            for module in [module for name, module in sys.modules.items() if name.startswith("darkroom.")]:
                for name, value in numbers.items():
                    if hasattr(module, name):
                        stack.enter_context(patch.object(module, name, value))
            yield


AS_DEPLOYED = Scale(shards=darkroom.domain.images.image.DUE_SHARDS, attempts=RETRIES["standard"].attempts)
