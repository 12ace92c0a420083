"""The running Docker engine, through the `docker` command."""

import os
import shutil
import subprocess

_TIMEOUT_SECONDS = 30


class NoDockerEngine(Exception):
    """No Docker engine answers; the message says what to do."""


def host() -> str:
    """The engine's address, as DOCKER_HOST would give it; raises NoDockerEngine.

    SAM CLI knows DOCKER_HOST and the default socket, but not the contexts of the `docker` command, so we resolve those.
    """
    advice = 'Start Docker, or as root on Debian and Ubuntu: eval "$(scripts/setup/docker_engine.sh start)"'
    if shutil.which("docker") is None:
        raise NoDockerEngine(f"No Docker engine answers: the docker command is not installed. {advice}")
    try:
        docker("version", "--format", "{{.Server.Version}}")
        if named := os.environ.get("DOCKER_HOST"):
            return named
        return docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}").strip()
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        lines = str(error.stderr or error).strip().splitlines()
        raise NoDockerEngine(f"No Docker engine answers: {lines[-1]} {advice}") from None


def bridge_address() -> str:
    """This machine's address on the network of the engine's containers."""
    networks = docker("network", "inspect", "bridge", "--format", "{{range .IPAM.Config}}{{.Gateway}} {{end}}")
    return next((address for address in networks.split() if ":" not in address), "no address")


def docker(*arguments: str) -> str:
    """The output of a `docker` command; raises CalledProcessError."""
    command = ["docker", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS).stdout
