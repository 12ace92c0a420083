"""Reads the facts about a stack: from AWS by operations that only read, and from this checkout."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import batched
from typing import TYPE_CHECKING, Any

import httpx
from botocore.exceptions import ClientError

from darkroom.domain.kernel.errors import Retryable
from darkroom.domain.kernel.instants import Milliseconds
from darkroom.domain.kernel.lanes import LANES
from darkroom.domain.pauses.pauses import Pause
from darkroom.domain.tenants.api_keys import ApiKey as StoredKey
from darkroom.domain.tenants.api_keys import KeyState
from darkroom.ports.kernel import UnreadableRow
from darkroom_cli.doctor.checkout import (
    CORE_LAYER,
    PARTS_LAYER,
    FillIn,
    checkout_of,
    deployed_resources,
    filler_of,
    hashes_of,
)
from darkroom_cli.doctor.facts import (
    AlarmFacts,
    ApiKeyFacts,
    Bucket,
    Checkout,
    CouldNotBeRead,
    EventSource,
    Facts,
    FunctionFacts,
    Kms,
    Listing,
    LogGroup,
    Missing,
    Queue,
    Role,
    Rule,
    SecretFacts,
    ServiceQuota,
    StateMachine,
    Statement,
    Subscription,
    TableFacts,
    TopicFacts,
)
from darkroom_cli.doctor.policies import actions_on, covers, statements_of
from darkroom_cli.doctor.priority import WORKER
from darkroom_cli.doctor.template import lasting_name
from local_aws.stacks.running import NESTED_STACK

if TYPE_CHECKING:
    from darkroom_cli.stack.operators import Stack

READING = re.compile(r"(Get|List|Describe|BatchGet|Query|Scan|Simulate)([A-Z]|$)")
"""The names of AWS's operations that change nothing."""

AT_ONCE = 8
"""Requests at once: a stack has a few hundred things to ask about."""

SERVICES = (
    "apigatewayv2",
    "cloudformation",
    "cloudwatch",
    "dynamodb",
    "events",
    "iam",
    "kms",
    "lambda",
    "logs",
    "s3",
    "secretsmanager",
    "service-quotas",
    "sns",
    "sqs",
    "stepfunctions",
)

QUOTAS_OF = ("lambda", "sqs", "sns", "dynamodb", "s3", "states", "cloudformation", "events", "secretsmanager", "logs")
"""The services whose quotas are read, by their codes in Service Quotas."""

_SECONDS_TO_DOWNLOAD = 30


_NOBODYS = "0" * 26

ONE_OBJECT = {
    "UploadsBucket": f"uploads/{_NOBODYS}",
    "OriginalsBucket": f"originals/{_NOBODYS}",
    "OutputsBucket": f"public/{_NOBODYS}/",  # which all that list may
    "HoldsBucket": f"holds/2026-01-01T00-00-00Z/{'0' * 40}.json.gz",
}
"""A prefix with a whole id in each bucket that functions read: the list of one object, or of one image's."""

ONE_IMPORT = {"UploadsBucket": f"imports/ba_{_NOBODYS}/manifest"}
"""The same for what reads manifests."""

LISTED_WHOLE = {"SweepDueBulkFunctionRole": frozenset({"OriginalsBucket", "OutputsBucket"})}
"""The buckets that a role lists all of: the reconciliation's, which may read none of it."""


class WouldChange(Exception):
    """Doctor was about to call an operation that may change something: a bug of its own."""


def only_reading(client: Any) -> Any:
    """The client, which from now on refuses every operation that may change something."""

    def refuse(model: Any, **_: object) -> None:
        if not READING.match(model.name):  # guard: doctor-read-only
            raise WouldChange(f"doctor does not call {model.name}: it may change something")

    client.meta.events.register("before-call", refuse, unique_id="darkroom-doctor")
    return client


