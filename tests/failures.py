"""How a call beside the work fails: nobody answers, or the call is refused. Neither stops what it stands beside."""

import pytest

from darkroom.domain.kernel.errors import Retryable

ANY_FAILURE = pytest.mark.parametrize(
    "failure", [Retryable("no answer"), PermissionError("AccessDenied")], ids=["silent", "denied"]
)
