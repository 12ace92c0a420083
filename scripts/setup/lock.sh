#!/bin/sh
# Pins every dependency group of pyproject.toml with hashes and without a registry's address.
# To upgrade one package: edit pyproject.toml, then `make lock`; to upgrade all: `make lock UPGRADE=1`.
set -eu
cd "$(dirname "$0")/../.."
uv=${UV:?run this through make lock}

compile() { # group, lock file, further arguments
    group=$1 out=$2
    shift 2
    "$uv" pip compile --quiet --no-config --python-version 3.13 --generate-hashes --no-emit-index-url \
        --no-header --no-annotate ${UPGRADE:+--upgrade} "$@" --group "pyproject.toml:$group" --output-file "$out"
}

compile layer-dependencies layers/dependencies/requirements.txt
# The layer and the tests use the same versions of Pillow and of everything else they share.
compile layer-imaging layers/imaging/requirements.txt
compile layer-signing layers/signing/requirements.txt
# The bytecode of both layers' packages; pyvips-binary has no modules.
compile layer-dependencies layers/bytecode/requirements.txt --group pyproject.toml:layer-imaging \
    --no-emit-package pyvips-binary -c layers/dependencies/requirements.txt -c layers/imaging/requirements.txt
compile dev requirements/dev.txt -c layers/dependencies/requirements.txt -c layers/imaging/requirements.txt
compile emulator requirements/emulator.txt
compile sam requirements/sam.txt
compile runtime requirements/runtime.txt
compile bench requirements/bench.txt -c requirements/dev.txt
compile peers requirements/peers.txt
compile telemetry requirements/telemetry.txt
compile uv requirements/uv.txt
compile audit requirements/audit.txt
compile node requirements/node.txt
