"""Animations: every frame is composed as a browser shows it, at its time, and nothing hostile gets far."""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import pyvips
from PIL import Image

from darkroom.domain.images.limits import Limits
from darkroom.domain.kernel.errors import Rejected
from darkroom.domain.recipes.recipes import Recipe, VariantSpec
from darkroom.imaging import Developed, develop
from darkroom.imaging.animation import require_little_work, timeline_of
from darkroom.imaging.develop import FIRST_FRAME_ONLY
from darkroom.imaging.headers.gif import IMAGE, colour_table_bytes, gif_blocks
from darkroom.imaging.scaling.geometry import place
from tests.engine.golden import animations, gif_files, png_files, webp_files
from tests.engine.golden.animations import BLUE, CLEAR, GOLD, GREEN, RED, SIZE, STEPS, Step, block, shown
from tests.engine.golden.cases import SPACES
from tests.engine.golden.colours import Array
from tests.fuzz.handmade import webp

STILLS = ("first", "poster")


def developed(body: bytes, *variants: dict[str, Any]) -> Developed:
    """The variants, each 40 pixels wide unless it says otherwise, by the name of its place."""
    named = [{"name": f"v{number}", "width": 40, **spec} for number, spec in enumerate(variants)]
    return develop(body, Recipe.model_validate({"variants": named}))


def kept(body: bytes, **fields: Any) -> bytes:
    """The one variant that keeps the animation."""
    (variant,) = developed(body, {"animation": "keep", **fields}).variants
    return variant.body


def frames_of(body: bytes) -> tuple[list[Array], list[int]]:
    """What Pillow's decoder shows of each frame, in RGBA, zero where it is transparent; and for how long."""
    pictures, times = [], []
    with Image.open(io.BytesIO(body)) as file:
        for number in range(getattr(file, "n_frames", 1)):
            file.seek(number)
            samples = np.array(file.convert("RGBA"))
            samples[samples[..., 3] == 0] = 0
            pictures.append(samples)
            times.append(file.info.get("duration", 0))
    return pictures, times


def plays_of(body: bytes) -> int:
    """How often the animation is played; 0 is for ever."""
    if body[:4] == b"RIFF":
        at = body.index(b"ANIM")
        return int(struct.unpack_from("<H", body, at + 12)[0])
    at = body.find(b"NETSCAPE2.0\x03\x01")
    repeated = 0 if at < 0 else struct.unpack_from("<H", body, at + 13)[0]
    return 1 if at < 0 else repeated + 1 if repeated else 0


def code_of(body: bytes, *variants: dict[str, Any]) -> str:
    """The code of the refusal."""
    with pytest.raises(Rejected) as refusal:
        developed(body, *variants)
    return refusal.value.code


def distance(a: Array, b: Array) -> float:
    """The mean difference of two pictures on black, in levels of 255."""
    visible = [picture[..., :3] * (picture[..., 3:] / 255.0) for picture in (a, b)]
    return float(np.abs(visible[0] - visible[1]).mean() + np.abs(a[..., 3] - b[..., 3].astype(float)).mean())


FILES = {
    "gif": (animations.gif(SIZE, STEPS), STEPS),
    "gif-local-tables": (animations.gif(SIZE, STEPS, local=True), STEPS),
    "apng": (
        animations.apng(SIZE, [animations.full_canvas(SIZE, STEPS[0]), *STEPS[1:]]),
        [animations.full_canvas(SIZE, STEPS[0]), *STEPS[1:]],
    ),
    "apng-replacing": (
        animations.apng(SIZE, [replace(step, over=False) for step in STEPS], hidden=block(*SIZE, GOLD)),
        [replace(step, over=False) for step in STEPS],
    ),
    "webp": (animations.webp(SIZE, animations.forgetful(STEPS)), animations.forgetful(STEPS)),
    "webp-replacing": (
        animations.webp(SIZE, [replace(step, over=False) for step in animations.forgetful(STEPS)]),
        [replace(step, over=False) for step in animations.forgetful(STEPS)],
    ),
}


@pytest.mark.guards("animation-covered-area-restored", "animation-gif-uncover-disposal", case="gif")
@pytest.mark.guards("animation-replace-not-blended", case="webp-replacing")
@pytest.mark.parametrize("name", FILES)
def test_every_frame_is_what_a_browser_shows_at_its_time(name: str) -> None:
    body, steps = FILES[name]
    pictures, times = frames_of(kept(body, format="gif"))
    assert times == [step.milliseconds for step in steps]
    for number, (frame, wanted) in enumerate(zip(pictures, shown(SIZE, steps), strict=True)):
        assert np.array_equal(frame, wanted), number


@pytest.mark.parametrize("name", FILES)
def test_as_webp_it_is_the_same_within_what_webp_loses(name: str) -> None:
    body, steps = FILES[name]
    (variant,) = developed(body, {"animation": "keep", "quality": 100}).variants
    assert (variant.format, variant.media_type, variant.extension) == ("webp", "image/webp", "webp")
    pictures, times = frames_of(variant.body)
    assert times == [step.milliseconds for step in steps]
    assert max(distance(a, b) for a, b in zip(pictures, shown(SIZE, steps), strict=True)) < 4


def test_what_is_half_transparent_is_blended_over_what_is() -> None:
    faint, thin = (250, 40, 10, 128), (10, 60, 240, 70)
    steps = [
        Step(samples=block(*SIZE, faint, CLEAR, GREEN)),
        Step(samples=block(20, 20, thin, faint), left=8, top=4, disposal="background"),
        Step(samples=block(30, 10, thin), left=4, top=10, over=False),
    ]
    for body in (animations.apng(SIZE, steps), animations.webp(SIZE, steps)):
        pictures, _ = frames_of(kept(body, quality=100))
        assert max(distance(a, b) for a, b in zip(pictures, shown(SIZE, steps), strict=True)) < 4


