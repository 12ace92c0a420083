"""Settings for every test: Powertools set as template.yaml sets it, traces off, no AWS account, and a working Ctrl-C.

Tests marked `long` run only with `--long`.
"""

import gc
import itertools
import os
import signal
from collections.abc import Generator

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


def is_backwards(config: pytest.Config) -> bool:
    """Whether this worker imports the files of a folder from the last one to the first, as every second one does. Where
    nothing is compiled yet, the worker that comes to a file first compiles it and rewrites its assertions: side by
    side, each would do all of them."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return worker % 2 == 1 and len(config.args) == 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if isinstance(collector, pytest.Directory) and is_backwards(collector.config):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if is_backwards(config):  # all workers must list the same tests in the same order
        files = [list(of_file) for _, of_file in itertools.groupby(items, key=lambda item: item.path)]
        items[:] = itertools.chain.from_iterable(reversed(files))
    if not config.getoption("--long"):
        long = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=long)


def pytest_collection_finish() -> None:
    """What was imported stays: the collector of garbage need not look through it again and again."""
    gc.collect()
    gc.freeze()
