"""The figures of docs/benchmarks.md that are counted: each is compared with what its program reports, and put there.

    make documented PROGRAMS="calls webhooks"      after `make bench-calls` and `make bench-webhooks`

With SHORT=1 it takes the reports of the short form, and from these only the figures that all forms have.
Times are not among them: the page names the command that measured them, and its date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from benchmarks.costs.others import WAYS
from benchmarks.forms import FOLDER, IS_SHORT
from repository.report import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"

type Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of the page: the group of `pattern`, which matches once, is `text` of the program's rows.

    With `lasts` it is the same in the short form, so that each run of the tests compares it.
    """

    pattern: str
    text: Callable[[Rows], str]
    lasts: bool = False

    def place(self, page: str) -> tuple[int, int]:
        """Where the page has it. Raises LookupError if that is not once."""
        matches = [*re.finditer(self.pattern, page)]
        if len(matches) != 1:
            raise LookupError(f"docs/benchmarks.md has {self.pattern} {len(matches)} times, and should have it once")
        return matches[0].span(1)


def stale(program: str, rows: Rows, *, short: bool) -> list[str]:
    """What the page says otherwise than the rows, of the short form or of the usual one; a sentence for each."""
    page, stale_figures = PAGE.read_text(), []
    for figure in FIGURES[program]:
        if figure.lasts or not short:
            begin, end = figure.place(page)
            if page[begin:end] != (now := figure.text(rows)):
                stale_figures.append(f"{page[begin:end]} is {now} now, in {figure.pattern}")
    return stale_figures


def refreshed(page: str, program: str, rows: Rows, *, short: bool) -> str:
    """The page with the program's figures that the form has."""
    for figure in FIGURES[program]:
        if figure.lasts or not short:
            begin, end = figure.place(page)
            page = page[:begin] + figure.text(rows) + page[end:]
    return page


def row_with(rows: Rows, **wanted: object) -> Mapping[str, Any]:
    """The row with these values."""
    (row,) = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    return row


def _number(name: str, form: str, **wanted: object) -> Callable[[Rows], str]:
    return lambda rows: format(row_with(rows, **wanted)[name], form)


# ── Each program's ───────────────────────────────────────────────────────────────────────────────────────────────────

_ALONE, _AT_ONCE = "one after another", "eight at once"
_PARTS = {
    "tokens": ("dynamodb:UpdateItem",),
    "the lane's depth and drain and what the tenant stores": ("sqs:GetQueueAttributes", "dynamodb:Query"),
}


def _part(way: str, operations: Sequence[str]) -> Callable[[Rows], str]:
    return lambda rows: f"{sum(row_with(rows, of='POST /images', way=way).get(name, 0) for name in operations):.2f}"


def _image(way: str) -> Callable[[Rows], str]:
    return lambda rows: (
        f"{sum(row_with(rows, of=name, way=way)['calls'] for name in ('POST /images', 'transcode')):.2f}"
    )


