#!/bin/sh
# Starts a Docker engine for `sam local invoke` on a machine without one: `.ci/run` starts it, and stops it at the end.
# Usage: eval "$(scripts/setup/docker_engine.sh start)"    prints DOCKER_HOST for the caller; uses a running engine as it is
#        scripts/setup/docker_engine.sh stop               stops what `start` started, and nothing else
# Its files: the images are in .darkroom/docker, the sockets in a short path under /tmp (socket paths have 107 bytes at most).
set -eu
cd "$(dirname "$0")/../.."
state=$(realpath -m "${DARKROOM_STATE_DIR:-.darkroom}")/docker
record=$state/engine # the folder of the sockets, while our engine runs
checksum=$(printf '%s' "$state" | cksum | cut -d ' ' -f 1)
bridge=darkroom-$(printf '%06x' $((checksum % 16777216))) # 15 bytes, the longest name that Linux allows

say() { printf 'docker engine: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 1
}
answers() { command -v docker >/dev/null 2>&1 && timeout 10 docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

install_docker() {
    command -v dockerd >/dev/null 2>&1 && command -v docker >/dev/null 2>&1 && command -v ip >/dev/null 2>&1 && return
    command -v apt-get >/dev/null 2>&1 || fail "no Docker engine answers and this is not Debian or Ubuntu: install Docker and start it."
    say "installing Debian's docker.io"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2 || fail "apt-get update failed: the message above says why."
    # Since Debian 13 the client is a package of its own.
    client=$(apt-cache show docker-cli >/dev/null 2>&1 && echo docker-cli || true)
    # shellcheck disable=SC2086 # an empty $client is no argument
    apt-get install -qq -y --no-install-recommends docker.io iproute2 $client >&2 ||
        fail "could not install docker.io: the message above says why."
}

# A separate bridge, so that two engines on one machine do not assign the same addresses. 198.18.0.0/15 is reserved for
# tests inside a network (RFC 2544), so no host or cloud network uses it.
make_bridge() {
    ip link show "$bridge" >/dev/null 2>&1 && return
    third=$((checksum % 255))
    while ip -4 -o address | grep -q " 198\.18\.$third\."; do third=$(((third + 1) % 255)); done
    ip link add name "$bridge" type bridge || fail "the kernel makes no network bridge: use a machine where Docker runs."
    ip address add "198.18.$third.1/24" dev "$bridge"
    ip link set "$bridge" up
}

start() {
    if [ -n "${DOCKER_HOST:-}" ] || [ ! -f "$record" ]; then
        if answers; then
            say "using the one that answers${DOCKER_HOST:+ at $DOCKER_HOST}"
            return
        fi
    fi
    if [ -f "$record" ]; then
        run=$(cat "$record")
        export DOCKER_HOST="unix://$run/docker.sock"
        if answers; then
            say "using the one that runs already"
            printf 'export DOCKER_HOST=%s\n' "$DOCKER_HOST"
            return
        fi
        stop
    fi
    [ "$(id -u)" = 0 ] || fail "no Docker engine answers, and only root can start one: start Docker, then run this again."
    install_docker
    make_bridge
    mkdir -p "$state"
    run=$(mktemp -d /tmp/darkroom-docker.XXXXXX)
    printf '%s\n' "$run" >"$record"
    # Functions reach the embedded AWS on this machine and nothing else: no packet filter, no masquerading, no forwarding.
    setsid dockerd --data-root "$state/data" --exec-root "$run/exec" --pidfile "$run/pid" \
        --host "unix://$run/docker.sock" --bridge "$bridge" \
        --iptables=false --ip6tables=false --ip-masq=false --ip-forward=false \
        </dev/null >"$state/dockerd.log" 2>&1 &
    pid=$!
    export DOCKER_HOST="unix://$run/docker.sock"
    for _ in $(seq 120); do
        if answers; then
            say "started (process $(cat "$run/pid"), log $state/dockerd.log)"
            printf 'export DOCKER_HOST=%s\n' "$DOCKER_HOST"
            return
        fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.5
    done
    tail -n 20 "$state/dockerd.log" >&2
    stop
    fail "dockerd did not come up: its last lines are above, the whole log is $state/dockerd.log"
}

# The id alone proves nothing once its process is gone, so the command line must name our folder.
is_ours() { grep -qsF "$run" "/proc/$1/cmdline"; }

end_process() {
    pid=$(cat "$1" 2>/dev/null) && is_ours "$pid" || return 0
    kill -TERM "$pid" 2>/dev/null || return 0
    for _ in $(seq 60); do
        is_ours "$pid" || return 0
        sleep 0.25
    done
    kill -KILL "$pid" 2>/dev/null || true
    sleep 0.5
}

stop() {
    [ -f "$record" ] || return 0
    run=$(cat "$record")
    end_process "$run/pid"
    end_process "$run/exec/containerd/containerd.pid" # dockerd ends it, unless dockerd itself was killed
    # A killed engine leaves the network namespaces and the containers' file systems mounted.
    grep -F -e " $run/" -e " $state/data/" -e " $state/data " /proc/self/mounts | cut -d ' ' -f 2 | sort -r | while read -r mounted; do
        umount "$mounted" 2>/dev/null || true
    done
    ip link delete "$bridge" 2>/dev/null || true
    rm -rf "$run"
    rm -f "$record"
    say "stopped"
}

case "${1:-}" in
start) start ;;
stop) stop ;;
*) fail "usage: scripts/setup/docker_engine.sh start|stop" ;;
esac
