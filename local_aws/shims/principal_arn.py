"""Names the role, not its session, as the principal of policies' conditions.

Gap: MiniStack gives `aws:PrincipalArn` the ARN of the session, arn:aws:sts::…:assumed-role/ROLE/SESSION, if a role
was assumed.
AWS: for a role's session the key has the role's ARN, arn:aws:iam::…:role/ROLE.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html#condition-keys-principalarn
"""

from collections.abc import Callable
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace

_KEY = "aws:principalarn"
_OF_SESSIONS = ":assumed-role/"


def apply(emulator: Emulator) -> None:
    """Resolve the key to the role of a session."""
    replace(internals("core.iam_evaluator"), "_resolve_condition_key", _by_role)


def _by_role(resolve: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    def _resolve_condition_key(key: str, request: Any) -> Any:
        value = resolve(key, request)
        if key.lower() != _KEY or _OF_SESSIONS not in str(value):
            return value
        session, _, name = value.partition(_OF_SESSIONS)
        account_id = session.split(":")[4]
        role = internals("services.iam")._roles.get_scoped(account_id, None, name.partition("/")[0])
        return value if role is None else role["Arn"]

    return _resolve_condition_key
