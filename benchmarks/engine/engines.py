"""The engines that are compared, and the processes that run them, all on one core."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, cast

from benchmarks.engine.jobs import Job, request_of
from benchmarks.engine.sources import Source
from checks import node_packages
from repository.report import ROOT

SHARP = Path(__file__).parent / "sharp"
SHARP_INSTALLED = ROOT / ".darkroom" / "bench-sharp"


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One way to do the job. `only_wide_gamut`: it differs from its sibling only if colours are converted. `tree` is
    the checkout whose product is measured. The wheels of pyvips and sharp have no decoder for HEIC."""

    name: str
    title: str
    tree: Path = ROOT
    needs_node: bool = False
    only_wide_gamut: bool = False
    only_jpegs: bool = False
    reads_heic: bool = False

    def runs_on(self, source: Source) -> bool:
        if source.path.suffix.lower() == ".heic" and not self.reads_heic:
            return False
        is_jpeg = source.path.suffix.lower() in (".jpg", ".jpeg")
        return (source.is_wide_gamut or not self.only_wide_gamut) and (is_jpeg or not self.only_jpegs)


DARKROOM = Engine(name="darkroom", title="Darkroom", reads_heic=True)
PILLOW = Engine(name="pillow", title="Pillow, done right", reads_heic=True)
PYVIPS = Engine(name="pyvips", title="pyvips")
SHARP_CASCADE = Engine(name="sharp-cascade", title="sharp, cascade", needs_node=True)
SHARP_PER_VARIANT = Engine(name="sharp-per-variant", title="sharp, per variant", needs_node=True)

LEAST = Engine(name="least", title="the least work", only_jpegs=True)
"""No engine, but what one with these codecs and this quality cannot go below: see `least.py`."""

ENGINES = (
    Engine(name="naive-pillow", title="Pillow, naive", reads_heic=True),
    PILLOW,
    PYVIPS,
    SHARP_PER_VARIANT,
    Engine(name="sharp-colours-last", title="sharp, colours last", needs_node=True, only_wide_gamut=True),
    SHARP_CASCADE,
    DARKROOM,
)


_EARLIER = "-earlier"


def darkroom_at(tree: Path) -> Engine:
    """Darkroom's code in another checkout, with this one's libraries."""
    return Engine(name=f"{DARKROOM.name}{_EARLIER}", title=f"Darkroom at {tree.name}", tree=tree)


def install_sharp() -> None:
    """Installs sharp from its lock file if it is not there yet. Raises NoNodePackages."""
    node_packages.install(SHARP, SHARP_INSTALLED)


@contextlib.contextmanager
def pinned(core: int) -> Iterator[None]:
    """Within this block, new processes run on `core` alone, from their first thread on."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One job: its CPU time in the whole process, the variants' bytes, and the process's peak memory."""

    cpu_ms: float
    sizes: Mapping[str, int]
    peak_mb: float


class EngineFailed(Exception):
    """A worker exited or gave an invalid answer; its own output is on standard error."""


class Worker:
    """A process that runs one engine. `imported_mb` is its peak memory before the first job."""

    def __init__(self, engine: Engine, *, core: int) -> None:
        self.engine = engine
        with pinned(core):
            self._process = subprocess.Popen(
                _command(engine),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=_environment(engine),
                cwd=ROOT,
            )
        self._requests, self._answers = cast(IO[str], self._process.stdin), cast(IO[str], self._process.stdout)
        try:
            hello = self._answer()
        except EngineFailed:
            self.close()
            raise
        self.imported_mb: float = hello["peak_mb"]

    def run(self, source: Source, job: Job, *, save: Path | None = None) -> Ran:
        """Runs one job, and writes the variants to the folder `save`, by their names, if there is one."""
        answer = self._asked(request_of(job, str(source.path), save=None if save is None else str(save)))
        return Ran(cpu_ms=answer["cpu_ms"], sizes=answer["bytes"], peak_mb=answer["peak_mb"])

    def versions(self) -> Mapping[str, str]:
        """The libraries that do the work."""
        versions: Mapping[str, str] = self._asked({"versions": True})["versions"]
        return versions

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            self._requests.write(json.dumps(request) + "\n")
            self._requests.flush()
        except BrokenPipeError:
            raise self._failed() from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise self._failed()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _failed(self) -> EngineFailed:
        return EngineFailed(f"{self.engine.title} ended in the middle of its work: its last words are above")


def bare_interpreter_megabytes(engine: Engine) -> float:
    """The peak memory of the engine's interpreter when it does nothing at all."""
    if engine.needs_node:
        command = ["node", "-e", 'process.stdout.write(fs.readFileSync("/proc/self/status", "utf8"))']
    else:
        command = [sys.executable, "-c", "print(open('/proc/self/status').read())"]
    status = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def _command(engine: Engine) -> list[str]:
    if engine.needs_node:
        return ["node", str(SHARP / "worker.cjs"), engine.name]
    return [sys.executable, "-m", "benchmarks.engine.worker", engine.name.removesuffix(_EARLIER)]


def _environment(engine: Engine) -> dict[str, str]:
    paths = os.pathsep.join(str(path) for path in (engine.tree / "layers" / "core", ROOT))
    return os.environ | {
        "NODE_PATH": str(SHARP_INSTALLED / "node_modules"),
        "PYTHONPATH": paths,
        "VIPS_CONCURRENCY": "1",
    }
