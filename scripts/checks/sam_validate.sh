#!/bin/sh
# Runs `sam validate --lint` on the templates of functions without credentials: validation needs a region, but calls no service.
set -eu
cd "$(dirname "$0")/../.."
for template in template.yaml extensions/delivery.yaml; do
    env -i PATH="$PATH" HOME="$HOME" AWS_DEFAULT_REGION=us-east-1 AWS_CONFIG_FILE=/dev/null \
        AWS_SHARED_CREDENTIALS_FILE=/dev/null AWS_EC2_METADATA_DISABLED=true SAM_CLI_TELEMETRY=0 __SAM_CLI_APP_DIR=.darkroom/sam-home \
        .darkroom/venvs/sam/bin/sam validate --lint --language-extensions --template "$template"
done
