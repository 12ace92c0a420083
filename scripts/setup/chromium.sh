#!/bin/sh
# Finds the Chromium that the tests of the page drive, and installs Debian's where `.ci/run` asks for it.
# Usage: scripts/setup/chromium.sh            prints its path; without one, says how to get it and fails
#        scripts/setup/chromium.sh install    the same, after installing it if there is none
# $CHROMIUM names another one. The browsers that Playwright would download are never used.
set -eu

fail() {
    printf 'chromium: %s\n' "$*" >&2
    exit 1
}

find_chromium() {
    if [ -n "${CHROMIUM:-}" ]; then
        command -v "$CHROMIUM" || fail "there is no program $CHROMIUM, which CHROMIUM names."
        return
    fi
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" && return
    done
    return 1
}

install_chromium() {
    command -v apt-get >/dev/null 2>&1 || fail "there is none, and this is not Debian or Ubuntu: install Chromium."
    [ "$(id -u)" = 0 ] || fail "there is none, and only root can install it: apt-get install chromium"
    printf "chromium: installing Debian's chromium\n" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2 || fail "apt-get update failed: the message above says why."
    # The fonts are for words in pictures: without any, a page has empty boxes.
    apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core >&2 ||
        fail "could not install chromium: the message above says why."
}

case "${1:-}" in
"") find_chromium || fail "no Chromium is installed. On Debian, as root: scripts/setup/chromium.sh install" ;;
install)
    find_chromium && exit
    install_chromium
    find_chromium || fail "chromium was installed, and cannot be found."
    ;;
*) fail "usage: scripts/setup/chromium.sh [install]" ;;
esac