def gather(stack: Stack, on_progress: Callable[[str], None] = lambda what: None) -> Facts:
    """Everything that the checks judge. What AWS refuses to tell is Missing. Raises what botocore raises if AWS cannot
    be reached at all."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return _StackReader(stack, pool, on_progress).facts()


class _StackReader:
    def __init__(self, stack: Stack, pool: ThreadPoolExecutor, on_progress: Callable[[str], None]) -> None:
        self._stack = stack
        self._pool = pool
        self._on_progress = on_progress
        self._now = stack.clock()
        # Made here, since threads may share clients, but not the session that makes them.
        self._clients = {service: only_reading(stack.client(service)) for service in SERVICES}

    def facts(self) -> Facts:
        stack = self._stack
        (described,) = self._client("cloudformation").describe_stacks(StackName=stack.name)["Stacks"]
        queues = self._section("queues", self._queues)
        tables = self._section("tables", lambda: self._each("AWS::DynamoDB::Table", self._table))
        functions = self._section("functions", lambda: self._each("AWS::Lambda::Function", self._function))
        roles = self._section("roles", lambda: self._each("AWS::IAM::Role", self._role))
        machines = self._section("state machines", self._state_machines)
        keys = self._section("keys", lambda: self._each("AWS::KMS::Key", self._key))
        secrets = self._section("secrets", lambda: self._each("AWS::SecretsManager::Secret", self._secret))
        types = {lasting_name(name, kind): kind for name, (kind, _) in stack.resources.items()}
        self._on_progress("this checkout")
        fill_in = filler_of(
            stack,
            described["StackId"],
            queues=queues,
            tables=tables,
            state_machines=machines,
            secrets=secrets,
            others=[functions, roles, keys],
        )
        checkout = checkout_of(stack, fill_in)
        return Facts(
            name=stack.name,
            is_local=stack.is_local,
            now=self._now,
            updated_at=_milliseconds(described.get("LastUpdatedTime") or described["CreationTime"]),
            status=described["StackStatus"],
            parameters=stack.parameters,
            types=types,
            checkout=checkout,
            deployed=self._section("the deployed template", lambda: self._deployed(fill_in)),
            queues=queues,
            tables=tables,
            functions=functions,
            roles=roles,
            listings=self._section("what roles may list", lambda: self._listings(roles)),
            state_machines=machines,
            keys=keys,
            event_sources=self._section("event sources", lambda: self._event_sources(queues, tables)),
            alarms=self._section("alarms", self._alarms),
            topics=self._section("topics", lambda: self._each("AWS::SNS::Topic", self._topic)),
            buckets=self._section("buckets", lambda: self._each("AWS::S3::Bucket", self._bucket)),
            secrets=secrets,
            rules=self._section("schedules", lambda: self._each("AWS::Events::Rule", self._rule)),
            log_groups=self._section("log groups", self._log_groups),
            routes=self._section("routes", self._routes),
            api_keys=self._section("API keys", self._api_keys),
            quotas=self._section("quotas", self._quotas),
            concurrency=self._section("concurrency", self._concurrency),
            sweeps=self._section("sweeps", self._sweeps),
            oldest_dead_letters=self._section("ages of dead letters", lambda: self._oldest_dead_letters(queues)),
            p99_seconds=self._section("how long images take", self._p99_seconds),
            deployed_sources=self._section("code", lambda: self._deployed_sources(checkout)),
            pauses=self._section("pauses", lambda: _pauses(stack)),
        )

    # ── How it is read ────────────────────────────────────────────────────────────────────────────────────────────────

    def _client(self, service: str) -> Any:
        return self._clients[service]

    def _section[Fact](self, name: str, read: Callable[[], Mapping[str, Fact]]) -> Mapping[str, Fact]:
        self._on_progress(name)
        try:
            return read()
        except ClientError as error:
            answer = error.response.get("Error", {})
            message = (
                f"AWS refuses {error.operation_name} ({answer.get('Code', 'an error')}): {answer.get('Message', '')}"
            )
            return Missing(message.rstrip(": "))
        except (Retryable, httpx.HTTPError) as error:
            return Missing(f"{name}: {error}")
        except CouldNotBeRead as error:  # what it is about
            return Missing(str(error))

    def _each[Fact](self, kind: str, read: Callable[[str], Fact | None]) -> dict[str, Fact]:
        """What `read` makes of each resource of a type by its physical id; without those of which it makes nothing."""
        ids = self._stack.physical_ids(kind)
        facts = zip(ids, self._pool.map(read, ids.values()), strict=True)
        return {name: fact for name, fact in facts if fact is not None}

    # ── Queues and topics ─────────────────────────────────────────────────────────────────────────────────────────────

    def _queues(self) -> dict[str, Queue]:
        queues = self._each("AWS::SQS::Queue", partial(_queue, self._client("sqs")))
        targets = {queue.dead_letters for queue in queues.values()}
        failed = {
            name: _failed_redrive(self._client("sqs"), queue.arn)
            for name, queue in queues.items()
            if queue.arn in targets
        }
        return {name: replace(queue, failed_redrive=failed.get(name)) for name, queue in queues.items()}

    def _topic(self, arn: str) -> TopicFacts:
        sns = self._client("sns")
        attributes = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
        pages = sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=arn)
        return TopicFacts(
            arn=arn,
            policy=statements_of(attributes.get("Policy")),
            key=attributes.get("KmsMasterKeyId") or None,
            subscriptions=tuple(
                _subscription(sns, subscription) for page in pages for subscription in page["Subscriptions"]
            ),
        )

    def _oldest_dead_letters(self, queues: Mapping[str, Queue]) -> dict[str, float]:
        """The ages of the oldest dead letters: by the archiver's count, which runs every six hours, and by SQS's, which
        is of the last hour and counts from a dead letter's move."""
        targets = {queue.dead_letters for queue in queues.values()}
        cloudwatch = self._client("cloudwatch")
        own = f"Darkroom/{self._stack.name}"
        listed = cloudwatch.get_paginator("list_metrics").paginate(Namespace=own, MetricName="OldestDeadLetterSeconds")
        metrics = {
            "OldestDeadLetterSeconds"
            + "".join(f" {dimension['Value']}" for dimension in metric["Dimensions"][1:]): metric
            for page in listed
            for metric in page["Metrics"]
        }
        ages = self._latest_maxima(metrics, hours=12)
        of_queues = {
            name: {
                "Namespace": "AWS/SQS",
                "MetricName": "ApproximateAgeOfOldestMessage",
                "Dimensions": [{"Name": "QueueName", "Value": queue.name}],
            }
            for name, queue in queues.items()
            if queue.arn in targets and queue.messages
        }
        return {**ages, **self._latest_maxima(of_queues, hours=1)}

    # ── Functions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _function(self, name: str) -> FunctionFacts:
        lambda_ = self._client("lambda")
        configuration = lambda_.get_function_configuration(FunctionName=name)
        concurrency = lambda_.get_function_concurrency(FunctionName=name)
        problem = None
        if configuration.get("State") == "Failed":  # Pending and Inactive pass by themselves
            problem = f"it cannot be invoked: {configuration.get('StateReason', 'AWS gives no reason')}"
        elif configuration.get("LastUpdateStatus") == "Failed":
            problem = f"its latest update failed: {configuration.get('LastUpdateStatusReason', 'AWS gives no reason')}"
        return FunctionFacts(
            arn=configuration["FunctionArn"],
            role=configuration["Role"],
            timeout_seconds=configuration["Timeout"],
            memory_mb=configuration["MemorySize"],
            runtime=configuration.get("Runtime", ""),
            handler=configuration.get("Handler", ""),
            variables=configuration.get("Environment", {}).get("Variables", {}),
            log_group=configuration.get("LoggingConfig", {}).get("LogGroup"),
            is_traced=configuration.get("TracingConfig", {}).get("Mode") == "Active",
            reserved=concurrency.get("ReservedConcurrentExecutions"),
            problem=problem,
        )

    def _event_sources(self, queues: Mapping[str, Queue], tables: Mapping[str, TableFacts]) -> dict[str, EventSource]:
        functions = {physical: name for name, physical in self._stack.physical_ids("AWS::Lambda::Function").items()}
        sources = {queue.arn: name for name, queue in queues.items()}
        sources |= {table.stream_arn: name for name, table in tables.items() if table.stream_arn is not None}
        lambda_ = self._client("lambda")
        return self._each(
            "AWS::Lambda::EventSourceMapping",
            lambda uuid: _event_source(lambda_.get_event_source_mapping(UUID=uuid), functions, sources),
        )

    def _concurrency(self) -> dict[str, int]:
        limits = self._client("lambda").get_account_settings()["AccountLimit"]
        return {"limit": limits["ConcurrentExecutions"], "unreserved": limits["UnreservedConcurrentExecutions"]}

    def _role(self, name: str) -> Role:
        iam = self._client("iam")
        role = iam.get_role(RoleName=name)["Role"]
        statements: list[Statement] = []
        for page in iam.get_paginator("list_role_policies").paginate(RoleName=name):
            for policy in page["PolicyNames"]:
                document = iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
                statements += statements_of(document)
        pages = iam.get_paginator("list_attached_role_policies").paginate(RoleName=name)
        return Role(
            arn=role["Arn"],
            statements=tuple(statements),
            managed=tuple(policy["PolicyName"] for page in pages for policy in page["AttachedPolicies"]),
            trusted=statements_of(role["AssumeRolePolicyDocument"]),
        )

    def _listings(self, roles: Mapping[str, Role]) -> dict[str, Listing]:
        buckets = {
            name: f"arn:{role.arn.split(':')[1]}:s3:::{self._stack.physical_id(name)}"
            for role in list(roles.values())[:1]
            for name in ONE_OBJECT
        }
        listings = self._pool.map(lambda name: self._listing(name, roles[name], buckets), roles)
        return dict(zip(roles, listings, strict=True))

    def _listing(self, role_name: str, role: Role, buckets: Mapping[str, str]) -> Listing:
        """What IAM says to lists by this role: of all, and of one object."""
        everything, nothing = set(), set()
        for name, arn in buckets.items():
            written = actions_on(role.statements, arn, "s3")
            lists = [
                action
                for action in ("s3:ListBucket", "s3:ListBucketVersions")
                if any(covers(pattern, action) for pattern in written)
            ]
            if not lists:
                continue
            objects = [places[name] for places in (ONE_OBJECT, ONE_IMPORT) if name in places]
            whole = [f"{each.partition('/')[0]}/" for each in objects]
            may_all = name in LISTED_WHOLE.get(role_name, ())
            if not any(all(self._may(role.arn, lists, arn, prefix)) for prefix in (whole if may_all else objects)):
                nothing.add(name)
            if not may_all and any(any(self._may(role.arn, lists, arn, prefix)) for prefix in whole):
                everything.add(name)
        return Listing(everything=frozenset(everything), nothing=frozenset(nothing))

    def _may(self, role_arn: str, actions: Sequence[str], bucket_arn: str, prefix: str) -> Iterator[bool]:
        answer = self._client("iam").simulate_principal_policy(
            PolicySourceArn=role_arn,
            ActionNames=list(actions),
            ResourceArns=[bucket_arn],
            ContextEntries=[
                {"ContextKeyName": "s3:prefix", "ContextKeyValues": [prefix], "ContextKeyType": "string"},
            ],
        )
        return (result["EvalDecision"] == "allowed" for result in answer["EvaluationResults"])

    def _rule(self, name: str) -> Rule:
        # A rule of EventBridge on the default bus is named alone; CloudFormation may write the bus before it.
        events = self._client("events")
        name = name.rpartition("|")[2]
        rule = events.describe_rule(Name=name)
        targets = events.list_targets_by_rule(Rule=name)["Targets"]
        return Rule(
            schedule=rule.get("ScheduleExpression", ""),
            is_enabled=rule["State"] != "DISABLED",
            targets=tuple(target["Arn"] for target in targets),
        )

    def _state_machines(self) -> dict[str, StateMachine]:
        states = self._client("stepfunctions")

        def read(arn: str) -> StateMachine:
            machine = states.describe_state_machine(stateMachineArn=arn)
            return StateMachine(arn=arn, name=machine["name"], definition=json.loads(machine["definition"]))

        return self._each("AWS::StepFunctions::StateMachine", read)

    # ── Stores ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _table(self, name: str) -> TableFacts:
        dynamodb = self._client("dynamodb")
        table = dynamodb.describe_table(TableName=name)["Table"]
        backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        expiry = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        recovery = backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus")
        return TableFacts(
            arn=table["TableArn"],
            name=name,
            stream_arn=table.get("LatestStreamArn"),
            is_protected=table.get("DeletionProtectionEnabled", False),
            is_recoverable=recovery == "ENABLED",
            key=table.get("SSEDescription", {}).get("KMSMasterKeyArn"),
            expires_by=expiry.get("AttributeName") if expiry["TimeToLiveStatus"] in ("ENABLED", "ENABLING") else None,
        )

    def _bucket(self, name: str) -> Bucket:
        s3 = self._client("s3")
        policy = _if_there_is(lambda: s3.get_bucket_policy(Bucket=name)["Policy"], "NoSuchBucketPolicy")
        blocks = _if_there_is(
            lambda: s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"],
            "NoSuchPublicAccessBlockConfiguration",
        )
        encryption = _if_there_is(
            lambda: s3.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]["Rules"],
            "ServerSideEncryptionConfigurationNotFoundError",
        )
        default = encryption[0].get("ApplyServerSideEncryptionByDefault", {}) if encryption else {}
        four = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
        return Bucket(
            name=name,
            policy=statements_of(policy),
            is_closed=blocks is not None and all(blocks.get(block) for block in four),
            algorithm=default.get("SSEAlgorithm"),
            key=default.get("KMSMasterKeyID"),
            is_versioned=s3.get_bucket_versioning(Bucket=name).get("Status") == "Enabled",
        )

    def _secret(self, arn: str) -> SecretFacts:
        secrets = self._client("secretsmanager")
        secret = secrets.describe_secret(SecretId=arn)
        # LastChangedDate would also change with a tag.
        made_at = [
            version["CreatedDate"]
            for version in secrets.list_secret_version_ids(SecretId=arn)["Versions"]
            if "AWSCURRENT" in version.get("VersionStages", [])
        ]
        return SecretFacts(
            arn=secret["ARN"],
            changed_at=_milliseconds(max(made_at, default=secret["CreatedDate"])),
            is_being_deleted="DeletedDate" in secret,
        )

    def _key(self, key_id: str) -> Kms:
        kms = self._client("kms")
        key = kms.describe_key(KeyId=key_id)["KeyMetadata"]
        rotation = kms.get_key_rotation_status(KeyId=key_id)
        return Kms(arn=key["Arn"], is_enabled=key["Enabled"], is_rotated=rotation["KeyRotationEnabled"])

    def _api_keys(self) -> dict[str, ApiKeyFacts]:
        if self._stack.parameters.get("Access") != "keys":
            return {}
        return {
            key.key_id: ApiKeyFacts(tenant_id=key.tenant_id, created_at=key.created_at, last_used_on=key.last_used_on)
            for key in self._stack.tenants.all_keys()
            if isinstance(key, StoredKey) and key.state(self._now) is KeyState.ACTIVE
        }

    # ── What watches ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _alarms(self) -> dict[str, AlarmFacts]:
        ids = {
            physical: name
            for kind in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
            for name, physical in self._stack.physical_ids(kind).items()
        }
        cloudwatch = self._client("cloudwatch")
        alarms: dict[str, AlarmFacts] = {}
        for names in batched(ids, 100, strict=False):  # as many as DescribeAlarms takes
            answer = cloudwatch.describe_alarms(
                AlarmNames=[_alarm_name(name) for name in names],
                AlarmTypes=["MetricAlarm", "CompositeAlarm"],
                MaxRecords=100,
            )
            by_name = {
                alarm["AlarmName"]: alarm
                for kind in ("MetricAlarms", "CompositeAlarms")
                for alarm in answer.get(kind, [])
            }
            alarms |= {ids[name]: _alarm(by_name[_alarm_name(name)]) for name in names if _alarm_name(name) in by_name}
        return alarms

    def _log_groups(self) -> dict[str, LogGroup]:
        logs = self._client("logs")

        def read(name: str) -> LogGroup | None:
            groups = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
            log_group = next((group for group in groups if group["logGroupName"] == name), None)
            return (
                None
                if log_group is None
                else LogGroup(retention_days=log_group.get("retentionInDays"), key=log_group.get("kmsKeyId"))
            )

        return self._each("AWS::Logs::LogGroup", read)

    def _routes(self) -> dict[str, str]:
        gateway = self._client("apigatewayv2")
        authorizations: dict[str, str] = {}
        for api in self._stack.physical_ids("AWS::ApiGatewayV2::Api").values():
            for page in gateway.get_paginator("get_routes").paginate(ApiId=api):
                authorizations |= {route["RouteKey"]: route.get("AuthorizationType", "NONE") for route in page["Items"]}
        return authorizations

    def _sweeps(self) -> dict[str, Milliseconds]:
        metric = {
            "Namespace": "AWS/Lambda",
            "MetricName": "Errors",
            "Dimensions": [{"Name": "FunctionName", "Value": self._stack.physical_id("SweepDueImagesFunction")}],
        }
        # The least of a minute is 0 where a sweep ended without an error.
        data = self._data({"sweeps": metric}, statistic="Minimum", hours=1, period_seconds=60)["sweeps"]
        instants = [_milliseconds(at) for at, value in data if value == 0]
        return {"latest": max(instants)} if instants else {}

    def _quotas(self) -> dict[str, ServiceQuota]:
        quotas = self._client("service-quotas")
        listed = {
            (code, quota["QuotaCode"]): quota
            for code in QUOTAS_OF
            for page in quotas.get_paginator("list_service_quotas").paginate(ServiceCode=code)
            for quota in page["Quotas"]
        }
        # A quota of requests per second is measured in another way.
        measured = {
            code: {
                "Namespace": quota["UsageMetric"]["MetricNamespace"],
                "MetricName": quota["UsageMetric"]["MetricName"],
                "Dimensions": [
                    {"Name": name, "Value": value}
                    for name, value in quota["UsageMetric"].get("MetricDimensions", {}).items()
                ],
            }
            for (_, code), quota in listed.items()
            if quota.get("UsageMetric", {}).get("MetricStatisticRecommendation") == "Maximum"
        }
        used = self._latest_maxima(measured, hours=24)
        return {
            code: ServiceQuota(name=quota["QuotaName"], service=service, limit=quota["Value"], used=used.get(code))
            for (service, code), quota in listed.items()
        }

    def _p99_seconds(self) -> dict[str, float]:
        """The largest p99 of an hour in the last day: how long the worker is busy with a batch, and how long each lane
        takes from an image's acceptance to its end."""
        metrics: dict[str, Any] = {
            lane: {
                "Namespace": f"Darkroom/{self._stack.name}",
                "MetricName": "ImageSeconds",
                "Dimensions": [{"Name": "service", "Value": "darkroom"}, {"Name": "lane", "Value": lane}],
            }
            for lane in LANES
        }
        worker = {"Name": "FunctionName", "Value": self._stack.physical_id(WORKER)}
        metrics[WORKER] = {"Namespace": "AWS/Lambda", "MetricName": "Duration", "Dimensions": [worker]}
        measured = self._latest_maxima(metrics, hours=24, statistic="p99", period_seconds=3600)
        return {name: value / 1000 if name == WORKER else value for name, value in measured.items()}

    def _latest_maxima(
        self, metrics: Mapping[str, Any], *, hours: int, statistic: str = "Maximum", period_seconds: int = 300
    ) -> dict[str, float]:
        """The maximum of each metric in the last hours, of those that have data; or that of another statistic."""
        data = self._data(metrics, statistic=statistic, hours=hours, period_seconds=period_seconds)
        return {name: max(value for _, value in points) for name, points in data.items() if points}

    def _data(
        self, metrics: Mapping[str, Any], *, statistic: str, hours: int, period_seconds: int
    ) -> dict[str, list[tuple[datetime, float]]]:
        cloudwatch = self._client("cloudwatch")
        end = datetime.fromtimestamp(self._now / 1000, UTC) + timedelta(minutes=1)
        samples: dict[str, list[tuple[datetime, float]]] = {name: [] for name in metrics}
        for names in batched(metrics, 100, strict=False):
            queries = [
                {
                    "Id": f"m{number}",
                    "MetricStat": {"Metric": metrics[name], "Period": period_seconds, "Stat": statistic},
                }
                for number, name in enumerate(names)
            ]
            pages = cloudwatch.get_paginator("get_metric_data").paginate(
                MetricDataQueries=queries, StartTime=end - timedelta(hours=hours), EndTime=end
            )
            for page in pages:
                for result in page["MetricDataResults"]:
                    name = names[int(result["Id"][1:])]
                    samples[name] += zip(result["Timestamps"], result["Values"], strict=True)
        return samples

    # ── This checkout, and the code that is deployed ──────────────────────────────────────────────────────────────────

    def _deployed(self, fill_in: FillIn) -> dict[str, dict[str, Any]]:
        cloudformation = self._client("cloudformation")
        stacks = {self._stack.name: self._stack.parameters}
        for stack_id in self._stack.physical_ids(NESTED_STACK).values():
            (described,) = cloudformation.describe_stacks(StackName=stack_id)["Stacks"]
            stacks[stack_id] = {
                parameter["ParameterKey"]: parameter["ParameterValue"] for parameter in described.get("Parameters", ())
            }
        resources: dict[str, dict[str, Any]] = {}
        for stack, parameters in stacks.items():
            # After its transforms; before them no resource has the properties that it was deployed with.
            answer = cloudformation.get_template(StackName=stack, TemplateStage="Processed")
            resources |= deployed_resources(answer["TemplateBody"], parameters, fill_in)
        return resources

    def _deployed_sources(self, checkout: Checkout) -> dict[str, dict[str, str]]:
        if self._stack.is_local:  # its downloads are closed, and `local deploy` knows what it deployed
            return {}
        lambda_ = self._client("lambda")

        def read(name: str) -> tuple[str, dict[str, str]]:
            if name in (CORE_LAYER, PARTS_LAYER):
                (arn,) = [
                    physical_id
                    for logical_id, physical_id in self._stack.physical_ids("AWS::Lambda::LayerVersion").items()
                    if lasting_name(logical_id, "AWS::Lambda::LayerVersion") == name
                ]
                location = lambda_.get_layer_version_by_arn(Arn=arn)["Content"]["Location"]
            else:
                location = lambda_.get_function(FunctionName=self._stack.physical_id(name))["Code"]["Location"]
            return name, hashes_of(_downloaded(location))

        return dict(self._pool.map(read, checkout.sources))


