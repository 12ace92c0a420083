"""Lets a greedy route have what ends with its last slash: `/app/{path+}` has `/app/`.

Gap: MiniStack wants at least one character in a greedy variable's place, so `/app/` has the route `/{path+}`.
AWS: the route's function gets `/app/`, with the slash in `rawPath`. The gateway takes no route that ends in a slash, so
a greedy one is the only way to serve such a path (https://github.com/storacha/w3infra/pull/166).
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html
"""

from __future__ import annotations

from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Match a greedy variable with nothing, after a path of its own."""
    replace(internals("services.apigateway"), "_extract_path_params", _with_nothing)


def _with_nothing(extract: Any) -> Any:
    def extract_path_parameters(route_path: str, request_path: str) -> Any:
        before, _, variable = route_path.rpartition("/")
        if before and variable.endswith("+}") and request_path == f"{before}/":
            return {variable[1:-2]: ""}
        return extract(route_path, request_path)

    return extract_path_parameters
