"""The tables for people: plain text, aligned."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.engine import dollars
from benchmarks.engine.engines import DARKROOM, LEAST, SHARP_CASCADE, Engine
from benchmarks.engine.findings import Findings, Judged, Verdict, verdicts
from benchmarks.engine.jobs import ENCODING, J1, J3, J4, PNG
from benchmarks.engine.memory import LATER, Held
from benchmarks.engine.ratios import ratio_of
from benchmarks.engine.timing import Cell, Timed
from repository.report import Goal


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, the first of which is the header: the first column is left-aligned, the others right-aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def of_times(cell: Cell, engines: Sequence[Engine], timed: Timed) -> str:
    """One cell's times alone, and the ratios by order."""
    rows = [("engine", "CPU ms", "quartiles", "× Darkroom", "forward", "reversed", "bytes")]
    for standing in verdicts(cell, engines, timed):
        sizes = " ".join(str(size) for size in timed.sizes[cell.name, standing.engine.name].values())
        by_order = f"{standing.forward_ratio:.3f}", f"{standing.reversed_ratio:.3f}"
        rows.append((*_time(standing), *by_order, sizes))
    return f"\n{_heading(cell)}\n{aligned(rows)}"


def of_cell(cell: Cell, findings: Findings) -> str:
    """One cell's times, with the score and size of each variant."""
    names = [variant.name for variant in cell.job.variants]
    rows = [("engine", "CPU ms", "quartiles", "× Darkroom", *(f"{name} score KB" for name in names))]
    for standing in verdicts(cell, findings.engines, findings.timed):
        variants = findings.judged[cell.name, standing.engine.name]
        rows.append((*_time(standing), *(_variant(variants[name]) for name in names)))
    full_decode = findings.full_decodes[cell.name]
    rows.append(("Darkroom, full decode", "", "", "", *(_variant(full_decode[name]) for name in names)))
    return f"\n{_heading(cell)}: {'; '.join(ENCODING.of_job(cell.job))}\n{aligned(rows)}"


def of_earlier(cells: Sequence[Cell], earlier: Engine, timed: Timed) -> str:
    """Each cell's times by the code of two commits; bytes that differ are marked."""
    rows: list[tuple[str, ...]] = [("", "before, CPU ms", "now", "now ÷ before", "bytes")]
    for cell in cells:
        before, now = ((cell.name, engine.name) for engine in (earlier, DARKROOM))
        rows.append(
            (
                cell.name,
                *(f"{statistics.median(timed.cpu_ms[side]):.1f}" for side in (before, now)),
                f"{ratio_of(timed.cpu_ms[now], timed.cpu_ms[before]):.3f}",
                "as before" if timed.sizes[before] == timed.sizes[now] else "different",
            )
        )
    return f"\nDarkroom beside {earlier.title}\n{aligned(rows)}"


def of_set(findings: Findings) -> str:
    """The set, photo by photo: how many times Darkroom's time sharp's cascade takes, and how many times the least work;
    the worst variant next to a full decode and to the usual encoder; the bytes next to sharp's."""
    rows: list[tuple[str, ...]] = [
        ("sharp, cascade ÷ Darkroom", "J1", "J3", "J4", "PNG", "at most: J1", "J3", "J4", "score", "curve", "bytes")
    ]
    columns: list[list[float | None]] = []
    by_source: dict[str, dict[str, Cell]] = {}
    for cell in findings.cells:
        if cell.source.is_in_set:
            by_source.setdefault(cell.source.name, {})[cell.job.name] = cell
    for name, cells in by_source.items():
        own, sharp = (findings.judged.get((f"{name}:J4", engine.name)) for engine in (DARKROOM, SHARP_CASCADE))
        curve = [value for (cell, _), value in findings.above_curve.items() if cell == f"{name}:J4"]
        worst = [
            judged.score - findings.full_decodes[cell.name][variant].score
            for cell in cells.values()
            for variant, judged in findings.judged.get((cell.name, DARKROOM.name), {}).items()
        ]
        ratios = [_ratio(findings.timed, f"{name}:{job}", engine) for engine, job in _RATIOS]
        columns.append(ratios)
        lengths = [sum(each.size for each in side.values()) for side in (own, sharp) if side is not None]
        rows.append(
            (
                f"{name} · {next(iter(cells.values())).source.megapixels:.1f} MP",
                *map(_written, ratios),
                f"{min(worst):+.1f}" if worst else "",
                f"{min(curve):+.1f}" if curve else "",
                f"{lengths[0] / lengths[1]:.2f}" if len(lengths) == 2 else "",
            )
        )
    for title, of in (("median", statistics.median), ("worst", min)):
        values = ([value for value in column if value is not None] for column in zip(*columns, strict=True))
        rows.append((title, *(_written(of(column) if column else None) for column in values), "", "", ""))
    return f"\nThe set: more than 1 is faster than sharp\n{aligned(rows)}"


