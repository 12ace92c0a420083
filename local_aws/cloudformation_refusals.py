"""How a service's refusal appears in the events of a stack."""

from uuid import uuid4


def refusal(service: str, message: str) -> ValueError:
    """Return the error with which a resource handler reports that the service refused its request.

    https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract-errors.html
    """
    return ValueError(
        f'Resource handler returned message: "{message} (Service: {service}, Status Code: 400, Request ID: {uuid4()})" '
        f"(RequestToken: {uuid4()}, HandlerErrorCode: InvalidRequest)"
    )
