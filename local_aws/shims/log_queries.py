"""Runs queries of CloudWatch Logs Insights, and stores those that are saved, also by a stack.

Gap: MiniStack knows fields of an event itself, not those of its JSON, and ignores whatever else a query says. It
refuses PutQueryDefinition, DescribeQueryDefinitions, DeleteQueryDefinition and the resource of a stack.
AWS: a query reads the fields of JSON by dots, and may calculate, group and sort; one that is faulty is refused with the
place. A saved query has an id, which a stack's Ref returns.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax.html
https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_StartQuery.html
https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutQueryDefinition.html
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-logs-querydefinition.html

What still differs from AWS: a query is complete as soon as it is started, and its language is the subset of
`local_aws.logs_insights`. GetLogRecord names a log group without its account.
"""

import functools
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from local_aws.cloudformation_refusals import refusal
from local_aws.emulator import Emulator
from local_aws.logs_insights.query import MAXIMUM_RESULTS, compile_query
from local_aws.logs_insights.rows import Row, event_row
from local_aws.logs_insights.scanner import MalformedQuery
from local_aws.ministack_internals import add_resource_type, internals, replace

MAXIMUM_LOG_GROUPS = 50
_TYPE = "AWS::Logs::QueryDefinition"
_DEFAULT_PAGE = 1000

type Request = Mapping[str, Any]


@functools.cache
def _definitions() -> Any:
    """The saved queries of each account and region, by their ids."""
    return internals("core.responses").AccountRegionScopedDict()


def apply(emulator: Emulator) -> None:
    """Replace how queries run, and add what concerns saved ones."""
    logs = internals("services.cloudwatch_logs")
    replace(logs, "_start_query", lambda _: _start)
    replace(logs, "_stop_query", lambda _: _stop)
    replace(logs, "handle_request", _with_saved_queries)
    add_resource_type(_TYPE, create=_create, update=_update, delete=_delete)


# ── Running queries ──────────────────────────────────────────────────────────────────────────────────────────────────


def _start(request: Request) -> Any:
    logs, responses = internals("services.cloudwatch_logs"), internals("core.responses")
    groups = logs._resolve_query_log_groups(request)
    if not groups or len(groups) > MAXIMUM_LOG_GROUPS:
        return _refused("InvalidParameterException", f"a query needs 1 to {MAXIMUM_LOG_GROUPS} log groups")
    for group in groups:
        if group not in logs._log_groups:
            return _refused("ResourceNotFoundException", f"The specified log group does not exist: {group}")
    if int(request.get("startTime", 0)) > int(request.get("endTime", 0)):
        return _refused("InvalidParameterException", "End time should not be before start time")
    limit = int(request.get("limit") or MAXIMUM_RESULTS)
    if not 1 <= limit <= MAXIMUM_RESULTS:
        return _refused("InvalidParameterException", f"limit must be from 1 to {MAXIMUM_RESULTS}")
    try:
        query = compile_query(request.get("queryString") or "")
    except MalformedQuery as fault:
        location = {"startCharOffset": fault.start, "endCharOffset": fault.end}
        return responses.error_response_json(
            "MalformedQueryException",
            f"{fault} ([{fault.start},{fault.end}])",
            400,
            extra={"queryCompileError": {"location": location, "message": str(fault)}},
        )
    records = logs._collect_query_records(groups, request["startTime"], request["endTime"])
    results = query.run(map(_row, records), limit=limit)
    query_id = str(uuid4())
    logs._queries[query_id] = {
        **{name: request.get(name) for name in ("logGroupName", "startTime", "endTime", "queryString")},
        "queryId": query_id,
        "status": "Complete",
        "results": [[{"field": name, "value": value} for name, value in row.items()] for row in results.rows],
        "statistics": {
            "recordsMatched": float(results.matched),
            "recordsScanned": float(len(records)),
            "bytesScanned": float(sum(len(record["@message"].encode()) for record in records)),
        },
    }
    return responses.json_response({"queryId": query_id})


def _row(record: Mapping[str, Any]) -> Row:
    account_id = internals("core.responses").get_account_id()
    return event_row(
        timestamp_ms=record["_timestamp_ms"],
        ingested_ms=record["_timestamp_ms"],
        message=record["@message"],
        log=f"{account_id}:{record['@log']}",
        stream=record["@logStream"],
        pointer=record["@ptr"],
    )


