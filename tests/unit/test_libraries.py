"""The list of the libraries in the layers, and what `make outdated` says about it."""

import json
import re
import subprocess
import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from checks.libraries import LIST, LOCKS, ListedLibrary, differences, installed, listed, not_compared, pinned
from checks.outdated import NotRun, direct_dependencies, newer, report, vulnerable

PROJECT = tomllib.loads(Path("pyproject.toml").read_text())
PACKAGES = {name: version for lock in LOCKS for name, version in pinned(lock).items()}
TODAY = date(2026, 11, 26)


def audited(*, without: Sequence[str] = (), skipped: Sequence[str] = (), **vulnerabilities: str) -> str:
    """What pip-audit prints."""
    return json.dumps({
        "dependencies": [
            {"name": name, "skip_reason": "Dependency not found on PyPI"}
            if name in skipped
            else {
                "name": name,
                "version": version,
                "vulns": [{"id": vulnerabilities[name]}] if name in vulnerabilities else [],
            }
            for name, version in PACKAGES.items()
            if name not in without
        ]
    })  # fmt: skip


class Programs:
    """uv and pip-audit, each with what it prints, or not installed."""

    def __init__(self, *, uv: str | None = "", audit: str | None = "", errors: str = "", code: int = 0) -> None:
        self.said = {"uv": uv, "pip-audit": audit}
        self.errors, self.code = errors, code

    def run(self, command: Sequence[str], _: str) -> subprocess.CompletedProcess[str]:
        said = self.said[Path(command[0]).name]
        if said is None:
            raise FileNotFoundError(2, "No such file or directory")
        return subprocess.CompletedProcess(command, self.code, said, self.errors)


def newest(**versions: str) -> str:
    """What uv prints: the newest version of everything that is asked for."""
    names = {name for packages in direct_dependencies(PROJECT).values() for name in packages} | PACKAGES.keys()
    return "".join(f"{name}=={versions.get(name, PACKAGES.get(name, '1'))}\n" for name in names)


def lines(made_by: Programs, listing: str | None = None, today: date = TODAY) -> dict[str, list[str]]:
    made = report(PROJECT, LIST.read_text() if listing is None else listing, today, made_by.run)
    return {title: list(said) for title, said in made.sections}


def test_every_library_in_the_layers_has_the_version_that_is_in_the_list() -> None:
    assert differences(installed(), listed(LIST.read_text())) == []


@pytest.mark.parametrize(
    "library", ["libavif", "dav1d", "liblcms2", "libheif", "libde265", "libvips", "libpng", "mozjpeg"]
)
def test_what_parses_untrusted_files_tells_its_own_version(library: str) -> None:
    (version,) = [version_of for name, version_of in installed().items() if name.endswith(f"/{library}")]
    assert re.match(r"\d+\.\d+", version)


def test_a_lock_that_moves_on_without_the_list_is_told() -> None:
    entries = {
        "pillow": ListedLibrary(version="1", compared=None),
        "pillow/libtiff": ListedLibrary(version="4.7.2", compared=None),
        "pillow/libgone": ListedLibrary(version="1", compared=None),
        "pyvips-binary": ListedLibrary(version="8", compared=None),
        "pyvips-binary/lcms2": ListedLibrary(version="in pyvips-binary 8", compared=None),
        "left": ListedLibrary(version="1", compared=None),
    }
    versions = {"pillow": "2", "pillow/libtiff": "4.7.2", "pillow/libnew": "1", "pyvips-binary": "9"}
    assert sorted(differences(versions, entries)) == [
        "left: in the list and in no layer",
        "pillow/libgone: in pillow 2 is installed, the list has 1",
        "pillow/libnew: 1 is installed, and not in the list",
        "pillow: 2 is installed, the list has 1",
        "pyvips-binary/lcms2: in pyvips-binary 9 is installed, the list has in pyvips-binary 8",
        "pyvips-binary: 9 is installed, the list has 8",
    ]


