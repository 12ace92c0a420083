"""The settings that each function reads from its environment."""

from dataclasses import replace

import pytest

from darkroom.domain.images.limits import STANDARD_INPUT_FORMATS, Limits
from darkroom.domain.kernel.lanes import LANES, SLOW
from darkroom.settings import ConcurrencySettings, InputSettings, LaneSettings, LimitSettings, MissingSettings


def test_without_settings_an_original_is_held_to_the_limits_of_the_domain() -> None:
    assert LimitSettings.read({}).limits == Limits()


def test_every_bound_of_an_original_is_a_setting() -> None:
    environment = {
        "EXTRA_INPUT_FORMATS": "heic",
        "MAX_FILE_BYTES": "1",
        "MAX_WEBP_BYTES": "9",
        "MAX_PNG_BYTES": "10",
        "MAX_MEGAPIXELS": "2.5",
        "MAX_SIDE_PIXELS": "3",
        "MAX_ASPECT": "4",
        "MAX_FRAMES": "5",
        "MAX_SCANS": "6",
        "MAX_SCAN_SAMPLES": "7",
        "MAX_DECODER_BYTES": "8",
    }
    assert LimitSettings.read(environment).limits == Limits(
        input_formats=STANDARD_INPUT_FORMATS | {"heic"},
        max_bytes=1,
        max_webp_bytes=9,
        max_png_bytes=10,
        max_pixels=2_500_000,
        max_side=3,
        max_aspect=4,
        max_frames=5,
        max_scans=6,
        max_scan_samples=7,
        max_decoder_bytes=8,
    )
    assert len(environment) == len(Limits.__dataclass_fields__), "a new bound needs its setting"


@pytest.mark.parametrize(
    ("written", "extra"),
    [("", set()), ("avif", {"avif"}), ("avif,heic", {"avif", "heic"}), (" heic , avif,", {"avif", "heic"})],
)
def test_formats_beside_the_standard_ones_are_a_list(written: str, extra: set[str]) -> None:
    settings = InputSettings.read({"EXTRA_INPUT_FORMATS": written})
    assert settings.input_formats == STANDARD_INPUT_FORMATS | extra


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EXTRA_INPUT_FORMATS", "tiff"),
        ("EXTRA_INPUT_FORMATS", "avif heic"),
        ("MAX_FILE_BYTES", "0"),
        ("MAX_MEGAPIXELS", "0"),
        ("MAX_MEGAPIXELS", "inf"),
        ("MAX_MEGAPIXELS", "many"),
        ("MAX_SIDE_PIXELS", ""),
        ("MAX_ASPECT", "0"),
        ("MAX_FRAMES", "0"),
        ("MAX_SCANS", "-1"),
        ("MAX_SCAN_SAMPLES", "0"),
        ("MAX_DECODER_BYTES", "1.5"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(MissingSettings, match=name):
        LimitSettings.read({name: value})


LANE_VARIABLES = {f"{lane.upper()}_QUEUE_URL": f"{lane}-url" for lane in LANES} | {
    f"{lane.upper()}_CONCURRENCY": str(number) for number, lane in enumerate(LANES, start=7)
}


def test_every_lane_has_its_queue_and_its_workers() -> None:
    assert LaneSettings.read(LANE_VARIABLES).queue_urls == {lane: f"{lane}-url" for lane in LANES}
    service = ConcurrencySettings.read(LANE_VARIABLES).service
    assert [lane.concurrency for lane in service.values()] == list(range(7, 7 + len(LANES)))


def test_a_row_is_all_that_another_lane_needs_beside_its_slice_of_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANES, "weekly", replace(SLOW, name="weekly", tiers=frozenset(), concurrency=2))
    with pytest.raises(MissingSettings, match=r"LaneSettings: WEEKLY_QUEUE_URL: it is missing\. Set"):
        LaneSettings.read(LANE_VARIABLES)
    variables = {**LANE_VARIABLES, "WEEKLY_QUEUE_URL": "n", "WEEKLY_CONCURRENCY": "4"}
    assert LaneSettings.read(variables).queue_urls["weekly"] == "n"
    assert ConcurrencySettings.read(variables).service["weekly"].concurrency == 4


@pytest.mark.parametrize("workers", ["1", "1001", "many", ""])
def test_a_number_of_workers_that_lambda_would_refuse_is_told_by_its_variable(workers: str) -> None:
    with pytest.raises(MissingSettings, match="ConcurrencySettings: SLOW_CONCURRENCY: "):
        ConcurrencySettings.read({**LANE_VARIABLES, "SLOW_CONCURRENCY": workers})
