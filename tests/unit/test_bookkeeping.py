"""What fails beside the work is seen: as a warning if nobody answers, as an error of the function otherwise."""

import io
import json

import pytest

from darkroom import telemetry
from darkroom.bookkeeping import bookkeeping
from darkroom.domain.kernel.errors import Retryable


@pytest.mark.guards("bookkeeping-denial-alarms")
@pytest.mark.parametrize(
    ("failure", "level", "error_type"),
    [(Retryable("timeout"), "WARNING", None), (PermissionError("denied"), "ERROR", "PermissionError")],
)
def test_a_failure_is_a_line_of_the_function_and_alarms_unless_it_passes_by_itself(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, level: str, error_type: str | None
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(telemetry.logger.registered_handler, "stream", stream)
    with telemetry.lines_about(tenant_id="acme"), bookkeeping("use not noted", image_id="1"):
        raise failure
    line = json.loads(stream.getvalue())
    assert (line["message"], line["level"], line.get("errorType")) == ("use not noted", level, error_type)
    assert (line["image_id"], line["tenant_id"], line["cause"]) == ("1", "acme", str(failure))


def test_a_process_that_is_to_end_ends() -> None:
    with pytest.raises(KeyboardInterrupt), bookkeeping("use not noted"):
        raise KeyboardInterrupt