def test_a_gifs_frame_beyond_its_screen_is_cut_off() -> None:
    steps = [Step(samples=block(*SIZE, RED)), Step(samples=block(30, 30, BLUE), left=20, top=10)]
    steps.append(Step(samples=block(5, 5, GOLD), left=60, top=60))
    steps.append(Step(samples=block(4, 4, GREEN)))
    pictures, times = frames_of(kept(animations.gif(SIZE, steps), format="gif"))
    wanted = shown(SIZE, [*steps[:2], steps[3]])  # what is outside changes nothing but the time
    assert times == [100, 200, 100]
    assert all(np.array_equal(a, b) for a, b in zip(pictures, wanted, strict=True))


def test_frames_are_placed_and_scaled_as_stills_are() -> None:
    steps = STEPS[:4]
    body = animations.gif(SIZE, steps)
    boxes: list[dict[str, Any]] = [
        {"width": 20, "height": 20, "fit": "cover", "gravity": "east"},
        {"width": 60, "height": 40, "fit": "contain", "background": "#33557780"},
        {"width": 20, "height": 30, "fit": "exact"},
        {"width": 80, "enlarge": True},
    ]
    moving = developed(body, *({**box, "animation": "keep", "quality": 100} for box in boxes)).variants
    canvases = []
    for canvas in shown(SIZE, steps):
        file = io.BytesIO()
        Image.fromarray(canvas).save(file, "PNG")
        canvases.append(developed(file.getvalue(), *({**box, "format": "png"} for box in boxes)).variants)
    for number, variant in enumerate(moving):
        for frame, stills in zip(frames_of(variant.body)[0], canvases, strict=True):
            still = stills[number]
            assert (variant.width, variant.height) == (still.width, still.height)
            assert distance(frame, frames_of(still.body)[0][0]) < 6, (number, variant.name)


def test_more_colours_than_a_gif_has_are_approximated() -> None:
    across, down = np.meshgrid(np.linspace(0, 255, 80), np.linspace(0, 255, 60))
    pictures = [np.dstack([across, down, np.full_like(across, blue), np.full_like(across, 255)]) for blue in (0, 200)]
    steps = [Step(samples=picture.astype(np.uint8)) for picture in pictures]
    frames, _ = frames_of(kept(animations.apng((80, 60), steps), format="gif", width=80))
    assert max(distance(a, step.samples) for a, step in zip(frames, steps, strict=True)) < 8


@pytest.mark.parametrize("colours", [256, 255])
def test_a_gif_keeps_every_colour_that_fits(colours: int) -> None:
    samples = np.zeros((16, 16, 4), np.uint8)
    numbers = np.arange(256).reshape(16, 16)
    samples[..., :3] = np.dstack([numbers, numbers * 7 % 256, numbers * 31 % 256])
    samples[..., 3] = 255 * (numbers < colours)
    samples[samples[..., 3] == 0] = 0
    steps = [Step(samples=samples, over=False), Step(samples=samples[::-1].copy(), over=False)]
    frames, _ = frames_of(kept(animations.apng((16, 16), steps), format="gif"))
    assert all(np.array_equal(a, step.samples) for a, step in zip(frames, steps, strict=True))


@pytest.mark.guards("animation-gif-leaving-frame-clear")
def test_decoders_clear_a_gifs_frame_that_leaves() -> None:
    small = np.zeros((*SIZE[::-1], 4), np.uint8)
    small[8:16, 10:20] = GREEN
    blue, red, last = (Step(samples=samples, over=False) for samples in (block(*SIZE, BLUE), block(*SIZE, RED), small))
    for steps in ([red, last], [blue, red, last]):
        body = kept(animations.apng(SIZE, steps), format="gif")
        frames = pyvips.Image.gifload_buffer(body, n=-1).numpy().reshape(len(steps), *SIZE[::-1], 4)
        assert all(np.array_equal(a, step.samples) for a, step in zip(frames, steps, strict=True))
    frames, _ = frames_of(kept(animations.apng(SIZE, [red, last]), format="gif"))
    assert [np.array_equal(a, step.samples) for a, step in zip(frames, (red, last), strict=True)] == [True, True]


