"""Developing, with a result that was made before."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial

from darkroom.imaging import Developed, Developing, Rendered


def already(developed: Developed) -> AbstractContextManager[Developing]:
    """What `developing` returns, with every variant encoded."""
    return nullcontext(
        Developing(
            variants=tuple(partial(_itself, variant) for variant in developed.variants),
            notices=lambda: developed.notices,
            placeholder=developed.placeholder,
            attention=developed.attention,
        )
    )


def _itself(variant: Rendered) -> Rendered:
    return variant
