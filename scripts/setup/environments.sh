#!/bin/sh
# Creates the Python environments under .darkroom/venvs from their lock files; does nothing if they are up to date.
# Usage: environments.sh [dev] [emulator] [sam] [runtime] [bench] [peers] [audit] [node]   (the first four by default)
#   dev       the product's packages, the command line, the tests and the checks
#   emulator  only the embedded AWS
#   sam       only AWS SAM CLI (its pins conflict with all others)
#   runtime   only Lambda's runtime client: what a function has besides its own bundle
#   bench     the image libraries and the picture metrics, for benchmarks/
#   peers     Celery, Pillow and a Valkey server, for benchmarks/peers
#   audit     only pip-audit
#   node      only Node.js and npm, for what checks the page's modules
set -eu
cd "$(dirname "$0")/../.."
venvs=.darkroom/venvs
python_version=$(cat .python-version)
mkdir -p "$venvs"

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

case "$(uname -s)-$(uname -m)" in
Linux-x86_64 | Linux-aarch64 | Linux-arm64) ;;
*)
    # The command line talks to deployed stacks from macOS, too.
    [ "$(uname -s) $*" = "Darwin dev" ] ||
        fail "the local stack, builds and tests need Linux on x86_64 or arm64, and this is $(uname -s) on $(uname -m).
Use a Linux container or virtual machine instead (a devcontainer, WSL 2, Lima, Codespaces)."
    ;;
esac

# One setup at a time per checkout: two concurrent `make` would build the same environment twice.
if [ -z "${DARKROOM_SETUP_LOCKED:-}" ] && command -v flock >/dev/null 2>&1; then
    DARKROOM_SETUP_LOCKED=1 exec flock "$venvs/.lock" "$0" "$@"
fi

# Any Python 3 that can create an environment will do: it only installs uv, which then finds or fetches the right Python.
install_uv() {
    uv_lock=$(cksum <requirements/uv.txt)
    if [ "$(cat "$venvs/uv/.stamp" 2>/dev/null)" = "$uv_lock" ]; then
        uv=$venvs/uv/bin/uv
        return
    fi
    for python in "python$python_version" python3 /usr/bin/python3; do
        "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || continue
        rm -rf "$venvs/uv"
        "$python" -m venv "$venvs/uv" || continue
        "$venvs/uv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt ||
            fail "pip could not install uv: the message above says why. Check that this machine reaches a Python package index."
        printf '%s' "$uv_lock" >"$venvs/uv/.stamp"
        uv=$venvs/uv/bin/uv
        return
    done
    uv=$(command -v uv) || fail "found no Python 3 with the venv module (on Debian and Ubuntu: apt install python3-venv), and no uv."
}

make_environment() {
    name=$1 lock=requirements/$1.txt
    shift
    [ -f "$lock" ] || fail "there is no environment named '$name': see the top of scripts/setup/environments.sh"
    # Functions write no bytecode; Lambda's image has that of its runtime client, beside the sources.
    [ "$name" != runtime ] || set -- --compile-bytecode
    want="$(cksum <"$lock") python$python_version${*:+ $*}"
    [ "$(cat "$venvs/$name/.stamp" 2>/dev/null)" = "$want" ] && return
    [ -n "${uv:-}" ] || install_uv
    printf 'setup: installing %s\n' "$name" >&2
    rm -rf "${venvs:?}/$name"
    "$uv" venv --quiet --python "$python_version" "$venvs/$name" ||
        fail "uv found no Python $python_version and could not fetch one: install Python $python_version and run this again."
    env -u PYTHONPYCACHEPREFIX "$uv" pip install --quiet "$@" --require-hashes --python "$venvs/$name/bin/python" -r "$lock" ||
        fail "could not install $lock: the message above says why."
    # The stamp comes last: an interrupted installation has none and is redone.
    printf '%s' "$want" >"$venvs/$name/.stamp"
}

if [ "${1:-}" = --uv ]; then # `make lock` only needs uv
    install_uv
    exit 0
fi
[ $# -gt 0 ] || set -- dev emulator sam runtime
for name in "$@"; do make_environment "$name"; done
