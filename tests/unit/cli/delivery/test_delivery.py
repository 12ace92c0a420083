"""`darkroom delivery`, over a CloudFront, a stack and a secret in memory, and a command that ends at any call."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, WaiterError
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from darkroom.aws.edge.p256 import sign
from darkroom.domain.edge.policies import keys_in, newest_of
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run

CORE = {
    "OutputsBucketName": "outputs",
    "OutputsBucketDomainName": "outputs.s3.example",
    "ImagesTableName": "images",
    "TokenBucketsTableName": "buckets",
    "WarningAlarmsTopicArn": "arn:topic",
}
EDGE = "https://img.example,arn:d,https://queue,arn:q,arn:f,86400"


class Crash(BaseException):
    """Ends the command."""


@dataclass
class FakeAws:
    """What CloudFormation, CloudFront and Secrets Manager do with keys."""

    parameters: dict[str, str] = field(default_factory=lambda: {"SigningKeys": "", "SignedSeconds": "3600"})
    outputs: dict[str, str] = field(default_factory=lambda: {"SigningSecretArn": "arn:secret", "Edge": EDGE})
    status: str = "UPDATE_COMPLETE"
    public: dict[str, dict[str, str]] = field(default_factory=dict)
    secret: str = '{"keys": []}'

    @property
    def trusted(self) -> list[str]:
        return list(filter(None, self.parameters["SigningKeys"].split(",")))

    @property
    def state(self) -> Any:
        """All that there is, but what is random."""
        keys = {one["id"] for one in json.loads(self.secret)["keys"]}
        waiting = (json.loads(self.secret).get("waiting") or {}).get("id")
        return (self.trusted, set(self.public), keys, waiting)

    @property
    def signer(self) -> str | None:
        """The key that signs, and whose signatures its public half verifies."""
        key = newest_of(keys_in(self.secret), self.trusted)
        if key is None:
            return None
        public = load_pem_public_key(self.public[key.id]["EncodedKey"].encode())
        assert isinstance(public, EllipticCurvePublicKey)
        public.verify(sign(key.private_key, b"policy"), b"policy", ECDSA(SHA256()))
        return key.id

    def describe_stacks(self, StackName: str) -> Any:  # noqa: N803
        parameters, outputs = {
            "shop": ({"Architecture": "arm64", "RolePath": ""}, CORE),
            "shop-delivery": (self.parameters, self.outputs),
        }[StackName]
        return {
            "Stacks": [
                {
                    "StackStatus": self.status,
                    "Parameters": [{"ParameterKey": key, "ParameterValue": of} for key, of in parameters.items()],
                    "Outputs": [{"OutputKey": key, "OutputValue": of} for key, of in outputs.items()],
                }
            ]
        }

    def update_stack(self, Parameters: list[dict[str, Any]], **_: Any) -> None:  # noqa: N803
        changed = {each["ParameterKey"]: each["ParameterValue"] for each in Parameters if "ParameterValue" in each}
        assert {each["ParameterKey"] for each in Parameters} == set(self.parameters)
        assert set(filter(None, changed["SigningKeys"].split(","))) <= set(self.public)
        self.parameters |= changed

    def get_waiter(self, _: str) -> Any:
        return SimpleNamespace(wait=lambda **_: None)

    def get_secret_value(self, **_: Any) -> Any:
        return {"SecretString": self.secret}

    def put_secret_value(self, SecretString: str, **_: Any) -> None:  # noqa: N803
        self.secret = SecretString

    def list_public_keys(self, Marker: str = "0") -> Any:  # noqa: N803
        page = list(self.public.items())[int(Marker) : int(Marker) + 1]
        further = {"NextMarker": str(int(Marker) + 1)} if page else {}
        return {"PublicKeyList": {"Items": [{"Id": name, **config} for name, config in page], **further}}

    def create_public_key(self, PublicKeyConfig: dict[str, str]) -> Any:  # noqa: N803
        made = f"K{len(self.public) + 1}"
        self.public[made] = PublicKeyConfig
        return {"PublicKey": {"Id": made}}

    def get_public_key(self, Id: str) -> Any:  # noqa: N803
        if Id not in self.public:
            raise ClientError({"Error": {"Code": "NoSuchPublicKey", "Message": ""}}, "GetPublicKey")
        return {"ETag": "E1"}

    def delete_public_key(self, Id: str, **_: Any) -> None:  # noqa: N803
        assert Id not in self.trusted
        del self.public[Id]


@dataclass
class Calls:
    """Counts calls, and ends the command at one of them: before it does anything, or after."""

    aws: FakeAws
    crash_at: float | None = None
    made: int = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.made += 1
            if self.made == self.crash_at:
                raise Crash
            answer = getattr(self.aws, name)(*arguments, **named)
            if self.made + 0.5 == self.crash_at:
                raise Crash
            return answer

        return call


@pytest.fixture
def aws(stack: FakeStack) -> FakeAws:
    fake = FakeAws()
    reach(stack, Calls(fake))
    return fake


def reach(stack: FakeStack, calls: Calls) -> None:
    stack.client = lambda _: calls  # type: ignore[attr-defined]


FLOW: tuple[tuple[str, ...], ...] = (("create",), ("create",), ("rotate",), ("remove", "K1"))


def test_the_parameters_of_both_stacks_are_printed_for_sam(run: Run, aws: FakeAws) -> None:
    assert run("delivery", "parameters").stdout.split() == [
        *("CoreStack=shop", "OutputsBucketName=outputs", "OutputsBucketDomainName=outputs.s3.example"),
        *("ImagesTableName=images", "TokenBucketsTableName=buckets", "AlarmTopic=arn:topic", "Architecture=arm64"),
    ]
    assert run("delivery", "edge").stdout == f"Edge={EDGE}\n"
    aws.outputs.clear()
    assert run("delivery", "edge").exit_code == 1


@pytest.mark.guards("delivery-key-made-once", "delivery-key-published-once")
@pytest.mark.parametrize("step", range(len(FLOW)), ids=["first", "second", "rotate", "remove"])
def test_whatever_ends_a_command_a_trusted_key_signs_and_its_repetition_finishes_it(
    run: Run, stack: FakeStack, aws: FakeAws, step: int
) -> None:
    def keys(of: FakeAws, crash_at: float | None = None) -> Calls:
        reach(stack, calls := Calls(of, crash_at))
        result = run("delivery", "keys", *FLOW[step])
        assert result.exit_code == 0, result.output
        return calls

    for before in FLOW[:step]:
        assert run("delivery", "keys", *before).exit_code == 0
    stack.world.advance(3600 + 601)
    began, signer = deepcopy(aws), aws.signer
    made = keys(aws).made
    for half in range(2, 2 * made):  # the last is that of no crash: after the last call
        crashed = deepcopy(began)
        with pytest.raises(Crash):
            keys(crashed, crash_at=half / 2)
        assert crashed.signer == signer
        keys(crashed)
        assert crashed.state == aws.state
    assert (aws.signer, set(aws.public)) == (
        ("K1", {"K1"}),
        ("K1", {"K1", "K2"}),
        ("K2", {"K1", "K2"}),
        ("K2", {"K2"}),
    )[step]


@pytest.mark.guards("delivery-foreign-key-kept", "delivery-signing-key-kept", "delivery-valid-urls-kept")
def test_no_key_is_removed_by_which_urls_are_signed_or_valid_unless_it_leaked(
    run: Run, stack: FakeStack, aws: FakeAws
) -> None:
    aws.public["K1"] = {"Name": "of another stack"}
    assert run("delivery", "keys", "create").exit_code == 0
    for refused in (("remove", "K1"), ("remove", "K2"), ("rotate",)):
        assert run("delivery", "keys", *refused).exit_code == 1
    assert (aws.signer, run("delivery", "keys", "create").stdout) == ("K2", "K3\n")
    listed = json.loads(run("delivery", "keys", "ls", "--json").stdout)
    assert [(key["id"], key["trusted"], key["signs"]) for key in listed] == [("K3", True, False), ("K2", True, True)]
    assert "PRIVATE" not in run("delivery", "keys", "ls").output
    assert run("delivery", "keys", "rotate").exit_code == 0
    stack.world.advance(3600 + 599)
    assert run("delivery", "keys", "remove", "K2").exit_code == 1
    assert aws.trusted == ["K3", "K2"]
    assert run("delivery", "keys", "remove", "K2", "--leaked").exit_code == 0
    assert (aws.trusted, aws.signer, set(aws.public)) == (["K3"], "K3", {"K1", "K3"})


@pytest.mark.guards("delivery-no-deployment", "delivery-signs-by-trusted-key")
def test_nothing_is_signed_by_a_key_that_the_stack_could_not_be_changed_to_trust(
    run: Run, aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, aws.status = aws.state, "UPDATE_IN_PROGRESS"
    assert run("delivery", "keys", "create").exit_code == 1
    assert aws.state == began
    aws.status = "UPDATE_ROLLBACK_COMPLETE"

    def fail(**_: Any) -> None:
        aws.parameters["SigningKeys"] = ""
        raise WaiterError("StackUpdateComplete", "rolled back", {})

    monkeypatch.setattr(aws, "get_waiter", lambda _: SimpleNamespace(wait=fail))
    failed = run("delivery", "keys", "create")
    assert (failed.exit_code, "events in CloudFormation" in failed.stderr) == (1, True)
    began = aws.state
    assert (run("delivery", "keys", "rotate").exit_code, aws.state) == (1, began)
