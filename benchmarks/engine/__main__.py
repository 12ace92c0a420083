"""Measures the engines and writes the table, build/reports/engine.json and the chart: see --help."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.earlier import checkout_of
from benchmarks.engine import chart, goals, memory, quality, rows, table, webp
from benchmarks.engine.engines import (
    DARKROOM,
    ENGINES,
    LEAST,
    SHARP_CASCADE,
    Engine,
    EngineFailed,
    Worker,
    darkroom_at,
    install_sharp,
)
from benchmarks.engine.findings import Findings, Judged
from benchmarks.engine.jobs import J3, J4, PNG
from benchmarks.engine.photos import NoPhotos, free_photos
from benchmarks.engine.sources import AS_IT_IS, SEED, Source, sources, sources_in
from benchmarks.engine.timing import (
    Cell,
    NoSuchCell,
    Stage,
    cells_of,
    measure,
    plan_of,
    variants_folder,
    warm_up,
)
from benchmarks.forms import FOLDER, IS_SHORT, by_form
from checks.node_packages import NoNodePackages
from repository.report import ROOT, write_report

DESCRIPTION = """\
Compares the product's transcode engine with its alternatives: CPU time of the whole process for each image, from bytes
in memory to bytes in memory, in one run, all on one core, interleaved in rounds of which every second one runs
backwards. Next to each time are the variants' sizes and ssimulacra2 scores. The goals are over a set of photos, the
median and the worst. A full run takes about 20 minutes."""

CHART = ROOT / "docs" / "images" / "engine.svg"
CHARTED = ("J4", "J3", "J1", "PNG")
BASE_JOBS = f"{J3.name} and {J4.name}"


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=DESCRIPTION)
    parser.add_argument(
        "--rounds",
        type=even,
        default=by_form(short=2, usual=2, long=6),
        help="rounds of everything: even; 2, or 6 with LONG=1",
    )
    parser.add_argument(
        "--goal-rounds",
        type=even,
        default=by_form(short=2, usual=14, long=60),
        help="further rounds of what the goals look at: even; 14, or 60 with LONG=1",
    )
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the core to measure on")
    parser.add_argument(
        "--photos",
        type=folder,
        default="free",
        metavar="free|none|FOLDER",
        help="the set's photos: two dozen free ones of many kinds, from Debian's packages (free), or your own",
    )
    parser.add_argument("--chart", action="store_true", help=f"refresh {CHART.relative_to(ROOT)}, too")
    parser.add_argument("--webp", action="store_true", help="instead of all that: what WebP's methods cost and give")
    parser.add_argument(
        "--base",
        metavar="COMMIT",
        type=checkout_of,
        help=f"instead of all that: {BASE_JOBS} of the set, beside Darkroom at an earlier commit",
    )
    quick = parser.add_argument_group("a quick look (times alone, no report, no goals)")
    quick.add_argument("--cells", nargs="+", metavar="SOURCE[:JOB]", help="only these, as native:J4 or png")
    quick.add_argument("--engines", nargs="+", choices=[engine.name for engine in ENGINES], help="only these")
    return parser.parse_args(words)


def even(text: str) -> int:
    """An even number of rounds, so that as many go forwards as backwards."""
    if not text.isdecimal() or int(text) < 2 or int(text) % 2:
        raise argparse.ArgumentTypeError(f"the number of rounds must be even and at least 2, not {text}")
    return int(text)


def folder(text: str) -> Path | None:
    """An existing folder, or that of the free photos, fetched."""
    if text == "none":
        return None
    if text == "free":
        try:
            return free_photos()
        except NoPhotos as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return Path(text)


def say(text: str) -> None:
    """Print progress to standard error: standard output is for the result."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main(words: Sequence[str]) -> int:
    """Runs what the command line requests. Returns 1 if an engine failed, or if sharp could not run: it has goals."""
    wanted = arguments(words)
    say("making the originals (build/bench)")
    originals = sources() + (sources_in(wanted.photos) if wanted.photos else ())
    if wanted.base:
        beside_earlier(wanted, originals)
        return 0
    if wanted.webp:
        webp.report([source for source in originals if source.is_in_set and source.path.suffix == ".jpg"], say)
        return 0
    engines: Sequence[Engine] = ENGINES
    missing = ""
    try:
        install_sharp()
    except NoNodePackages as error:
        missing = f"Not compared with sharp, so the goals about it are missed: {error}."
        print(missing, file=sys.stderr)
        engines = [engine for engine in engines if not engine.needs_node]
    try:
        if wanted.cells or wanted.engines:
            quick_look(wanted, originals, engines)
        else:
            full_run(wanted, originals, engines, missing)
    except (EngineFailed, NoSuchCell, quality.WrongVariant) as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if missing else 0


