"""What lanes and webhooks have left of their error budgets."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.domain.images.service_level import OBJECTIVE

WEBHOOKS = "webhooks"
"""The name under which the budget of first attempts stands beside those of the lanes."""

BUDGET_DAYS = 28
"""Over so many days the objective holds, and its error budget is spent."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a lane has spent its error budget on: the images that counted in the last `BUDGET_DAYS`, and those of them
    that were bad. Of webhooks these are first attempts, and attempts of any number were perhaps `repeated`."""

    ended: int
    bad: int
    repeated: int = 0

    @property
    def left_percent(self) -> float | None:
        """What is left of it, in percent: 0 if exactly as many images were bad as may be, below 0 if more were. None if
        nothing ended, so that there is no budget."""
        # guard: top-empty-budget-unknown
        return None if self.ended == 0 else 100 * (1 - self.bad / self.ended / (1 - OBJECTIVE))
