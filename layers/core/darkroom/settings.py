"""The settings of each function; the only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class MissingSettings(RuntimeError):
    """The function was deployed without a setting that it needs, or with an unusable one."""


class Settings(BaseModel):
    """Settings whose names are those of the environment variables, in lower case."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The settings in `environment`. Raises MissingSettings, naming every variable that is missing or unusable."""
        try:
            return cls.model_validate(
                {name: environment[name.upper()] for name in cls.model_fields if name.upper() in environment}
            )
        except ValidationError as error:
            problems = "; ".join(f"{str(e['loc'][0]).upper()}: {e['msg']}" for e in error.errors())
            raise MissingSettings(f"{cls.__name__}: {problems}. Set them in template.yaml.") from error


class LaneSettings(Settings):
    """Where the lanes are."""

    fast_queue_url: str
    slow_queue_url: str


class SubmitImageSettings(LaneSettings):
    """What `submit_image` needs."""

    images_table: str
    originals_bucket: str
    outputs_bucket: str


class TranscodeImageSettings(LaneSettings):
    """What `transcode_image` needs; `visibility_seconds` is the lanes' visibility timeout."""

    images_table: str
    originals_bucket: str
    outputs_bucket: str
    idempotency_table: str
    visibility_seconds: int = Field(ge=1)


class ReadImageSettings(Settings):
    """What `read_image` needs."""

    images_table: str
    outputs_bucket: str


class SweepDueImagesSettings(LaneSettings):
    """What `sweep_due_images` needs."""

    images_table: str
