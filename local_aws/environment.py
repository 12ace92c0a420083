"""The environment variables of the local stack's processes: an explicit list, without any ambient AWS setting."""

import os
from collections.abc import Mapping
from pathlib import Path

from local_aws.paths import State
from local_aws.project import given
from local_aws.stacks.record import ACCESS_KEY_ID, write_private

REGION = "us-east-1"
NOWHERE = "http://127.0.0.1:9"
"""The discard port, where nothing answers: the endpoint of what must reach nothing."""

# What a process needs from the machine: user, paths, locale, and how pip and uv reach their index.
_KEPT = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ",
        "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CI",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
        "PYENV_ROOT", "PYENV_VERSION", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_BIN_HOME",
    }
)  # fmt: skip
_KEPT_PREFIXES = ("LC_", "PIP_", "UV_")
_LOOPBACK = "127.0.0.1,localhost"


def child_environment(state: State, ambient: Mapping[str, str] | None = None, **further: str) -> dict[str, str]:
    """The whole environment of a child process; its AWS settings point to the local stack and nowhere else."""
    ambient = os.environ if ambient is None else ambient
    kept = {
        name: value
        for name, value in ambient.items()
        if name in {*_KEPT, given().state_variable} or name.startswith(_KEPT_PREFIXES)
    }
    without_proxy = ",".join(filter(None, [ambient.get("no_proxy") or ambient.get("NO_PROXY"), _LOOPBACK]))
    return {
        **kept,
        "NO_PROXY": without_proxy,
        "no_proxy": without_proxy,
        "TMPDIR": str(state.temporary),
        # Compiled modules save SAM CLI two thirds of its start; here they litter no source folder.
        "PYTHONPYCACHEPREFIX": str(given().bytecode),
        **aws_settings(state),
        **further,
    }


def aws_settings(state: State) -> dict[str, str]:
    """The AWS settings that point to the local stack: a profile in a separate file, and no other credentials."""
    return {
        "AWS_CONFIG_FILE": str(state.aws_config),
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_PROFILE": given().stack_name,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def write_aws_config(state: State, endpoint_url: str, secret: str) -> None:
    """Define the profile to which samconfig.toml's `local` environment deploys; it exists only in this file, which only
    its owner may read. The secret is the emulator's of this run."""
    state.aws_config.parent.mkdir(parents=True, exist_ok=True)
    write_private(
        state.aws_config,
        f"[profile {given().stack_name}]\n"
        f"region = {REGION}\n"
        f"endpoint_url = {endpoint_url}\n"
        f"aws_access_key_id = {ACCESS_KEY_ID}\n"
        f"aws_secret_access_key = {secret}\n",
    )


def enter(state: State) -> None:
    """Give this process the same environment, so that its own AWS clients cannot leave the local stack either."""
    clean = child_environment(state)
    del clean["TMPDIR"]
    os.environ.clear()
    os.environ.update(clean)


def with_first_on_path(environment: Mapping[str, str], *folders: Path) -> dict[str, str]:
    """The environment with `folders` first on the search path."""
    return {**environment, "PATH": os.pathsep.join([*map(str, folders), environment.get("PATH", os.defpath)])}


def interpreter_folder() -> Path:
    """The folder of a `python3.13` with pip, whatever Python the machine has: that of SAM CLI's environment."""
    return given().sam.parent