@pytest.mark.guards("animation-gif-transparent-index", case="3")
@pytest.mark.parametrize("colours", [1, 2, 3, 4, 7, 8, 255])
def test_a_gifs_transparent_colour_is_in_its_table(colours: int) -> None:
    samples = np.zeros((16, 16, 4), np.uint8)
    samples.reshape(-1, 4)[:colours] = [(number, 255 - number, 9, 255) for number in range(colours)]
    samples[15, 15] = CLEAR
    steps = [Step(samples=samples, over=False), Step(samples=samples[::-1].copy(), over=False)]
    body = kept(animations.apng((16, 16), steps), format="gif")
    tables = [colour_table_bytes(body[start + 9]) // 3 for kind, start, _ in gif_blocks(body) if kind == IMAGE]
    controls = [body[start + 3 : start + 7] for _, start, _ in gif_blocks(body) if body[start : start + 2] == b"!\xf9"]
    assert len(tables) == len(controls) == 2
    for table, control in zip(tables, controls, strict=True):
        assert control[0] & 1
        assert control[3] < table < 2 * (colours + 2)
    assert all(np.array_equal(a, step.samples) for a, step in zip(frames_of(body)[0], steps, strict=True))


@pytest.mark.guards("animation-webp-alpha-flag", case="0")
@pytest.mark.parametrize("plays", [0, 1])
def test_a_webp_says_that_its_margins_are_transparent(plays: int) -> None:
    opaque = animations.gif((60, 28), [Step(samples=block(60, 28, colour)) for colour in (RED, BLUE)], plays=plays)
    box = {"width": 60, "height": 60, "fit": "contain", "quality": 100}
    for background, alpha in (("#00000000", 0), ("#000000", 255)):
        body = kept(opaque, background=background, **box)
        assert bool(body[20] & 0x10) == (alpha == 0)
        for picture in frames_of(body)[0]:
            assert picture[0, 0].tolist() == [0, 0, 0, alpha]
            assert picture[30, 30, 3] == 255


# ── Times and plays ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guards("animation-gif-repeat-count", case="2-gif")
@pytest.mark.parametrize("output", ["gif", "webp"])
@pytest.mark.parametrize("plays", [0, 1, 2, 7])
def test_it_is_played_as_often_as_before(plays: int, output: str) -> None:
    steps = [Step(samples=block(*SIZE, RED), over=False), Step(samples=block(*SIZE, BLUE), over=False)]
    for make in (animations.gif, animations.apng, animations.webp):
        assert plays_of(kept(make(SIZE, steps, plays=plays), format=output)) == plays, make


@pytest.mark.parametrize("output", ["gif", "webp"])
def test_equal_frames_become_one_that_is_seen_as_long(output: str) -> None:
    colours = (RED, RED, BLUE, BLUE, BLUE, RED)
    times = (50, 70, 110, 20, 300, 60)
    steps = [Step(samples=block(*SIZE, colour), milliseconds=time) for colour, time in zip(colours, times, strict=True)]
    assert frames_of(kept(animations.gif(SIZE, steps), format=output))[1] == [120, 430, 60]


@pytest.mark.guards("animation-flash-duration", case="webp")
@pytest.mark.parametrize("output", ["gif", "webp"])
def test_a_frame_of_no_time_is_seen_as_long_as_in_browsers(output: str) -> None:
    times = (0, 10, 20, 100)
    colours = (RED, BLUE, GREEN, GOLD)
    steps = [Step(samples=block(*SIZE, colour), milliseconds=time) for colour, time in zip(colours, times, strict=True)]
    for make in (animations.gif, animations.apng, animations.webp):
        assert frames_of(kept(make(SIZE, steps), format=output))[1] == [100, 100, 20, 100], make


def test_rounding_to_hundredths_does_not_add_up() -> None:
    colours = (RED, BLUE) * 10
    steps = [Step(samples=block(*SIZE, colour), milliseconds=33) for colour in colours]
    times = frames_of(kept(animations.apng(SIZE, steps), format="gif"))[1]
    assert (sum(times), set(times)) == (660, {30, 40})


def test_a_gifs_frame_is_never_so_short_that_browsers_slow_it_down() -> None:
    steps = [Step(samples=block(*SIZE, colour), milliseconds=11) for colour in (RED, BLUE, GREEN)]
    steps.append(Step(samples=block(*SIZE, GOLD), milliseconds=200))
    assert frames_of(kept(animations.apng(SIZE, steps), format="gif"))[1] == [20, 20, 20, 170]


# ── Stills ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", [animations.gif, animations.apng, animations.webp])
def test_a_poster_is_the_first_frame_that_is_not_one_colour(make: Any) -> None:
    steps = [
        Step(samples=block(*SIZE, RED)),
        Step(samples=block(*SIZE, BLUE)),
        Step(samples=block(10, 10, GOLD), left=4, top=6),
        Step(samples=block(*SIZE, GREEN, RED)),
    ]
    result = developed(make(SIZE, steps), *({"animation": kind, "format": "png"} for kind in STILLS))
    first, poster = (frames_of(variant.body)[0][0] for variant in result.variants)
    wanted = shown(SIZE, steps)
    assert np.array_equal(first, wanted[0])
    assert np.array_equal(poster, wanted[2])


def test_a_poster_of_nothing_but_single_colours_is_the_first_frame() -> None:
    steps = [Step(samples=block(*SIZE, colour)) for colour in (RED, BLUE, GREEN)]
    (poster,) = developed(animations.gif(SIZE, steps), {"animation": "poster", "format": "png"}).variants
    assert np.array_equal(frames_of(poster.body)[0][0], steps[0].samples)


def repeated(body: bytes, frames: int) -> bytes:
    """The animation of three frames with so many, all others as the last one."""
    more = frames - 3
    if body.startswith(b"GIF"):
        *_, (_, start, _), (_, _, end), _ = gif_blocks(body)  # the last frame's control, the frame, the trailer
        return body[:end] + body[start:end] * more + body[end:]
    if body.startswith(b"RIFF"):
        *_, (_, at, _) = webp.chunks(body)
        return webp.with_mended_size(body + body[at - 8 :] * more)
    start, end = body.rindex(b"fcTL") - 4, body.rindex(b"IEND") - 4
    lengthened = body.replace(claims(3), claims(frames))
    return lengthened[:end] + body[start:end] * more + body[end:]


THREE_STEPS = tuple(Step(samples=block(*SIZE, *colours)) for colours in ((RED,), (RED, BLUE), (GOLD,)))


@pytest.mark.guards("animation-kept-frames-bound", case="gif-1024")
@pytest.mark.parametrize("frames", [1_024, 20_100])
@pytest.mark.parametrize("make", [animations.gif, animations.apng, animations.webp])
def test_a_still_is_developed_however_many_frames_follow(make: Any, frames: int) -> None:
    few = make(SIZE, THREE_STEPS)
    many = repeated(few, frames)
    asked = [{"format": "png"}, {"format": "png", "animation": "poster"}]
    assert developed(many, *asked).variants == developed(few, *asked).variants
    assert developed(many, {}).notices == (FIRST_FRAME_ONLY,)
    assert code_of(many, *asked, KEEP) == "too_many_frames"


@pytest.mark.guards("animation-poster-frames-bound")
def test_a_poster_is_sought_in_a_limited_number_of_frames() -> None:
    plain, striped, _ = THREE_STEPS
    body = animations.gif(SIZE, (plain, plain, striped))
    poster = Recipe(variants=(VariantSpec(name="a", width=40, format="png", animation="poster"),))
    colours = [
        frames_of(develop(body, poster, limits=Limits(max_frames=most)).variants[0].body)[0][0][5, 35].tolist()
        for most in (2, 3)
    ]
    assert colours == [list(RED), list(BLUE)]


def test_a_still_is_the_same_whatever_an_animation_would_become() -> None:
    body = png_files.png(block(*SIZE, RED, GREEN), png_files.RGBA)
    results = [developed(body, {"animation": kind, "format": "webp"}) for kind in ("first", "poster", "keep")]
    assert results[0] == results[1] == results[2]
    automatic, as_gif = developed(body, {"animation": "keep"}, {"animation": "keep", "format": "gif"}).variants
    assert (automatic.format, as_gif.format, as_gif.media_type) == ("jpeg", "gif", "image/gif")
    assert np.array_equal(frames_of(as_gif.body)[0][0], block(*SIZE, RED, GREEN))


def test_a_notice_names_the_variants_that_lost_the_animation() -> None:
    body = animations.gif(SIZE, STEPS)
    keep, first, poster = ({"animation": kind} for kind in ("keep", "first", "poster"))
    assert developed(body, first, {}).notices == (FIRST_FRAME_ONLY,)
    assert developed(body, keep, poster).notices == ()
    notice = "v1, v2: only the first frame of the animation was developed."
    assert developed(body, keep, first, {}).notices == (notice,)


def test_a_variant_of_the_first_frame_is_the_same_beside_others() -> None:
    body = animations.gif(SIZE, STEPS)
    (alone,) = developed(body, {"format": "png"}).variants
    beside = developed(body, {"format": "png"}, {"animation": "keep"}, {"animation": "poster"}).variants
    assert beside[0] == alone


def test_the_placeholder_is_the_posters_and_otherwise_the_first_frames() -> None:
    steps = [Step(samples=block(*SIZE, RED)), Step(samples=block(*SIZE, BLUE, BLUE, GOLD))]
    body = animations.gif(SIZE, steps)
    first, keep, poster = (developed(body, {"animation": kind}).placeholder for kind in ("first", "keep", "poster"))
    assert first.color == keep.color == "#c81e28"
    assert poster.color == "#273bdd"


def test_an_animation_is_turned_upright() -> None:
    steps = [Step(samples=block(*SIZE, RED)), Step(samples=block(*SIZE, BLUE, RED))]
    turned = animations.apng(SIZE, steps)
    exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    turned = turned[:33] + png_files.chunk(b"eXIf", exif) + turned[33:]
    pictures, _ = frames_of(kept(turned, format="gif"))
    assert pictures[1].shape[:2] == (40, 30)
    assert pictures[1][5, 5].tolist() == list(BLUE)
    assert pictures[1][35, 5].tolist() == list(RED)


def test_the_colours_of_every_frame_are_converted_by_the_files_profile() -> None:
    steps = [Step(samples=block(*SIZE, colour)) for colour in (RED, GREEN)]
    name, data = png_files.iccp(SPACES["display-p3"].profile)
    profile = png_files.chunk(name, data)
    plain = animations.apng(SIZE, steps)
    pictures, _ = frames_of(kept(plain[:33] + profile + plain[33:], format="gif"))
    for step, picture in zip(steps, pictures, strict=True):
        plain = png_files.png(step.samples, png_files.RGBA, before=[(name, data)])
        (still,) = developed(plain, {"format": "png"}).variants
        assert np.array_equal(picture, frames_of(still.body)[0][0])
        assert not np.array_equal(picture, step.samples)


def test_regions_are_hidden_and_edits_made_in_every_frame() -> None:
    steps = [Step(samples=block(*SIZE, colour)) for colour in (RED, GREEN, BLUE)]
    hidden = {"x": 0, "y": 0, "width": 0.5, "height": 1, "effect": "fill"}
    recipe = {"variants": [{"name": "a", "width": 40, "format": "gif", "animation": "keep"}]}
    edits = {"regions": [hidden], "flip": "horizontal"}
    (variant,) = develop(animations.gif(SIZE, steps), Recipe.model_validate({**recipe, **edits})).variants
    for picture, step in zip(frames_of(variant.body)[0], steps, strict=True):
        assert (picture[:, 20:, :3] == 0).all()
        assert np.array_equal(picture[:, :19], step.samples[:, 21:])


@pytest.mark.guards("animation-trim-same-all-frames")
def test_what_is_measured_on_the_first_frame_holds_for_all() -> None:
    steps = [
        Step(samples=block(*SIZE, GOLD)),
        Step(samples=block(*SIZE, GOLD, GOLD, GOLD, BLUE)),
    ]
    steps[0].samples[10:20, 10:30] = RED
    variants = [
        {"name": "trimmed", "width": 40, "format": "gif", "animation": "keep"},
        {"name": "crop", "width": 10, "height": 10, "fit": "cover", "gravity": "attention", "animation": "keep"},
    ]
    recipe = Recipe.model_validate({"variants": variants, "trim": 10})
    trimmed, crop = develop(animations.gif(SIZE, steps), recipe).variants
    first, second = frames_of(trimmed.body)[0]
    assert first.shape == second.shape == (10, 20, 4)
    assert (first == RED).all()
    assert (second == GOLD).all()
    assert (crop.width, crop.height) == (10, 10)


def late(make: Any) -> bytes:
    """An animation that begins with a blank frame; in the others something stands out, each time elsewhere."""
    steps = [Step(samples=block(60, 30, GREEN))]
    for left, top in ((44, 6), (6, 14)):
        samples = block(60, 30, GREEN)
        samples[top : top + 10, left : left + 10] = RED
        steps.append(Step(samples=samples))
    return make((60, 30), steps)  # type: ignore[no-any-return]


MEASURED: dict[str, dict[str, Any]] = {
    "crop": {"width": 20, "height": 20, "fit": "cover", "gravity": "attention"},
    "whole": {"width": 60},
}


@pytest.mark.guards("animation-first-frame-like-poster", "animation-frames-measured-once")
@pytest.mark.parametrize("make", [animations.gif, animations.apng, animations.webp])
@pytest.mark.parametrize("asked", [("poster", "keep", "first"), ("keep", "first"), ("poster", "first"), ("keep",)])
def test_crops_are_those_around_the_one_point_that_is_told(asked: Sequence[str], make: Any) -> None:
    body, variants = late(make), [{**MEASURED["crop"], "format": "webp", "animation": kind} for kind in asked]
    made = developed(body, *variants)
    assert made.attention is not None
    assert (made.attention.x > 0.6) == ("poster" in asked)  # what stands out there is not in the first frame
    again = developed(body, *({**variant, "gravity": made.attention} for variant in variants))
    assert again.variants == made.variants


@pytest.mark.guards("animation-poster-measured-for-all")
@pytest.mark.parametrize("asked", [("whole", "crop"), ("crop", "whole")])
def test_the_posters_point_is_told_whichever_variant_asks_for_one(asked: Sequence[str]) -> None:
    body = late(animations.gif)
    moving, still = (
        {**MEASURED[name], "animation": kind} for name, kind in zip(asked, ("keep", "poster"), strict=True)
    )
    moved, posed = developed(body, moving, still), developed(body, still, moving)
    assert moved.attention == posed.attention
    assert moved.attention is not None and moved.attention.x > 0.6
    assert moved.variants[0].body == posed.variants[1].body


@pytest.mark.guards("animation-first-frame-like-poster", "animation-frames-measured-once")
def test_an_animation_is_trimmed_as_its_poster_is() -> None:
    variants = [{"name": kind, "width": 60, "animation": kind} for kind in ("keep", "poster", "first")]
    made = develop(late(animations.gif), Recipe.model_validate({"variants": variants, "trim": 10})).variants
    assert [(variant.width, variant.height) for variant in made] == [(10, 10)] * 3
    made = develop(late(animations.gif), Recipe.model_validate({"variants": variants[::2], "trim": 10})).variants
    assert [(variant.width, variant.height) for variant in made] == [(60, 30)] * 2


def test_a_webp_carries_the_rights_and_a_gif_does_not() -> None:
    exif = Image.Exif()
    exif[0x8298] = "Somebody's"
    steps = [Step(samples=block(*SIZE, RED)), Step(samples=block(*SIZE, BLUE))]
    body = animations.apng(SIZE, steps)
    body = body[:33] + png_files.chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0")) + body[33:]
    variants = [{"name": name, "width": 40, "format": name, "animation": "keep"} for name in ("webp", "gif")]
    result = develop(body, Recipe.model_validate({"variants": variants, "metadata": "copyright"}))
    webp_file, gif_file = (variant.body for variant in result.variants)
    with Image.open(io.BytesIO(webp_file)) as opened:
        assert opened.getexif()[0x8298] == "Somebody's"
        assert getattr(opened, "n_frames", 1) == 2
    assert b"Somebody" not in gif_file
    assert result.notices == ("gif: without author and copyright, which a GIF does not carry.",)


def test_a_grey_animation_stays_grey() -> None:
    steps = [Step(samples=block(*SIZE, (level, level, level, 255))) for level in (40, 200)]
    body = animations.apng(SIZE, steps, colour_type=png_files.GREY)
    pictures, _ = frames_of(kept(body, format="gif"))
    assert [picture[0, 0].tolist() for picture in pictures] == [[40, 40, 40, 255], [200, 200, 200, 255]]


# ── Damage and limits ─────────────────────────────────────────────────────────────────────────────────────────────────

KEEP = {"animation": "keep"}


@pytest.mark.guards("animation-gif-frame-truncated", case="gif")
@pytest.mark.guards("animation-webp-frame-truncated", case="webp")
@pytest.mark.parametrize("name", FILES)
def test_an_animation_that_ends_too_early_is_refused_as_a_still_is(name: str) -> None:
    body, _ = FILES[name]
    last = len(body) - (12 + 4 if name.startswith("apng") else 0)  # of a PNG, its end and the check of its last frame
    for end in (last - 3, len(body) * 3 // 4, len(body) * 2 // 3):
        assert code_of(body[:end], KEEP) == "truncated"
        assert code_of(body[:end], {"animation": "poster"}) == "truncated"


BEHIND = {
    # How many bytes are missing at most, of files that have something behind their last frame.
    "gif": (animations.gif(SIZE, STEPS)[:-1] + gif_files.comment(b"a comment") + b";", 12),
    "apng": (FILES["apng"][0][:-12] + png_files.chunk(b"tEXt", b"a\0comment") + FILES["apng"][0][-12:], 12 + 21 + 4),
    "webp": (animations.webp(SIZE, animations.forgetful(STEPS), after=[(b"EXIF", b"II*"), (b"XMP ", b"<x/>")]), 24),
    "webp-of-odd-length": (animations.webp(SIZE, animations.forgetful(STEPS), after=[(b"EXIF", b"II*")]), 1),
}


@pytest.mark.guards("animation-webp-cut-in-metadata", case="webp")
@pytest.mark.parametrize("name", BEHIND)
def test_an_animation_that_lacks_only_what_is_behind_its_last_frame_is_whole(name: str) -> None:
    body, most = BEHIND[name]
    complete = kept(body)
    for missing in range(1, most + 1):
        assert kept(body[:-missing]) == complete, missing
    poster = {"format": "png", "animation": "poster"}
    assert developed(body[:-most], poster).variants == developed(body, poster).variants


def test_a_webp_without_the_padding_of_its_last_picture_is_whole() -> None:
    frames = b""
    for colour in (RED, BLUE):
        ((name, picture),) = webp_files.bitstream(np.ascontiguousarray(block(*SIZE, colour)[..., :3]))
        padded = webp.chunk(name, picture + b"\0" * (1 - len(picture) % 2))  # of an odd length
        frames += webp.animation_frame(padded, width=SIZE[0], height=SIZE[1])
    body = webp.animation(*SIZE, frames)
    assert kept(body[:-1]) == kept(body)
    assert developed(body[:-1], {"format": "png"}).variants == developed(body, {"format": "png"}).variants
    assert code_of(body[:-2], KEEP) == "truncated"


@pytest.mark.guards("animation-webp-cut-not-still", case="1")
@pytest.mark.parametrize("left", [1, 2])
def test_a_webp_that_ends_between_two_frames_lacks_frames(left: int) -> None:
    body = animations.webp(SIZE, animations.forgetful(STEPS)[:3])
    starts = [match.start() for match in re.finditer(b"ANMF", body)]
    for end in range(starts[left], starts[left] + 40):
        assert code_of(body[:end], KEEP) == "truncated", end
        assert developed(body[:end], {}).variants


@pytest.mark.parametrize("make", [animations.apng, animations.webp])
def test_a_frame_outside_its_canvas_is_damage(make: Any) -> None:
    steps = [Step(samples=block(*SIZE, RED)), Step(samples=block(10, 10, BLUE), left=32, top=2)]
    assert code_of(make(SIZE, steps), KEEP) == "undecodable"


def png_of(*parts: bytes) -> bytes:
    return png_files.png(block(*SIZE, GOLD), png_files.RGBA)[:33] + b"".join(parts)


def claims(frames: int, *, extra: bytes = b"") -> bytes:
    return png_files.chunk(b"acTL", struct.pack(">II", frames, 0) + extra)


def frame_control(number: int, size: tuple[int, int] = SIZE, at: tuple[int, int] = (0, 0)) -> bytes:
    return png_files.chunk(b"fcTL", struct.pack(">5I2H2B", number, *size, *at, 1, 10, 0, 0))


def frame(number: int, colour: tuple[int, int, int, int]) -> bytes:
    data = zlib.compress(png_files.image_data(block(*SIZE, colour)))
    return frame_control(number) + png_files.chunk(b"fdAT", struct.pack(">I", number + 1) + data)


DEFAULT = png_files.chunk(b"IDAT", zlib.compress(png_files.image_data(block(*SIZE, GOLD))))
NOISE = png_files.chunk(b"IDAT", b"no picture")
ONE, TWO, THREE = frame(0, RED), frame(2, BLUE), frame(4, GREEN)
END = png_files.chunk(b"IEND", b"")

# As Chromium shows them, but that it gives up the last frame of a file without an end, and that it shows nothing of a
# still that claims frames and has no control chunk.
SHOWN: dict[str, tuple[bytes, list[tuple[int, int, int, int]]]] = {
    "apart": (png_of(claims(2), DEFAULT, ONE, TWO, END), [RED, BLUE]),
    "apart and one frame": (png_of(claims(1), DEFAULT, ONE, END), [RED]),
    "apart and broken": (png_of(claims(1), NOISE, ONE, END), [RED]),
    "apart and one frame of two that are claimed": (png_of(claims(2), DEFAULT, ONE, END), [RED]),
    "apart and two frames of three that are claimed": (png_of(claims(3), DEFAULT, ONE, TWO, END), [RED, BLUE]),
    "apart and two frames, of which one is claimed": (png_of(claims(1), DEFAULT, ONE, TWO, END), [RED]),
    "apart and three frames, of which two are claimed": (png_of(claims(2), DEFAULT, ONE, TWO, THREE, END), [RED, BLUE]),
    "apart and without an end": (png_of(claims(2), DEFAULT, ONE, TWO), [RED, BLUE]),
    "a still of one frame": (png_of(claims(1), frame_control(0), DEFAULT, END), [GOLD]),
    "two frames": (png_of(claims(2), frame_control(0), DEFAULT, frame(1, BLUE), END), [GOLD, BLUE]),
    "two frames of three that are claimed": (
        png_of(claims(3), frame_control(0), DEFAULT, frame(1, BLUE), END),
        [GOLD, BLUE],
    ),
    "two frames, of which one is claimed": (png_of(claims(1), frame_control(0), DEFAULT, frame(1, BLUE), END), [GOLD]),
    "a still that claims two frames": (png_of(claims(2), DEFAULT, END), [GOLD]),
    "a still that is one frame and claims two": (png_of(claims(2), frame_control(0), DEFAULT, END), [GOLD]),
    "a still that claims 1,001 frames": (png_of(claims(1001), frame_control(0), DEFAULT, END), [GOLD]),
    "a still that claims 2,147,483,648 frames": (png_of(claims(1 << 31), DEFAULT, END), [GOLD]),
    "frames of a still that claims none": (png_of(claims(0), DEFAULT, ONE, TWO, END), [GOLD]),
    "frames that are not announced": (png_of(DEFAULT, ONE, TWO, END), [GOLD]),
    "frames that are announced behind the picture": (png_of(DEFAULT, claims(2), ONE, TWO, END), [GOLD]),
    "frames that are announced at length": (png_of(claims(2, extra=bytes(4)), DEFAULT, ONE, TWO, END), [GOLD]),
    "frames that are announced twice": (png_of(claims(1), claims(2), DEFAULT, ONE, TWO, END), [RED]),
}


@pytest.mark.guards("animation-apng-default-image", case="apart and one frame")
@pytest.mark.guards("animation-apng-unclaimed-frames", case="apart and two frames, of which one is claimed")
@pytest.mark.parametrize("name", SHOWN)
def test_an_apng_shows_its_own_frames_and_what_is_none_is_a_still(name: str) -> None:
    body, colours = SHOWN[name]
    first, poster, moving = developed(
        body, {"format": "png"}, {"format": "png", "animation": "poster"}, {"format": "gif", "animation": "keep"}
    ).variants
    for still in (first, poster):
        assert [picture[5, 5].tolist() for picture in frames_of(still.body)[0]] == [list(colours[0])]
    assert [picture[5, 5].tolist() for picture in frames_of(moving.body)[0]] == [list(colour) for colour in colours]
    alone = developed(body, {"format": "png"})
    assert alone.variants == (first,)
    assert alone.notices == ((FIRST_FRAME_ONLY,) if len(colours) > 1 else ())


@pytest.mark.guards("animation-apng-no-first-frame", case="no frame yet")
@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ((claims(1), DEFAULT), "truncated"),
        ((claims(1), DEFAULT, ONE[:-20]), "truncated"),
        ((claims(1), DEFAULT, frame_control(0), END), "undecodable"),
        ((claims(1), DEFAULT, frame_control(0, (0, 30)), ONE[38:], END), "undecodable"),
        ((claims(1), DEFAULT, frame_control(0, SIZE, (1, 0)), ONE[38:], END), "undecodable"),
        ((claims(1), DEFAULT, frame_control(0), png_files.chunk(b"fdAT", b"\0\0\0\1no picture"), END), "undecodable"),
    ],
    ids=["no frame yet", "half a frame", "no data", "no width", "outside", "noise"],
)
def test_a_picture_apart_never_stands_in_for_a_frame(parts: Sequence[bytes], code: str) -> None:
    for recipe in ({}, {"animation": "poster"}, KEEP):
        assert code_of(png_of(*parts), recipe) == code