_RATIOS = [
    *((DARKROOM, job.name) for job in (J1, J3, J4, PNG)),
    *((LEAST, job.name) for job in (J1, J3, J4)),
]


def _written(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _ratio(timed: Timed, cell: str, engine: Engine) -> float | None:
    own, sharp = timed.cpu_ms.get((cell, engine.name)), timed.cpu_ms.get((cell, SHARP_CASCADE.name))
    # The least work was not measured in the first rounds.
    return None if own is None or sharp is None else ratio_of(sharp[-len(own) :], own)


def of_dollars(findings: Findings) -> str:
    """What a million images of the set cost."""
    rows: list[tuple[str, ...]] = [("engine", "CPU", "a year of storage", "ten views", "together")]
    for engine, million in dollars.of_set(findings, J4.name).items():
        figures = (million.cpu, million.storage, million.transfer, million.total)
        rows.append((engine.title, *(f"{figure:.2f}" for figure in figures)))
    return f"\nDollars for a million images of the set, {J4.title} (arm64, us-east-1, list prices)\n{aligned(rows)}"


def of_memory(findings: Findings) -> str:
    """The peaks in MB by engine and original."""
    titles = []
    for asked in findings.asked:
        titles.append(f"{asked.source.name} {asked.source.megapixels:.0f} MP")
        if asked.again:
            titles.append(f"after {LATER}")
    rows = [("engine", "interpreter", "imported", *titles)]
    for engine in findings.engines:
        mine = [(asked, findings.held.get((asked.source.name, engine.name))) for asked in findings.asked]
        cells = []
        for asked, held in mine:
            cells += _peaks(held, again=asked.again)
        first = mine[0][1]
        if first is not None:
            rows.append((engine.title, f"{first.bare_mb:.0f}", f"{first.imported_mb:.0f}", *cells))
    return f"\nPeak memory of a fresh process after its first job, MB\n{aligned(rows)}"


def of_goals(goals: Sequence[Goal]) -> str:
    """Every goal with its figure."""
    rows = [("goal", "figure", "limit", "")]
    for goal in goals:
        limit = f"{'≥' if goal.at_least else '≤'} {goal.limit:g}"
        rows.append((goal.name, f"{goal.value:.3f}", limit, "holds" if goal.holds else "missed"))
    return f"\n{aligned(rows)}\n"


def _heading(cell: Cell) -> str:
    return f"{cell.name} · {cell.source.title} → {cell.job.title}"


def _time(standing: Verdict) -> tuple[str, str, str, str]:
    spread = standing.spread
    quartiles = f"{spread.lower:.1f} to {spread.upper:.1f}"
    return standing.engine.title, f"{spread.median:.1f}", quartiles, f"{standing.ratio:.2f}"


def _variant(variant: Judged) -> str:
    return f"{variant.score:.1f} {variant.size / 1000:5.0f}"


def _peaks(held: Held | None, *, again: bool) -> list[str]:
    if held is None:
        return ["", ""] if again else [""]
    return [f"{held.first_mb:.0f}", *([f"{held.later_mb:.0f}"] if held.later_mb is not None else [])]
