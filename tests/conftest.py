"""What every test finds: Powertools set as template.yaml sets it, traces off, and nobody's AWS."""

import os

for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ.update(
    POWERTOOLS_SERVICE_NAME="darkroom",
    POWERTOOLS_METRICS_NAMESPACE="Darkroom",
    POWERTOOLS_TRACE_DISABLED="true",
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
)
