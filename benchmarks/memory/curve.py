"""What the measured milliseconds mean: dollars, which sizes fit, and which are the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from benchmarks.memory.throttle import share_of
from darkroom_cli.capacity.prices import cost
from repository.report import Goal

DEAREST = 1.1
"""The most dollars of the deployed size, of the cheapest size's that fits."""

SLOWEST = 1.25
"""The most milliseconds of the deployed size, of the fastest size's."""

FULLEST = 0.8
"""The most of its memory that the most demanding image may take: the rest is for the runtime, and for growth."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One size of memory with the images of one lane: `milliseconds` has those of each photo. The function waits
    for AWS for `waiting` milliseconds more, and pays for them."""

    lane: str
    megabytes: int
    milliseconds: tuple[float, ...]
    waiting: float

    @property
    def median(self) -> float:
        """The milliseconds of the photo in the middle, without waiting."""
        return median(self.milliseconds)

    @property
    def worst(self) -> float:
        """The milliseconds of the slowest photo, without waiting."""
        return max(self.milliseconds)

    @property
    def total(self) -> float:
        """The milliseconds of an image on average, waiting included."""
        return fmean(self.milliseconds) + self.waiting

    @property
    def dollars(self) -> float:
        """What the function's time costs for a million images, equally many of each photo."""
        return dollars_a_million(self.megabytes, self.total)


def dollars_a_million(megabytes: int, milliseconds: float) -> float:
    """What the time of a million images costs that take so long in a function with that memory."""
    return cost({"Lambda GB-milliseconds": megabytes / 1024 * milliseconds}) * 1_000_000


def fitting(points: Sequence[Point], peak_mb: float) -> list[Point]:
    """Those in which the most demanding image leaves enough memory free."""
    return [point for point in points if peak_mb <= FULLEST * point.megabytes]


def cheapest(points: Sequence[Point]) -> Point:
    """The one with the fewest dollars; the smallest of equals."""
    return min(points, key=lambda point: (point.dollars, point.megabytes))


def fastest(points: Sequence[Point]) -> Point:
    """The one with the fewest milliseconds; the smallest of equals."""
    return min(points, key=lambda point: (point.total, point.megabytes))


def goals_of(points: Sequence[Point], *, deployed: int, peak_mb: float) -> list[Goal]:
    """The deployed size holds the most demanding image, and is nearly as cheap and nearly as fast as any that does."""
    ratios = {f"the most demanding image's memory, of the deployed {deployed} MB": (peak_mb / deployed, FULLEST)}
    for lane, of_lane in by_lane(points).items():
        (chosen,) = [point for point in of_lane if point.megabytes == deployed]
        fit = fitting(of_lane, peak_mb) or of_lane
        ratios |= {
            f"{lane} lane, dollars, of the cheapest size's": (chosen.dollars / cheapest(fit).dollars, DEAREST),
            f"{lane} lane, milliseconds, of the fastest size's": (chosen.total / fastest(fit).total, SLOWEST),
        }
    return [Goal(name=name, value=round(value, 3), limit=limit) for name, (value, limit) in ratios.items()]


def table(points: Sequence[Point], *, deployed: int, peak_mb: float) -> list[str]:
    """The lines of the table, and each lane's best sizes."""
    lines = [f"{'lane':<8}{'MB':>6}{'vCPUs':>7}{'median ms':>11}{'worst ms':>10}{'$ a million':>13}"]
    for lane, of_lane in by_lane(points).items():
        fit = fitting(of_lane, peak_mb)
        for point in of_lane:
            remarks = ["deployed"] * (point.megabytes == deployed) + ["too small"] * (point not in fit)
            lines.append(
                f"{lane:<8}{point.megabytes:>6}{share_of(point.megabytes):>7.2f}{point.median:>11.0f}"
                f"{point.worst:>10.0f}{point.dollars:>13.2f}  {', '.join(remarks)}".rstrip()
            )
        if fit:
            lines.append(f"{lane:<8}cheapest: {cheapest(fit).megabytes} MB; fastest: {fastest(fit).megabytes} MB")
    return lines


def by_lane(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Each lane's points."""
    lanes = dict.fromkeys(point.lane for point in points)
    return {lane: [point for point in points if point.lane == lane] for lane in lanes}
