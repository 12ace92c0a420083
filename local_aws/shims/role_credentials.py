"""Gives each function's role credentials that cannot be guessed.

Gap: MiniStack derives the secret of a role's session from the names of the role and the function, so a caller who knows
these can sign as the function.
AWS: STS makes temporary credentials at random for each session.
https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_temp.html
"""

import secrets
from typing import Any

from local_aws.emulator import Emulator
from local_aws.ministack_internals import internals, replace


def apply(emulator: Emulator) -> None:
    """Derive the credentials from a secret of this run too."""
    salt = secrets.token_hex(32)

    def salted(derive: Any) -> Any:
        def execution_credentials(config: dict[str, Any]) -> dict[str, str]:
            # guard: gate-role-secrets-salted
            credentials: dict[str, str] = derive({**config, "FunctionArn": f"{config.get('FunctionArn', '')}#{salt}"})
            return credentials

        return execution_credentials

    replace(internals("core.lambda_runtime"), "execution_credentials", salted)