def _pauses(stack: Stack) -> dict[str, Pause | UnreadableRow]:
    if "bulk" not in stack.parts:  # guard: doctor-pause-without-part
        return {}
    rows = stack.pauses.all()
    unreadable = {row.row_id: row for row in rows if isinstance(row, UnreadableRow)}
    return unreadable | {row.subject: row for row in rows if isinstance(row, Pause) and row.is_active}


def _milliseconds(instant: datetime) -> Milliseconds:
    return int(instant.timestamp() * 1000)


def _if_there_is[Answer](read: Callable[[], Answer], code: str) -> Answer | None:
    """What AWS answers, or None if it says by that code that there is none."""
    try:
        return read()
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == code:
            return None
        raise


def _queue(sqs: Any, url: str) -> Queue:
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    redrive = json.loads(attributes.get("RedrivePolicy") or "{}")
    counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    return Queue(
        arn=attributes["QueueArn"],
        name=attributes["QueueArn"].rpartition(":")[2],
        url=url,
        visibility_seconds=int(attributes["VisibilityTimeout"]),
        retention_seconds=int(attributes["MessageRetentionPeriod"]),
        is_encrypted=attributes.get("SqsManagedSseEnabled") == "true",
        key=attributes.get("KmsMasterKeyId") or None,
        policy=statements_of(attributes.get("Policy")),
        dead_letters=redrive.get("deadLetterTargetArn"),
        max_receives=int(redrive["maxReceiveCount"]) if "maxReceiveCount" in redrive else None,
        messages=sum(int(attributes.get(count, 0)) for count in counts),
    )