@pytest.mark.guards("animation-apng-frames-missing", case="one")
@pytest.mark.guards("animation-apng-cut-not-still", case="two")
@pytest.mark.parametrize("missing", [(TWO,), (THREE,), (TWO[50:], THREE)], ids=["two", "one", "a half"])
def test_an_apng_that_ends_before_all_claimed_frames_is_truncated(missing: Sequence[bytes]) -> None:
    complete = png_of(claims(3), DEFAULT, ONE, TWO, THREE)
    cut = complete[: complete.index(b"".join(missing))]
    assert code_of(cut, KEEP) == "truncated"
    assert code_of(cut, {"animation": "poster"}) == "truncated"
    assert developed(cut, {}).variants == developed(complete, {}).variants


TABLE, ALPHAS = bytes((*RED[:3], *BLUE[:3])), bytes((255, 0))


def indexed_apng(*before: tuple[bytes, bytes], late: Sequence[tuple[bytes, bytes]] = (), frames: int = 2) -> bytes:
    """An APNG of the colours 0 and 1 of a palette, with these chunks before and after its first picture."""
    rows = zlib.compress(b"\0\0\1" * 2)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 3, 0, 0, 0)), (b"acTL", struct.pack(">II", frames, 0)), *before]
    for number in range(frames):
        timing = (2, 2, 0, 0, 100 + number, 1000, 0, 0)
        parts.append((b"fcTL", struct.pack(">IIIIIHHBB", max(0, 2 * number - 1), *timing)))
        parts += [(b"fdAT", struct.pack(">I", 2 * number) + rows)] if number else [(b"IDAT", rows), *late]
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_files.chunk(*part) for part in [*parts, (b"IEND", b"")])


