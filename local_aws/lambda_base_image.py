"""Builds a substitute for AWS's Lambda base image from this machine's own Python, so that no image registry is needed.

Its layout is that of public.ecr.aws/lambda/python:3.13 as far as SAM CLI, the runtime client or a function can tell:
Python in /var/lang, the runtime client in /var/runtime, and a shell with which SAM CLI adds its emulator and the
layers. Two things differ. There is no boto3 in /var/runtime, although AWS's image has one: our functions bring a pinned
boto3 in a layer, and if that were forgotten, it should be missing here rather than be another version. And the image
uses this machine's libc.
"""

import hashlib
import io
import json
import os
import platform
import shutil
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from local_aws import docker_engine
from local_aws.docker_engine import NoDockerEngine
from local_aws.project import given

_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
_LABEL = "local-aws.stand-in"

# SAM CLI's Dockerfile moves, copies and removes what it adds; the other commands are for looking around in a container.
_COMMANDS = ("sh", "mv", "cp", "rm", "chmod", "mkdir", "ls", "cat", "env")
# What a manylinux wheel may expect of the machine (PEP 600), if Amazon Linux has it too.
_EXPECTED_LIBRARIES = (
    *("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libresolv.so.2"),
    *("libnss_dns.so.2", "libnss_files.so.2", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1"),
)
# Parts of a Python installation that no function uses and that make up most of its size.
_LEFT_OUT = frozenset({"ensurepip", "idlelib", "site-packages", "test", "tkinter", "turtledemo"})
_LEFT_OUT_SUFFIXES = (".a", ".o", ".opt-1.pyc", ".opt-2.pyc")
_LEFT_OUT_MODULES = ("_tkinter.", "_test", "_xxtest", "xxlimited", "xxsubtype")

_FACTS = """
import json, sys, sysconfig
print(json.dumps([sys.base_prefix, sysconfig.get_path("purelib"), sysconfig.get_python_version()]))
"""
_BOOTSTRAP = """#!/bin/sh
export AWS_EXECUTION_ENV=AWS_Lambda_python{version}
# The order in which AWS's runtime searches: the function, its layers, the runtime.
export PYTHONPATH="$LAMBDA_TASK_ROOT:/opt/python/lib/python{version}/site-packages:/opt/python:$LAMBDA_RUNTIME_DIR"
exec /var/lang/bin/python{version} -m awslambdaric "$_HANDLER"
"""
_ENTRYPOINT = """#!/bin/sh
# SAM CLI starts its runtime interface emulator itself, and that starts the bootstrap; `docker run` comes this way.
export _HANDLER="$1"
[ -n "${AWS_LAMBDA_RUNTIME_API:-}" ] || exec /var/rapid/aws-lambda-rie /var/runtime/bootstrap
exec /var/runtime/bootstrap
"""
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nsbx_user1051:x:1051:1051::/tmp:/bin/sh\n",
    "etc/group": "root:x:0:\nsbx_user1051:x:1051:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
_FOLDERS = ("dev", "opt", "proc", "root", "sys", "var/rapid", "var/task")
_CERTIFICATES = (
    Path("/etc/ssl/certs/ca-certificates.crt"),  # Debian, Alpine, Arch
    Path("/etc/pki/tls/certs/ca-bundle.crt"),  # Fedora, Amazon Linux
)


class ImageNotBuilt(Exception):
    """The image could not be built; the message says why."""


@dataclass(frozen=True, kw_only=True)
class _Runtime:
    """The interpreter that runs functions, with the runtime client next to it."""

    prefix: Path
    version: str
    site_packages: Path
    fingerprint: str


def host_architecture() -> str:
    """This machine's architecture, by Lambda's name for it."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def ensure() -> str:
    """Build the image unless it exists and its inputs are unchanged; return its name.

    It also gets AWS's name if no image of AWS's has it, because `sam local invoke` asks for that name.
    """
    docker_engine.host()
    runtime = _runtime(given().function_python)
    name = f"local-aws/lambda-python:{runtime.version}-{host_architecture()}"
    real_name = f"public.ecr.aws/lambda/python:{runtime.version}-{host_architecture()}"
    if _label(name) != runtime.fingerprint:
        _import(runtime, name)
    if _label(real_name) not in (None, runtime.fingerprint):
        docker_engine.docker("tag", name, real_name)
    return name


def prune() -> None:
    """Remove leftovers of earlier invocations: containers after an interrupt, and images that newer ones replaced.

    Each such image would take up some hundred megabytes.
    """
    for kind in ("container", "image"):
        docker_engine.docker(kind, "prune", "--force", "--filter", f"label={_LABEL}")


def _runtime(python: Path) -> _Runtime:
    if not python.exists():
        raise ImageNotBuilt(f"{python} does not exist: run {given().setup} runtime first.")
    facts = subprocess.run([python, "-c", _FACTS], check=True, capture_output=True)
    prefix, site_packages, version = json.loads(facts.stdout)
    prefix, site_packages = Path(prefix), Path(site_packages)
    binary = prefix / "bin" / f"python{version}"
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for file in (binary, *sorted(prefix.glob("lib/libpython*"))):
        digest.update(f"{file} {file.stat().st_size} {file.stat().st_mtime_ns}\n".encode())
    for record in sorted(site_packages.glob("*.dist-info/RECORD")):
        digest.update(record.read_bytes())
    return _Runtime(prefix=prefix, version=version, site_packages=site_packages, fingerprint=digest.hexdigest()[:32])


def _import(runtime: _Runtime, name: str) -> None:
    """Stream the root file system into `docker import`."""
    root = _root_file_system(runtime)
    library_folders = sorted(
        {f"/{Path(path).parent}" for path in root if ".so" in path and not path.startswith("var/")}
    )
    environment = {
        "LANG": "en_US.UTF-8",
        "TZ": ":/etc/localtime",
        "PATH": "/var/lang/bin:/usr/local/bin:/usr/bin:/bin:/opt/bin",
        "LD_LIBRARY_PATH": ":".join(["/var/lang/lib", *library_folders, "/var/runtime", "/var/task/lib", "/opt/lib"]),
        "LAMBDA_TASK_ROOT": "/var/task",
        "LAMBDA_RUNTIME_DIR": "/var/runtime",
    }
    changes = [
        *(f"ENV {variable}={value}" for variable, value in environment.items()),
        "WORKDIR /var/task",
        'ENTRYPOINT ["/lambda-entrypoint.sh"]',
        f"LABEL {_LABEL}={runtime.fingerprint}",
    ]
    options = [option for change in changes for option in ("--change", change)]
    with subprocess.Popen(
        ["docker", "import", *options, "-", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as importing:
        assert importing.stdin is not None and importing.stderr is not None  # noqa: S101 -- both are pipes
        try:
            _write_tar(importing.stdin, root)
            importing.stdin.close()
        except BrokenPipeError:
            pass  # docker says why, below
        complaint = importing.stderr.read().decode(errors="replace").strip()
    if importing.returncode != 0:
        raise ImageNotBuilt(f"docker import failed: {complaint}")


def _root_file_system(runtime: _Runtime) -> dict[str, Path | str]:
    """Every file of the image: its path, and the file of this machine or the text that it contains."""
    root: dict[str, Path | str] = dict(_FILES)
    root["var/runtime/bootstrap"] = _BOOTSTRAP.format(version=runtime.version)
    root["lambda-entrypoint.sh"] = _ENTRYPOINT
    root["etc/ssl/certs/ca-certificates.crt"] = next(filter(Path.exists, _CERTIFICATES), "")
    root.update(_tree(runtime.prefix / "bin" / f"python{runtime.version}", runtime.prefix, "var/lang"))
    root.update(_tree(runtime.prefix / "lib" / f"python{runtime.version}", runtime.prefix, "var/lang"))
    root.update(_tree(runtime.site_packages, runtime.site_packages, "var/runtime"))
    for command in _COMMANDS:
        executable = shutil.which(command)
        if executable is None:
            raise ImageNotBuilt(f"This machine has no `{command}` command to put into the image.")
        root[f"bin/{command}"] = Path(executable)

    dynamic = [file for path, file in root.items() if isinstance(file, Path) and (".so" in path or "bin/" in path)]
    needed = set(_needed_libraries(dynamic))
    # glibc keeps its parts in one folder; a compiler's library may be in another.
    folders = sorted({library.parent for library in needed})
    needed.update(folder / name for folder in folders for name in _EXPECTED_LIBRARIES if (folder / name).exists())
    for library in needed:
        # libpython moves with Python, if this Python was built with one.
        inside = library.is_relative_to(runtime.prefix)
        root[f"var/lang/{library.relative_to(runtime.prefix)}" if inside else str(library).lstrip("/")] = library
    return root


def _tree(source: Path, base: Path, below: str) -> Iterator[tuple[str, Path]]:
    """The files at or below `source`, at their paths in the image, which `base` here maps to."""
    if source.is_file():
        yield f"{below}/{source.relative_to(base)}", source
        return
    for folder, folders, files in os.walk(source):
        # Only Python's own tree has parts to leave out: a package may well have a folder named `test`.
        # config-3.13-*/ is what a C compiler needs to embed Python.
        folders[:] = [
            name for name in folders if source == base or not (name in _LEFT_OUT or name.startswith("config-"))
        ]
        for name in files:
            if not name.endswith(_LEFT_OUT_SUFFIXES) and not name.startswith(_LEFT_OUT_MODULES):
                file = Path(folder, name)
                yield f"{below}/{file.relative_to(base)}", file


def _needed_libraries(files: Iterable[Path]) -> Iterator[Path]:
    """The shared libraries of this machine that these files need, the loader included (ldd(1))."""
    listing = subprocess.run(["ldd", *files], check=False, capture_output=True).stdout.decode()
    for line in listing.splitlines():
        if "not found" in line:
            missing = line.split()[0]
            raise ImageNotBuilt(f"A library that Python needs is not on this machine: {missing}")
        # "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)", or for the loader "/lib64/ld-linux-x86-64.so.2 (0x…)"
        words = line.split("=>")[-1].split()
        if line.startswith("\t") and words and words[0].startswith("/"):
            yield Path(words[0])


def _write_tar(stream: IO[bytes], root: Mapping[str, Path | str]) -> None:
    """Make everything owned by root and readable by all, and replace links by their targets."""
    with tarfile.open(fileobj=stream, mode="w|", dereference=True) as archive:
        for folder in (*_FOLDERS, "tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(entry)
        for path, content in sorted(root.items()):
            entry = tarfile.TarInfo(path)
            if isinstance(content, str):
                data = content.encode()
                entry.size, entry.mode = len(data), 0o755 if data.startswith(b"#!") else 0o644
                archive.addfile(entry, io.BytesIO(data))
            else:
                facts = content.stat()
                entry.size, entry.mode = facts.st_size, 0o755 if facts.st_mode & stat.S_IXUSR else 0o644
                entry.mtime = int(facts.st_mtime)  # by which Python recognises a stale compiled module
                with content.open("rb") as file:
                    archive.addfile(entry, file)


def _label(image: str) -> str | None:
    """The fingerprint of an image: "" if none exists, None for an image that is not ours."""
    wanted = f'{{{{with .Config}}}}{{{{index .Labels "{_LABEL}"}}}}{{{{end}}}}'
    try:
        label = docker_engine.docker("image", "inspect", "--format", wanted, image)
    except subprocess.CalledProcessError:
        return ""
    return label.strip() or None


def main() -> int:
    """Build the image if necessary and print its name."""
    try:
        print(ensure())  # noqa: T201
    except (NoDockerEngine, ImageNotBuilt) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
