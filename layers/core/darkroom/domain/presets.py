"""The presets: recipes with a name. Edit one, deploy, and what is submitted from then on is developed by it."""

from __future__ import annotations

from darkroom.domain.errors import Rejected
from darkroom.domain.recipes import Recipe, VariantSpec

DEFAULT_PRESET = "standard"

PRESETS: dict[str, Recipe] = {
    "standard": Recipe(
        variants=(
            VariantSpec(name="thumb", width=256, height=256),
            VariantSpec(name="medium", width=800, height=800),
            VariantSpec(name="large", width=1920, height=1920),
            VariantSpec(name="webp", width=1920, height=1920, format="webp"),
        )
    ),
}


def preset_named(name: str) -> Recipe:
    """The recipe of the preset `name`. Raises Rejected (`unknown_preset`), naming those there are."""
    try:
        return PRESETS[name]
    except KeyError:
        known = ", ".join(sorted(PRESETS))
        raise Rejected("unknown_preset", f"There is no such preset. Known presets: {known}.") from None