@pytest.mark.guards("animation-apng-shared-chunk-order")
def test_an_apngs_frames_have_the_colours_and_alphas_that_come_before_its_first_picture() -> None:
    late = [(b"PLTE", bytes(6)), (b"tRNS", bytes(2))]
    sound = (b"PLTE", TABLE), (b"tRNS", ALPHAS)
    for body in (indexed_apng(*sound), indexed_apng(*sound, late=late)):
        still, moving = developed(body, {"format": "png"}, {"animation": "keep", "format": "gif"}).variants
        for picture in (frames_of(still.body)[0][0], *frames_of(moving.body)[0]):
            assert picture[0].tolist() == [list(RED), list(CLEAR)]


@pytest.mark.guards("animation-apng-shared-chunk-size", case="alphas")
@pytest.mark.parametrize(
    ("name", "data"),
    [(b"PLTE", TABLE.ljust(771, b"\0")), (b"tRNS", ALPHAS.ljust(257, b"\xff"))],
    ids=["colours", "alphas"],
)
def test_what_every_frame_of_an_apng_gets_is_short(name: bytes, data: bytes) -> None:
    parts = {b"PLTE": TABLE, b"tRNS": ALPHAS, name: data}
    assert code_of(indexed_apng(*parts.items()), KEEP) == "undecodable"
    most = [(b"PLTE", TABLE.ljust(768, b"\0")), (b"tRNS", ALPHAS.ljust(256, b"\xff"))]
    assert frames_of(kept(indexed_apng(*most), format="gif"))[0][0][0].tolist() == [list(RED), list(CLEAR)]


