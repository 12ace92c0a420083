"""The optional parts that a stack may be deployed without: parameters of the template, in lower case."""

from __future__ import annotations

from typing import Literal, get_args

type Part = Literal["webhooks", "usage", "imports", "page", "bulk"]

PARTS: tuple[Part, ...] = get_args(Part.__value__)
