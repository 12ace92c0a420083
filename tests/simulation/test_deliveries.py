"""Messages duplicated, reordered, delayed and delivered at once: one image, one terminal state, the same bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom.domain.images.image import Status
from tests.support.fakes import World
from tests.support.fakes.pictures import jpeg

PHOTOS = [jpeg(80 + number, 60) for number in range(3)]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("deliver"), st.integers(0, 9)),
        st.tuples(st.just("advance"), st.sampled_from([1, 59, 91, 361, 1201])),
        st.tuples(st.just("sweep"), st.just(0)),
        st.tuples(st.just("submit"), st.integers(0, 2)),
        st.tuples(st.just("lose"), st.integers(0, 9)),
    ),
    min_size=5,
    max_size=40,
)


@settings(max_examples=60, derandomize=True)
@given(steps)
def test_every_accepted_image_ends_once_whatever_the_queue_does(story: list[tuple[str, int]]) -> None:
    world = World()
    accepted: set[str] = set()
    ended: dict[str, object] = {}
    for step, number in story:
        match step:
            case "submit":
                accepted.add(world.submit(PHOTOS[number], idempotency_key=f"photo-{number}").image.image_id)
            case "deliver" if world.lanes.sent:
                # The message stays: every delivery may be repeated.
                world.deliver(world.lanes.sent[number % len(world.lanes.sent)], receipt=f"receipt-{world.now}-{number}")
            case "lose" if world.lanes.sent:
                world.lanes.sent.pop(number % len(world.lanes.sent))
            case "advance":
                world.advance(number)
            case "sweep":
                world.sweep()
        for image_id in accepted:
            row = world.row(image_id)
            if image_id in ended:
                assert row == ended[image_id], "a terminal state is left by nobody and written by nobody again"
            elif row.status.is_terminal:
                ended[image_id] = row

    for _ in range(5):
        world.advance(3601)
        world.sweep()
        for message in list(world.lanes.sent):
            world.deliver(message, receipt=f"receipt-{world.now}-last")
    assert all(world.row(image_id).status is Status.DONE for image_id in accepted)
    assert all(count == 1 for count in world.outputs.puts.values()), "work is done once"