def _calls() -> Iterator[Figure]:
    post = r"\| `POST /images` \| "
    yield Figure(pattern=rf"{post}([\d.]+) or", text=_number("calls", ".2f", of="POST /images", way=_ALONE))
    yield Figure(
        pattern=rf"{post}[\d.]+ or, eight at once, ([\d.]+):",
        text=_number("calls", ".2f", of="POST /images", way=_AT_ONCE),
    )
    for name, operations in _PARTS.items():
        yield Figure(pattern=rf"{name} ([\d.]+) or [\d.]+", text=_part(_ALONE, operations))
        yield Figure(pattern=rf"{name} [\d.]+ or ([\d.]+)", text=_part(_AT_ONCE, operations))
    yield Figure(pattern=r"\| a status \| ([\d.]+): row", text=_number("calls", ".2f", of="a status", way=_ALONE))
    yield Figure(
        pattern=r"\| a worker, for each image with four variants \| ([\d.]+) ",
        text=_number("calls", ".2f", of="transcode", way=_ALONE),
    )
    for start, of in (
        (post, "POST /images"),
        (r"\| a status \| ", "a status"),
        (r"\| a worker, for each image with four variants \| ", "transcode"),
    ):
        yield Figure(
            pattern=rf"{start}[^|\n]+ \| ([\d.]+) \|\n",
            text=_number("dollars_a_million", ".2f", of=of, way=_ALONE),
            lasts=True,
        )
    sweep = r"\| a sweep with nothing to do \| "
    for pattern, name, form in (
        (rf"{sweep}(\d+): ", "calls", ".0f"),
        (rf"{sweep}\d+: (\d+) looks at the indexes", "dynamodb:Query", ".0f"),
        (rf"{sweep}[^|]+, (\d+) at queues", "sqs:GetQueueAttributes", ".0f"),
        (rf"{sweep}[^|]+ \| ([\d.]+) \|", "dollars_a_million", ".2f"),
    ):
        yield Figure(pattern=pattern, text=_number(name, form, of="an idle sweep"), lasts=True)
    yield Figure(pattern=r"image takes ([\d.]+) calls", text=_image(_ALONE))
    yield Figure(pattern=r"looks at the lane for itself: ([\d.]+)\.\n", text=_image(_AT_ONCE))


def _reads() -> Iterator[Figure]:
    ways = ("a status", "an image", "a variant", "a page of 1", "a page of 20", "a page of 100", "a filtered page")
    for way in ways:
        row = rf"\| {way} \| "
        yield Figure(pattern=rf"{row}([\d,]+) \| [\d,]+ \|", text=_number("served_per_hour", ",", way=way))
        yield Figure(pattern=rf"{row}[\d,]+ \| ([\d,]+) \|", text=_number("read_units_each", ",", way=way), lasts=True)
        yield Figure(pattern=rf"{row}[\d,]+ \| [\d,]+ \| ([\d.]+) \|", text=_number("dollars_per_hour", ".3f", way=way))


def _delay() -> Iterator[Figure]:
    aligned, scattered, year = "30 days, aligned", "30 days, scattered", "364 days, scattered"
    cells = (
        (r"30 days, all at one instant \| 1,000,000 \| \*\*([\d.]+)\*\*", aligned, 1_000_000, ".2f"),
        (r"\n\| \| 10,000 \| \*\*([\d.]+)\*\*", aligned, 10_000, ".2f"),
        (r"\n\| \| 1,000 \| ([\d.]+) ", aligned, 1_000, ".2f"),
        (r"30 days, scattered evenly \| 100,000 \| ([\d.]+) ", scattered, 100_000, ".2f"),
        (r"364 days, scattered evenly \| 100,000 \| ([\d.]+) ", year, 100_000, ".0f"),
    )
    for pattern, load, images, form in cells:
        yield Figure(pattern=pattern, text=_dollars_of(load, images, form), lasts=images == 1_000)


def _dollars_of(load: str, images: int, form: str) -> Callable[[Rows], str]:
    return lambda rows: format(row_with(rows, load=load, images=images)["dollars"] * 1_000_000 / images, form)


def _attention() -> Iterator[Figure]:
    for shape, start in (("1:1", r"\| square \| "), ("16:9", r"\| 16:9 \| ")):
        for kind, row in (("centre", rf"{start}the middle \| "), ("attention", rf"{start}.*\n\| \| attention \| ")):
            for number, name in enumerate(("mean", "median", "worst")):
                cell = r"(?:\*\*)?[\d.]+(?:\*\*)? \| "
                yield Figure(
                    pattern=rf"{row}(?:{cell}){{{number}}}(?:\*\*)?([\d.]+)",
                    text=_kept(shape, kind, name),
                    lasts=True,
                )
    gains = (
        r"Attention keeps more of (\d+) photographs and less of (\d+) in squares, more of (\d+) and less of (\d+) in"
    )
    for number, (shape, sign) in enumerate((shape, sign) for shape in ("1:1", "16:9") for sign in (1, -1)):
        parts = gains.split(r"(\d+)")
        pattern = "".join(f"{part}{r'(\d+)' if at == number else r'\d+'}" for at, part in enumerate(parts[:-1]))
        yield Figure(pattern=pattern + parts[-1], text=_changed(shape, sign), lasts=True)


