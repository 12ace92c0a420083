"""Settings for every test: Powertools set as template.yaml sets it, traces off, no AWS account, and a working Ctrl-C.

Tests marked `long` run only with `--long`.
"""

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ.update(
    POWERTOOLS_SERVICE_NAME="darkroom",
    POWERTOOLS_METRICS_NAMESPACE="Darkroom",
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
)

# Hypothesis fails a test whose example takes over 200 ms, or is slow to make: on a busy machine, any test.
settings.register_profile("darkroom", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("darkroom")

# A shell without job control starts background processes with interrupts ignored, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests marked long too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        long = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)


def pytest_collection_finish() -> None:
    """What was imported stays: the collector of garbage need not look through it again and again."""
    gc.collect()
    gc.freeze()