@pytest.mark.guards("outdated-library-due-date")
def test_a_library_is_due_after_45_days_and_from_the_first_day_if_it_was_never_compared() -> None:
    entries = {
        "fresh": ListedLibrary(version="1", compared=date(2026, 10, 12)),
        "old": ListedLibrary(version="2", compared=date(2026, 10, 11)),
        "new": ListedLibrary(version="3", compared=None),
    }
    assert not_compared(entries, TODAY) == ["old (2): last on 2026-10-11", "new (3): never"]


def test_what_is_newer_is_told_for_direct_dependencies_and_all_of_the_layers() -> None:
    locked = {"layers": {"pillow": "13.0.0", "six": "1.17.0"}, "dev": {"pillow": "13.0.0"}}
    said = newer(locked, Programs(uv="pillow==13.1.0\nsix==1.17.0\n").run)
    assert said == ["pillow 13.0.0 → 13.1.0 (layers)", "pillow 13.0.0 → 13.1.0 (dev)"]
    assert {"boto3", "pydantic"} <= direct_dependencies(PROJECT)[LOCKS[0]]
    assert {"moto", "uvicorn"} <= direct_dependencies(PROJECT)[Path("requirements/dev.txt")]


@pytest.mark.guards("outdated-omission-told", case="half an answer")
@pytest.mark.guards("outdated-index-failure-told", case="no network")
@pytest.mark.parametrize(
    ("programs", "why"),
    [
        (Programs(uv=None), "uv did not start: No such file or directory"),
        (Programs(uv="", code=2, errors="error: no\n  cause: dns error\n"), "cause: dns error"),
        (Programs(uv="six==1.17.0\n"), "uv did not say what is the newest of pillow"),
    ],
    ids=["not installed", "no network", "half an answer"],
)
def test_an_index_that_does_not_answer_is_told_and_nothing_counts_as_up_to_date(programs: Programs, why: str) -> None:
    with pytest.raises(NotRun, match=why):
        newer({"layers": {"pillow": "13.0.0", "six": "1.17.0"}}, programs.run)
    assert lines(programs)["Newer on the package index"][0].startswith("not asked: ")


@pytest.mark.guards("outdated-empty-audit-told", case="a service that knows no package")
@pytest.mark.parametrize(
    ("programs", "why"),
    [
        (Programs(audit=None), "pip-audit did not start: No such file or directory"),
        (Programs(audit="", code=1, errors="ConnectionError: cannot resolve\n"), "cannot resolve"),
        (Programs(audit=audited(skipped=list(PACKAGES))), "Dependency not found on PyPI"),
    ],
    ids=["not installed", "no network", "a service that knows no package"],
)
def test_an_audit_that_did_not_run_is_told_and_never_passes(programs: Programs, why: str) -> None:
    with pytest.raises(NotRun, match=why):
        vulnerable(programs.run)
    assert lines(programs)["Known vulnerabilities, by pip-audit"] == [f"not run: {why}"] or why == "cannot resolve"


def test_an_audit_names_what_it_found_and_what_it_left_out() -> None:
    said = audited(pillow="CVE-1", skipped=["six"], without=["cffi"])
    assert vulnerable(Programs(audit=said, code=1).run) == (
        ["pillow 13.0.0: CVE-1"],
        "not run for cffi, six: it was left out",
    )
    assert vulnerable(Programs(audit=audited()).run) == ([], "")


def test_a_release_may_have_neither_a_library_that_is_due_nor_a_known_vulnerability_nor_a_wrong_list() -> None:
    sound = "".join(
        f'["{name.replace("/", '".bundles."')}"]\nversion = "{version}"\ncompared = {TODAY}\n'
        for name, version in installed().items()
    )

    def is_unfit(listing: str = sound, today: date = TODAY, **said: str) -> bool:
        return report(PROJECT, listing, today, Programs(uv=newest(), audit=audited(**said)).run).is_unfit

    assert not is_unfit()
    assert not report(PROJECT, sound, TODAY, Programs(uv=newest(pillow="99"), audit=None).run).is_unfit
    assert is_unfit(today=date(2027, 1, 11))
    assert is_unfit(pillow="CVE-1")
    assert is_unfit(sound.replace('version = "1.23.6"', 'version = "1.23.0"'))