def _kept(shape: str, kind: str, name: str) -> Callable[[Rows], str]:
    kinds: Mapping[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "median": median, "worst": min}
    of = kinds[name]
    return lambda rows: f"{of([row[shape][kind] for row in rows]):.3f}"


def _changed(shape: str, sign: int) -> Callable[[Rows], str]:
    return lambda rows: str(sum(sign * (row[shape]["attention"] - row[shape]["centre"]) > 0 for row in rows))


def _page() -> Iterator[Figure]:
    yield Figure(
        pattern=r"The first load has ([\d.]+) KB",
        text=_number("value", ".1f", what="first load, KB compressed"),
        lasts=True,
    )
    yield Figure(pattern=r"KB in (\d+) requests", text=_number("value", "d", what="requests at first load"), lasts=True)
    yield Figure(pattern=r", ([\d.]+) KB with headers", text=_number("value", ".1f", what="with headers, KB"))
    yield Figure(
        pattern=r"never has more than (\d+) elements",
        text=_number("value", "d", what="elements in the document, at most"),
    )


def _webhooks() -> Iterator[Figure]:
    for row, is_bad in ((r"\| without the two \| ", False), (r"\| with them \| ", True)):
        of = {"part": "neighbours", "bad": is_bad}
        yield Figure(pattern=rf"{row}(\d+) ms", text=_number("all_p50", "d", **of))
        yield Figure(pattern=rf"{row}\d+ ms \| ([\d.]+) s", text=_slowest_seconds(of))
        yield Figure(pattern=rf"{row}\d+ ms \| [\d.]+ s \| (\d+) ms", text=_number("steady_p99", "d", **of))
    yield Figure(pattern=r"in which ([\d,]+) deliveries come", text=_number("waited", ",", part="disabled"))
    for part, pattern in (
        ("neighbours", r"A million deliveries cost \$([\d.]+) "),
        ("sample", r"tests play again costs \$([\d.]+)"),
    ):
        yield Figure(pattern=pattern, text=_together(part), lasts=part == "sample")
    yield Figure(
        pattern=r"\(([\d.]+) of it writes of rows\)",
        text=lambda rows: f"{row_with(rows, part='neighbours', bad=True)['dollars']['DynamoDB write units']:.2f}",
    )
    for rate in (1.0, 10.0, 30.0, 100.0, 400.0):
        row, of, lasts = rf"\n\| {rate:.0f} \| ", {"part": "fan-out", "per_second": rate}, rate == 100.0
        yield Figure(pattern=rf"{row}(?:\*\*)?([\d.]+)", text=_number("dollars_a_million", ".2f", **of), lasts=lasts)
        yield Figure(pattern=rf"{row}[\d.*]+ \| ([\d., ]+) \|", text=_batches(of), lasts=lasts)


def _slowest_seconds(of: Mapping[str, Any]) -> Callable[[Rows], str]:
    return lambda rows: f"{row_with(rows, **of)['all_p99'] / 1000:.2f}"


def _together(part: str) -> Callable[[Rows], str]:
    return lambda rows: f"{sum(row_with(rows, part=part, bad=True)['dollars'].values()):.2f}"


def _batches(of: Mapping[str, Any]) -> Callable[[Rows], str]:
    return lambda rows: ", ".join(
        f"{float(f'{row_with(rows, **of)["batch"][name]:.2g}'):g}" for name in ("publish_events", "webhooks", "usage")
    )