def quick_look(wanted: argparse.Namespace, originals: Sequence[Source], engines: Sequence[Engine]) -> None:
    """Times of a few cells and engines."""
    chosen = [e for e in engines if e == DARKROOM or not wanted.engines or e.name in wanted.engines]
    cells = cells_of(originals, wanted.cells or ())
    with ExitStack() as stack:
        workers = {engine.name: stack.enter_context(Worker(engine, core=wanted.core)) for engine in chosen}
        stage = Stage(name="quick look", plan=plan_of(cells, chosen), rounds=wanted.rounds)
        warm_up(workers, stage.plan, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        timed = measure(workers, [stage], say=lambda _: None)
    for cell in cells:
        print(table.of_times(cell, chosen, timed))


def beside_earlier(wanted: argparse.Namespace, originals: Sequence[Source]) -> None:
    """The same jobs by the code of two commits, photo by photo, in turns."""
    engines = (darkroom_at(wanted.base), DARKROOM)
    cells = [cell for job in (J3, J4) for cell in goals.cells_in_set(cells_of(originals), job.name)]
    with ExitStack() as stack:
        workers = {engine.name: stack.enter_context(Worker(engine, core=wanted.core)) for engine in engines}
        stage = Stage(name="beside an earlier commit", plan=plan_of(cells, engines), rounds=wanted.goal_rounds)
        warm_up(workers, stage.plan, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        timed = measure(workers, [stage], say=say)
    print(table.of_earlier(cells, engines[0], timed))
    reached = goals.goals_beside_earlier(cells, engines[0], timed)
    print(table.of_goals(reached))
    write_report("engine-beside-earlier", seed=SEED, rows=[*rows.earlier_rows(cells, engines, timed)], goals=reached)


def full_run(wanted: argparse.Namespace, originals: Sequence[Source], engines: Sequence[Engine], missing: str) -> None:
    """Everything: times, quality, memory, goals, the report and the chart."""
    findings = measured(wanted, originals, engines)
    for cell in findings.cells:
        if not is_photo(cell):
            print(table.of_cell(cell, findings))
    print(table.of_set(findings))
    print(table.of_dollars(findings))
    print(table.of_memory(findings))
    reached = goals.goals_of(findings)
    print(table.of_goals(reached))
    svg = chart.of_findings(findings, CHARTED)
    for path in [FOLDER / "engine.svg", *([CHART] if wanted.chart and not missing else [])]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(svg)
        print(f"chart: {path.relative_to(ROOT)}")
    if missing:
        print(missing)
    write_report(
        "engine",
        seed=SEED,
        rows=[*rows.time_rows(findings), *rows.dollar_rows(findings), *rows.memory_rows(findings)],
        goals=reached,
        folder=FOLDER,
    )


def is_photo(cell: Cell) -> bool:
    """Whether the cell is of a photo of the set rather than of a generated original: there are many."""
    return cell.source.is_in_set and cell.source.note == AS_IT_IS


def is_judged(cell: Cell, engine: Engine) -> bool:
    """Whether the cell's variants are judged. Of photos, J4 has the variants of J3, and the two rivals are enough."""
    return not is_photo(cell) or (cell.job != J3 and engine in (DARKROOM, SHARP_CASCADE))


def measured(wanted: argparse.Namespace, originals: Sequence[Source], engines: Sequence[Engine]) -> Findings:
    """The measurements; only the times are sensitive to the machine's other work."""
    cells = cells_of(originals)
    plan = plan_of(cells, engines)
    stages = [
        Stage(name="everything", plan=plan, rounds=wanted.rounds),
        Stage(name="the set", plan=goals.plan_of_set(cells, engines), rounds=wanted.goal_rounds),
    ]
    judged: dict[tuple[str, str], Mapping[str, Judged]] = {}
    full_decodes: dict[str, Mapping[str, Judged]] = {}
    above_curve: dict[tuple[str, str], float] = {}
    with tempfile.TemporaryDirectory() as made:
        with ExitStack() as stack:
            workers = {
                engine.name: stack.enter_context(Worker(engine, core=wanted.core)) for engine in (*engines, LEAST)
            }
            say("warming up")
            warm_up(workers, plan, Path(made))
            warm_up(workers, [(cell, [LEAST]) for cell, ran in stages[1].plan if LEAST in ran], Path(made))
            timed = measure(workers, stages, say=say)
            versions = {engine.name: workers[engine.name].versions() for engine in engines}
        for cell, ran in plan:
            to_judge = [engine for engine in ran if is_judged(cell, engine)]
            if not to_judge:
                continue
            say(f"quality: {cell.name}")
            references = quality.references_of(cell.source, cell.job)
            full_decodes[cell.name] = references.full_decodes
            for engine in to_judge:
                left = variants_folder(Path(made), cell, engine)
                may_round = engine == SHARP_CASCADE
                judged[cell.name, engine.name] = quality.judge(left, references, may_round=may_round)
            if cell.source.is_in_set and cell.job == J4:
                own = judged[cell.name, DARKROOM.name]
                for variant in cell.job.variants:
                    usual = references.curve(variant.name, variant.format).score_at(own[variant.name].size)
                    above_curve[cell.name, variant.name] = own[variant.name].score - usual
    asked = memory_of(originals)
    return Findings(
        engines=engines,
        versions=versions,
        core=wanted.core,
        cells=cells,
        timed=timed,
        judged=judged,
        full_decodes=full_decodes,
        asked=asked,
        held=memory.measure(engines, asked, core=wanted.core, say=say),
        above_curve=above_curve,
    )


def memory_of(originals: Sequence[Source]) -> list[memory.Asked]:
    """The cells whose memory is measured."""
    by_name = {source.name: source for source in originals}
    if IS_SHORT:
        return [memory.Asked(source=by_name["native"], job=J4, again=True)]
    return [
        memory.Asked(source=by_name["2mp"], job=J4),
        memory.Asked(source=by_name["native"], job=J4, again=True),
        memory.Asked(source=by_name["24mp"], job=J4),
        memory.Asked(source=by_name["50mp"], job=J4),
        memory.Asked(source=by_name["progressive"], job=J4),
        memory.Asked(source=by_name["png"], job=PNG),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