@pytest.mark.guards("animation-apng-shared-chunk-once")
def test_what_every_frame_of_an_apng_gets_is_there_once() -> None:
    sound = (b"PLTE", TABLE), (b"tRNS", ALPHAS)
    for twice in ((b"PLTE", bytes(6)), (b"tRNS", bytes(2))):
        assert code_of(indexed_apng(*sound, twice), KEEP) == "undecodable"


@pytest.mark.guards("animation-webp-picture-in-frame", case="alpha")
@pytest.mark.guards("animation-webp-picture-in-frame", case="colours")
@pytest.mark.parametrize("alpha", [False, True], ids=["colours", "alpha"])
def test_no_frame_of_a_webp_has_the_rest_of_the_file_for_its_picture(alpha: bool) -> None:
    coded = webp_files.bitstream(block(*SIZE, RED, CLEAR if alpha else BLUE), quality=50)
    assert [name for name, _ in coded] == [b"ALPH", b"VP8 "][not alpha :]

    def frames(claims: int | None) -> bytes:
        *before, last = coded
        picture = b"".join(webp.chunk(*chunk) for chunk in before) + webp.chunk(*last, length=claims)
        frame = webp.animation_frame(picture, width=SIZE[0], height=SIZE[1])
        return webp.animation(*SIZE, frame * 20, webp.chunk(b"JUNK", bytes(100_000)))

    assert kept(frames(None))
    for recipe in (KEEP, {"animation": "poster"}, {}):
        assert code_of(frames(90_000), recipe) == "undecodable"