def _failed_redrive(sqs: Any, arn: str) -> str | None:
    """Why the latest redrive of a dead-letter queue failed; None if it did not, or there was none."""
    results = sqs.list_message_move_tasks(SourceArn=arn, MaxResults=1).get("Results", [])
    if not results or results[0].get("Status") != "FAILED":
        return None
    return str(results[0].get("FailureReason") or "AWS gives no reason")


def _subscription(sns: Any, listed: Mapping[str, Any]) -> Subscription:
    is_confirmed = listed["SubscriptionArn"].startswith("arn:")
    redrive = None
    if is_confirmed and listed["Protocol"] == "sqs":
        attributes = sns.get_subscription_attributes(SubscriptionArn=listed["SubscriptionArn"])["Attributes"]
        is_confirmed = attributes.get("PendingConfirmation", "false") != "true"
        redrive = json.loads(attributes.get("RedrivePolicy") or "{}").get("deadLetterTargetArn")
    return Subscription(
        protocol=listed["Protocol"], endpoint=listed["Endpoint"], is_confirmed=is_confirmed, dead_letters=redrive
    )


def _event_source(mapping: Mapping[str, Any], functions: Mapping[str, str], sources: Mapping[str, str]) -> EventSource:
    arn = mapping["EventSourceArn"]
    function = mapping["FunctionArn"].split(":function:")[1].split(":")[0]
    return EventSource(
        function=functions.get(function, function),
        source=sources.get(arn, arn),
        is_queue=":sqs:" in arn,
        is_enabled=mapping["State"] not in ("Disabled", "Disabling"),
        batch_size=mapping["BatchSize"],
        window_seconds=mapping.get("MaximumBatchingWindowInSeconds", 0),
        reports_items="ReportBatchItemFailures" in mapping.get("FunctionResponseTypes", []),
        maximum_concurrency=mapping.get("ScalingConfig", {}).get("MaximumConcurrency"),
        maximum_retries=mapping.get("MaximumRetryAttempts"),
        maximum_age_seconds=mapping.get("MaximumRecordAgeInSeconds"),
        failures=mapping.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination"),
    )


