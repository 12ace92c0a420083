#!/bin/sh
# Builds a layer for TelemetryLayer, build/telemetry.zip, of OpenTelemetry's packages: build.sh [arm64|x86_64]
set -eu
cd "$(dirname "$0")/../.."
case "${1:-arm64}" in
arm64) platform=aarch64-manylinux2014 ;;
*) platform=x86_64-manylinux2014 ;;
esac
scripts/setup/environments.sh --uv
rm -rf build/telemetry build/telemetry.zip
.darkroom/venvs/uv/bin/uv pip install --quiet --require-hashes --only-binary :all: --python-version 3.13 \
    --python-platform "$platform" --target build/telemetry/python -r requirements/telemetry.txt
cp extensions/telemetry/otel_wrapper.py build/telemetry/python/
cp extensions/telemetry/otel-instrument build/telemetry/
cd build/telemetry
python3 -m zipfile -c ../telemetry.zip otel-instrument python
