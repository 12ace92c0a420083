"""What every test finds: Powertools set as template.yaml sets it, and traces off."""

import os

os.environ.update(
    POWERTOOLS_SERVICE_NAME="darkroom", POWERTOOLS_METRICS_NAMESPACE="Darkroom", POWERTOOLS_TRACE_DISABLED="true"
)