def _sweeper() -> Iterator[Figure]:
    rows = (
        (r"\| behind a pile, a lost message is rescued after, median \|", "s", "pile", "rescued_seconds_p50"),
        (r"\| the slowest of forty \|", "s", "pile", "rescued_seconds_worst"),
        (r"\| after ten minutes without SQS, 60,000 images are rescued after \|", "min", "outage", "minutes"),
        (
            r"\| 1,000 deletions a minute: the oldest removal is overdue for \|",
            "s",
            "removals",
            "oldest_overdue_seconds",
        ),
    )
    for row, unit, part, name in rows:
        for place, day in enumerate(("good", "usual", "bad")):
            before = rf"(?: [\d.]+ {unit} \|){{{place}}}"
            yield Figure(pattern=rf"{row}{before} ([\d.]+) {unit} \|", text=_number(name, "g", part=part, day=day))
    yield Figure(
        pattern=r"A sweep with nothing to do makes (\d+) calls",
        text=_number("calls_each", "g", part="idle", megabytes=512, day="usual"),
        lasts=True,
    )
    yield Figure(
        pattern=r"calls, which cost \$([\d.]+) a month",
        text=_idle_dollars,
        lasts=True,
    )


def _idle_dollars(rows: Rows) -> str:
    dollars = row_with(rows, part="idle", megabytes=512, day="usual")["dollars"]
    return f"{sum(of_unit for unit, of_unit in dollars.items() if 'GB-' not in unit):.2f}"


def _costs() -> Iterator[Figure]:
    yield Figure(
        pattern=r"A million uploads and their workers cost \$([\d.]+)",
        text=_number("dollars", ".2f", part="formula"),
        lasts=True,
    )
    for name in ("S3 puts", "Lambda GB-milliseconds", "DynamoDB write units", "Log kilobytes"):
        yield Figure(pattern=rf"\| `{name}` \| ([\d.]+) \|", text=_of_formula(name), lasts=True)
    for way in WAYS:
        written = re.sub(r"(\w+=\w+)", r"`\1`", way)
        for place, (images, month) in enumerate(
            (images, month) for images in ("1000", "100000", "10000000") for month in (1, 12)
        ):
            before = r"[\d,.]+(?: \| |, )" * place
            yield Figure(
                pattern=rf"\| {written} \| {before}([\d,.]+)(?= \||, )",
                text=_of_way(way, month, images),
                lasts=True,
            )


def _of_formula(name: str) -> Callable[[Rows], str]:
    return lambda rows: f"{row_with(rows, part='formula')['lines'][name]:.2f}"


def _of_way(way: str, month: int, images: str) -> Callable[[Rows], str]:
    def text(rows: Rows) -> str:
        dollars = row_with(rows, part="comparison", way=way, month=month)["dollars"][images]
        return f"{dollars:,.0f}" if dollars >= 100 else f"{dollars:.2f}"

    return text


def _peers() -> Iterator[Figure]:
    peers = ("BullMQ, sharp", "Celery, Pillow", "a plain handler, sharp", "Darkroom, local stack")
    for row, name in ((r"killed ten times: lost", "lost"), (r"\n\| … made twice", "made_twice")):
        for place, peer in enumerate(peers):
            yield Figure(
                pattern=rf"{row} \|(?: \d+ \|){{{place}}} (\d+) \|",
                text=_number(name, "d", part="workers killed", peer=peer),
            )


FIGURES: Mapping[str, Sequence[Figure]] = {
    "attention": [*_attention()],
    "calls": [*_calls()],
    "costs": [*_costs()],
    "delay": [*_delay()],
    "page": [*_page()],
    "peers": [*_peers()],
    "reads": [*_reads()],
    "sweeper": [*_sweeper()],
    "webhooks": [*_webhooks()],
}
"""By the program whose report has them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Puts the figures of the last reports into the page; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.documented",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("programs", nargs="+", choices=FIGURES, metavar="PROGRAM", help=", ".join(FIGURES))
    for program in parser.parse_args(arguments).programs:
        rows = json.loads((FOLDER / f"{program}.json").read_text())["rows"]
        for sentence in stale(program, rows, short=IS_SHORT):
            print(f"{program}: {sentence}")
        PAGE.write_text(refreshed(PAGE.read_text(), program, rows, short=IS_SHORT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