def planted(frames: int, size: tuple[int, int], *, frame: tuple[int, int] = (1, 1)) -> bytes:
    """A GIF of that many frames, the first as large as the screen; none can be decoded."""
    control, table = b"!\xf9\x04\0\x0a\0\0\0", bytes(6)
    parts = [b"," + struct.pack("<HHHHB", 0, 0, *area, 0) + b"\x0d\0" for area in (size, *[frame] * (frames - 1))]
    return b"GIF89a" + struct.pack("<HHBBB", *size, 0x80, 0, 0) + table + b"".join(control + part for part in parts)


@pytest.mark.guards("animation-canvas-size-bound", case="canvas")
@pytest.mark.guards("animation-total-work-bound", case="sum")
@pytest.mark.parametrize(
    ("body", "variants"),
    [
        (planted(2, (4000, 3000)), [KEEP]),
        (planted(2, (4000, 3000)), [{"animation": "poster"}]),
        (planted(2, (40, 30), frame=(9000, 9000)), [KEEP]),
        (planted(1000, (800, 600)), [KEEP]),
        (planted(2, (40, 30)), [{**KEEP, "width": 3000, "height": 3000, "enlarge": True, "fit": "exact"}]),
        (planted(201, (800, 600)), [{**KEEP, "width": 800}, {**KEEP, "width": 400}]),
        (planted(130, (800, 600)), [{**KEEP, "width": 800, "effort": "small"}]),
        (planted(130, (800, 600)), [{**KEEP, "width": 800, "quality": 100}]),
        (planted(1000, (10, 10)), [KEEP] * 4),
    ],
    ids=[
        *("canvas", "canvas-of-poster", "frame", "frames", "variant"),
        *("sum", "effort", "quality", "least"),
    ],
)
def test_too_much_work_is_refused_before_a_frame_is_decoded(body: bytes, variants: Sequence[dict[str, Any]]) -> None:
    assert code_of(body, *variants) == "animation_too_large"