def _stop(request: Request) -> Any:
    query_id = request.get("queryId")
    if query_id not in internals("services.cloudwatch_logs")._queries:
        return _refused("ResourceNotFoundException", f"The specified query does not exist: {query_id}")
    return _refused("InvalidParameterException", f"The specified query is not running: {query_id}")


# ── Saving queries ───────────────────────────────────────────────────────────────────────────────────────────────────


def _with_saved_queries(handle: Any) -> Any:
    actions: Mapping[str, Callable[[Request], Any]] = {
        "PutQueryDefinition": _put,
        "DescribeQueryDefinitions": _describe,
        "DeleteQueryDefinition": _remove,
    }

    async def handle_request(method: Any, path: Any, headers: Any, body: Any, query_params: Any) -> Any:
        action = actions.get(headers.get("x-amz-target", "").rpartition(".")[2])
        if action is None:
            return await handle(method, path, headers, body, query_params)
        return action(json.loads(body) if body else {})

    return handle_request


def _put(request: Request) -> Any:
    name, query, query_id = (request.get(key) or "" for key in ("name", "queryString", "queryDefinitionId"))
    if not 1 <= len(name) <= 255:
        return _refused("InvalidParameterException", "name must have 1 to 255 characters")
    if not 1 <= len(query) <= MAXIMUM_RESULTS:
        return _refused("InvalidParameterException", f"queryString must have 1 to {MAXIMUM_RESULTS} characters")
    if query_id and query_id not in _definitions():
        return _refused("ResourceNotFoundException", f"The specified query definition does not exist: {query_id}")
    query_id = query_id or str(uuid4())
    _definitions()[query_id] = {
        "queryDefinitionId": query_id,
        "name": name,
        "queryString": query,
        "lastModified": int(time.time() * 1000),
        "logGroupNames": list(request.get("logGroupNames") or []),
    }
    return internals("core.responses").json_response({"queryDefinitionId": query_id})


def _describe(request: Request) -> Any:
    logs = internals("services.cloudwatch_logs")
    prefix = request.get("queryDefinitionNamePrefix") or ""
    definitions = [each for each in _definitions().values() if each["name"].startswith(prefix)]
    start, size = logs._decode_token(request.get("nextToken")), int(request.get("maxResults") or _DEFAULT_PAGE)
    page = {"queryDefinitions": sorted(definitions, key=lambda each: each["name"])[start : start + size]}
    more = {"nextToken": logs._encode_token(start + size)} if start + size < len(definitions) else {}
    return internals("core.responses").json_response(page | more)


def _remove(request: Request) -> Any:
    query_id = request.get("queryDefinitionId")
    if query_id not in _definitions():
        return _refused("ResourceNotFoundException", f"The specified query definition does not exist: {query_id}")
    del _definitions()[query_id]
    return internals("core.responses").json_response({"success": True})


def _refused(code: str, message: str) -> Any:
    return internals("core.responses").error_response_json(code, message, 400)


# ── In a stack ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _create(logical_id: str, properties: Mapping[str, Any], stack_name: str) -> tuple[str, dict[str, str]]:
    return _save(properties)


def _update(
    physical_id: str, old: Mapping[str, Any], new: Mapping[str, Any], stack_name: str, logical_id: str
) -> tuple[str, dict[str, str]]:
    # One that was deleted by hand is made anew.
    return _save(new, physical_id if physical_id in _definitions() else None)


def _delete(physical_id: str, properties: Mapping[str, Any]) -> None:
    _definitions().pop(physical_id, None)


def _save(properties: Mapping[str, Any], query_id: str | None = None) -> tuple[str, dict[str, str]]:
    members = {"name": "Name", "queryString": "QueryString", "logGroupNames": "LogGroupNames"}
    request = {member: properties.get(name) for member, name in members.items()}
    status, _, body = _put({**request, "queryDefinitionId": query_id})
    answer = json.loads(body)
    if status >= 300:
        raise refusal("CloudWatchLogs", answer["message"])
    saved_id = answer["queryDefinitionId"]
    return saved_id, {"QueryDefinitionId": saved_id}