def _alarm_name(physical_id: str) -> str:
    """The name of an alarm, which CloudFormation may give as an ARN."""
    return physical_id.rpartition(":alarm:")[2]


def _alarm(described: Mapping[str, Any]) -> AlarmFacts:
    calculation = described.get("Metrics", [])
    watched = [query["MetricStat"]["Metric"] for query in calculation if "MetricStat" in query] or [described]
    dimensions = [dimension for metric in watched for dimension in metric.get("Dimensions", [])]
    return AlarmFacts(
        name=described["AlarmName"],
        description=described.get("AlarmDescription", ""),
        actions=tuple(described.get("AlarmActions", [])),
        is_acting=described.get("ActionsEnabled", True),
        namespace=watched[0].get("Namespace", ""),
        metric=", ".join({metric.get("MetricName", ""): None for metric in watched}),
        queues=frozenset(dimension["Value"] for dimension in dimensions if dimension["Name"] == "QueueName"),
        calculation=calculation,
        comparison=described.get("ComparisonOperator", ""),
        threshold=described.get("Threshold", 0),
        period_seconds=described.get("Period", 0),
        periods=described.get("EvaluationPeriods", 0),
        datapoints=described.get("DatapointsToAlarm", described.get("EvaluationPeriods", 0)),
        missing_data=described.get("TreatMissingData", "missing"),
        rule=described.get("AlarmRule"),
    )


def _downloaded(location: str) -> bytes:
    """The file behind a presigned address of S3."""
    answer = httpx.get(location, timeout=_SECONDS_TO_DOWNLOAD)
    answer.raise_for_status()
    return answer.content
