"""Does one thing to many images, several at a time and at a limited rate, until all are done or it is stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from darkroom_cli.operator.operations.kernel.rate_limiter import RateLimiter

IMAGES_PER_SECOND, AT_A_TIME = 50, 8
"""The usual pace: what eight remote connections can do, and far less than a table or queue takes."""


def do_to_many[One, Outcome](
    ones: Iterable[One],
    act: Callable[[One], Outcome],
    *,
    pace: RateLimiter,
    at_a_time: int,
    stop: Callable[[], bool],
    on_outcome: Callable[[One, Outcome], None],
) -> None:
    """Runs `act` on each of `ones` in threads, no faster than `pace` allows, and calls `on_outcome` for each in this
    thread. Once `stop` returns true or one has raised, no other is begun: those under way finish and are reported, and
    then the first exception is raised."""
    under_way: dict[Future[Outcome], One] = {}
    raised: list[BaseException] = []

    def collect(*, down_to: int) -> None:
        while len(under_way) > down_to:
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                argument = under_way.pop(future)
                error = future.exception()
                if error is not None:
                    raised.append(error)
                else:
                    on_outcome(argument, future.result())

    with ThreadPoolExecutor(at_a_time) as pool:
        try:
            for argument in ones:
                pace.wait()
                if stop() or raised:
                    break
                pace.spend()
                under_way[pool.submit(act, argument)] = argument
                collect(down_to=at_a_time - 1)
        finally:
            collect(down_to=0)
    if raised:
        raise raised[0]