@pytest.mark.guards("animation-poster-work-bound", "animation-poster-search-bound", "animation-poster-work-left")
def test_a_poster_is_sought_in_as_many_frames_as_the_work_allows_and_is_not_refused_for_the_others() -> None:
    huge_picture = webp.chunk(b"VP8L", webp.solid(64, 48)[8:] + bytes(8_000_000))
    huge = webp.animation_frame(huge_picture, width=64, height=48)
    spec = VariantSpec(name="a", width=1000, height=800, animation="poster", format="jpeg")
    recipe = Recipe(variants=(spec,))
    for body, sought in (
        (planted(40, (1200, 1000)), 40),
        (planted(400, (1200, 1000)), 43),  # an eighth of 16.8 megapixels / (1.2 / 25)
        (planted(3, (40, 30), frame=(9000, 9000)), 1),
        (webp.animation(64, 48, huge, huge), 1),
    ):
        timeline = timeline_of(body, most=1000)
        assert timeline is not None
        assert require_little_work(timeline, recipe, [(spec, place(spec, 1000, 800))]) == sought
    broken = code_of(planted(400, (1200, 1000)), {"animation": "poster"})
    assert broken == "undecodable", "that of its first frame: it was begun"
    moving = spec.model_copy(update={"name": "b", "animation": "keep", "width": 40, "height": 30})
    jobs = [(spec, place(spec, 1000, 800)), (moving, place(moving, 40, 30))]
    timeline = timeline_of(planted(420, (1000, 800)), most=1000)
    assert timeline is not None
    assert 0 < require_little_work(timeline, Recipe(variants=(spec,)), jobs) < 40, "keeping it took most of it"


@pytest.mark.guards("animation-lossless-work-by-bytes")
def test_lossless_frames_also_count_by_their_bytes() -> None:
    """A frame of a few pixels may bring as many Huffman codes as its bytes hold."""
    picture = webp.chunk(b"VP8L", webp.solid(64, 48)[8:] + bytes(8_000_000))
    frame = webp.animation_frame(picture, width=64, height=48)
    assert code_of(webp.animation(64, 48, frame, frame), KEEP) == "animation_too_large"


def test_what_is_allowed_is_decoded() -> None:
    for body, width in ((planted(200, (800, 600)), 800), (planted(1000, (10, 10)), 10)):
        assert code_of(body, {**KEEP, "width": width}) in ("truncated", "undecodable")


def test_a_comment_does_not_follow_into_an_animation() -> None:
    body = animations.gif(SIZE, STEPS)
    secret = gif_files.comment(b"a secret")
    commented = body[: 13 + 768] + secret + body[13 + 768 :]
    for output in ("webp", "gif"):
        assert kept(commented, format=output) == kept(body, format=output)
