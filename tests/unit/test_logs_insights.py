"""The subset of CloudWatch Logs Insights' language that the embedded AWS runs."""

import json
from typing import Any

import pytest

from local_aws.logs_insights.query import compile_query
from local_aws.logs_insights.rows import event_row
from local_aws.logs_insights.scanner import MalformedQuery
from local_aws.logs_insights.values import sort_key

NOON = 1_795_348_800_000  # 2026-11-22 12:00 UTC

EVENTS: list[tuple[int, str, str | dict[str, Any]]] = [
    # seconds after noon, log group, message
    (0, "api", {"level": "INFO", "message": "accepted", "image_id": "a", "lane": "fast", "bytes": 100, "cold": True}),
    (1, "api", {"level": "INFO", "message": "accepted", "image_id": "b", "lane": "slow", "bytes": 300, "cold": False}),
    (
        60,
        "worker",
        {"level": "ERROR", "message": "failed", "image_id": "a", "error": {"type": "KeyError", "at": [7, 8]}},
    ),
    (61, "worker", {"level": "INFO", "message": "done", "image_id": "a", "seconds": 2.5, "odd-name": "x"}),
    (90, "worker", {"level": "INFO", "message": "done", "image_id": "b", "seconds": "10"}),
    (400, "worker", "REPORT RequestId: 17 Duration: 12.5 ms"),
]


def run(query: str, limit: int = 10_000) -> list[dict[str, str]]:
    """The result of a query, without pointers."""
    rows = [
        event_row(
            timestamp_ms=NOON + seconds * 1000,
            ingested_ms=NOON + seconds * 1000 + 5,
            message=message if isinstance(message, str) else json.dumps(message),
            log=f"000000000000:{group}",
            stream="stream",
            pointer=str(number),
        )
        for number, (seconds, group, message) in enumerate(EVENTS)
    ]
    return [
        {name: value for name, value in row.items() if name != "@ptr"}
        for row in compile_query(query).run(rows, limit=limit).rows
    ]


def column(query: str) -> list[str]:
    """The values of a query that shows one field."""
    return [next(iter(row.values()), "") for row in run(query)]


def selected(condition: str) -> str:
    """The numbers of the events, oldest first, for which a condition is true."""
    events = compile_query(f"filter {condition} | sort @timestamp").run(
        event_row(timestamp_ms=number, ingested_ms=0, message=text, log="l", stream="s", pointer=str(number))
        for number, text in enumerate(
            each if isinstance(each, str) else json.dumps(each) for _seconds, _group, each in EVENTS
        )
    )
    return "".join(row["@ptr"] for row in events.rows)


# Fields


def test_without_fields_events_show_when_and_what_they_say_the_latest_first() -> None:
    results = compile_query("limit 1").run(
        [
            event_row(timestamp_ms=NOON + at, ingested_ms=0, message=text, log="l", stream="s", pointer=text)
            for at, text in ((0, "first"), (1, "second"))
        ]
    )
    assert results.rows == [{"@timestamp": "2026-11-22 12:00:00.001", "@message": "second", "@ptr": "second"}]
    assert results.matched == 2


def test_fields_are_shown_beside_those_before_and_display_shows_its_own_alone() -> None:
    assert run("fields image_id | fields lane as l, bytes | filter bytes = 100") == [
        {"image_id": "a", "l": "fast", "bytes": "100"}
    ]
    assert run("fields image_id, lane | display bytes * 2 as double | filter bytes = 100") == [{"double": "200"}]


def test_fields_of_json_are_named_by_dots_and_what_is_missing_is_left_out() -> None:
    query = "fields error.type, error.at.1, cold, `odd-name`, seconds, nothing | sort @timestamp | limit 4"
    assert run(query) == [
        {"cold": "1"},
        {"cold": "0"},
        {"error.type": "KeyError", "error.at.1": "8"},
        {"odd-name": "x", "seconds": "2.5"},
    ]


def test_an_event_has_fields_of_its_own() -> None:
    assert run("fields @log, @logStream, @ingestionTime | filter cold") == [
        {"@log": "000000000000:api", "@logStream": "stream", "@ingestionTime": "2026-11-22 12:00:00.005"}
    ]


def test_json_behind_other_text_is_discovered_too() -> None:
    row = event_row(timestamp_ms=0, ingested_ms=0, message='INFO\t{"a": {"b": 1}} end', log="", stream="", pointer="")
    assert compile_query("display a.b").run([row]).rows == [{"a.b": "1", "@ptr": ""}]


# Conditions


@pytest.mark.guards("emulator-insights-unknown-truth")
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('level = "ERROR"', "2"),
        ("level = 'ERROR'", "2"),
        ('level != "INFO"', "2"),
        ("bytes = 100", "0"),
        ('bytes = "100.0"', "0"),
        ("bytes > 99 and bytes <= 300", "01"),
        ("seconds < 10", "3"),
        ("seconds >= 10", "4"),
        ("cold", "0"),
        ("cold = true", "0"),
        ("not cold", "1"),
        ("ispresent(error.type)", "2"),
        ("not ispresent(level)", "5"),
        ('@message like "REPORT"', "5"),
        ('@message not like "level"', "5"),
        ('@message like "report"', ""),
        ("@message like /(?i)report/", "5"),
        ("@message like /Duration: \\d+\\.5/", "5"),
        ("@message =~ /RequestId: 1[0-9]/", "5"),
        ("error.type like /Key/", "2"),
        ('image_id in ["a", "c"]', "023"),
        ('image_id not in ["a"]', "14"),
        ("bytes in [100, 300]", "01"),
        ('level = "ERROR" or image_id = "b" and bytes = 300', "12"),
        ('(level = "ERROR" or image_id = "b") and lane = "slow"', "1"),
        ('not (level = "INFO")', "2"),
        # a field that is missing compares with nothing, and the opposite does not hold either
        ("nothing = 1", ""),
        ("nothing != 1", ""),
        ("not nothing = 1", ""),
        ("nothing like /x/ or bytes = 100", "0"),
        ("nothing not in [1]", ""),
        ("@timestamp < 2", "01"),
        ("toMillis(@timestamp) % 2 = 1 and ispresent(bytes)", "1"),
        ('LEVEL = "INFO"', ""),
        ('level = "INFO" AND image_id = "b" # and no more\n', "14"),
    ],
)
def test_a_filter_keeps_the_events_for_which_its_condition_is_true(condition: str, expected: str) -> None:
    assert selected(condition) == expected


# Expressions


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3 ^ 2", "19"),
        ("(1 + 2) * 3", "9"),
        ("-bytes + 1", "-99"),
        ("7 % 4 - 5 / 2", "0.5"),
        ("bytes / 0", ""),
        ("lane + 1", ""),
        ("abs(0 - 3)", "3"),
        ("ceil(1.2)", "2"),
        ("floor(1.8)", "1"),
        ("greatest(1, bytes, 3)", "100"),
        ("least(1, bytes)", "1"),
        ("sqrt(16)", "4"),
        ("log(1)", "0"),
        ("log(0)", ""),
        ("strlen(lane)", "4"),
        ('concat(lane, "-", image_id, nothing)', "fast-a"),
        ("toupper(lane)", "FAST"),
        ("tolower(level)", "info"),
        ('trim("  x ")', "x"),
        ('ltrim("xxy", "x")', "y"),
        ('rtrim("yxx", "x")', "y"),
        ('substr("xyZfooxyZ", 3, 3)', "foo"),
        ('substr("xyZfoo", 3)', "foo"),
        ('replace(lane, "f", "p")', "past"),
        ('strcontains(lane, "as")', "1"),
        ("isempty(nothing)", "1"),
        ('isblank("  ")', "1"),
        ("isempty(lane)", "0"),
        ('coalesce(nothing, lane, "x")', "fast"),
        ("coalesce(nothing)", ""),
        ("bin(1h)", "2026-11-22 12:00:00.000"),
        ("datefloor(@timestamp, 1d)", "2026-11-22 00:00:00.000"),
        ("dateceil(@timestamp, 1 d)", "2026-11-23 00:00:00.000"),
        ("toMillis(@timestamp)", str(NOON)),
        (f"fromMillis({NOON + 1})", "2026-11-22 12:00:00.001"),
        ("@timestamp + 1", str(NOON + 1)),
        ('"a text"', "a text"),
        (r'"with \" quotes"', 'with " quotes'),
        ("bytes = 100", "1"),
    ],
)
def test_an_expression_has_a_value(expression: str, value: str) -> None:
    query = f"filter bytes = 100 | display {expression.replace('1 d', '1d')} as found"
    [row] = run(query)
    assert row.get("found", "") == value


# parse


@pytest.mark.parametrize(
    ("parse", "fields"),
    [
        ('parse @message "RequestId: * Duration: * ms" as id, took', {"id": "17", "took": "12.5"}),
        ('parse "RequestId: * Duration" as id', {"id": "17"}),
        ('parse @message "Duration: *" as took', {"took": "12.5 ms"}),
        (r"parse @message /RequestId: (?<id>\d+) Duration: (?<took>[\d.]+)/", {"id": "17", "took": "12.5"}),
        ('parse @message "nothing *" as id', {}),
        ("parse nothing /(?<id>x)/", {}),
    ],
)
def test_parse_takes_fields_from_a_text(parse: str, fields: dict[str, str]) -> None:
    assert run(f'filter @message like "REPORT" | {parse} | display id, took') == [fields]


def test_what_was_parsed_is_shown_if_nothing_says_what_to_show() -> None:
    [row] = run('filter @message like "REPORT" | parse @message "RequestId: * " as id')
    assert (row["id"], row["@message"]) == ("17", EVENTS[5][2])


# stats


def test_stats_has_a_row_for_each_group() -> None:
    query = "filter ispresent(level) | stats count(*), count(bytes) as sized by image_id, level | sort image_id, level"
    assert run(query) == [
        {"image_id": "a", "level": "ERROR", "count(*)": "1", "sized": "0"},
        {"image_id": "a", "level": "INFO", "count(*)": "2", "sized": "1"},
        {"image_id": "b", "level": "INFO", "count(*)": "2", "sized": "1"},
    ]


def test_groups_may_be_of_time_and_of_what_is_missing() -> None:
    assert run("stats count(*) as n by bin(5m) | sort `bin(5m)`") == [
        {"bin(5m)": "2026-11-22 12:00:00.000", "n": "5"},
        {"bin(5m)": "2026-11-22 12:05:00.000", "n": "1"},
    ]
    assert run("stats count(*) as n by lane | sort lane") == [
        {"n": "4"},
        {"lane": "fast", "n": "1"},
        {"lane": "slow", "n": "1"},
    ]


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [
        ("sum(bytes)", "400"),
        ("avg(bytes)", "200"),
        ("avg(seconds)", "6.25"),
        ("min(seconds)", "2.5"),
        ("max(seconds)", "10"),
        ("max(image_id)", "b"),
        ("min(@timestamp)", "2026-11-22 12:00:00.000"),
        ("pct(bytes, 50)", "100"),
        ("pct(bytes, 95)", "300"),
        ("stddev(bytes)", "141.4214"),
        ("stddev(error.at.0)", ""),
        ("count_distinct(image_id)", "2"),
        ("earliest(message)", "accepted"),
        ("latest(message)", "done"),
        ("sortsFirst(message)", "accepted"),
        ("sortsLast(message)", "failed"),
        ("count()", "6"),
        ('sum(level = "ERROR")', "1"),
        ("sum(bytes) / count(*)", str(400 / 6)),
        ("sum(nothing)", ""),
        ("latest(nothing)", ""),
    ],
)
def test_an_aggregate_is_over_the_values_that_there_are(aggregate: str, value: str) -> None:
    [row] = run(f"stats {aggregate} as found")
    assert row.get("found", "") == value


def test_an_output_of_stats_may_use_those_before_it_and_stats_may_follow_stats_and_have_no_result() -> None:
    assert run("stats max(bytes) as most, min(bytes) as least, most - least as between") == [
        {"most": "300", "least": "100", "between": "200"}
    ]
    assert run("stats count(*) as n by image_id | stats max(n) as most") == [{"most": "3"}]
    assert run('filter level = "FATAL" | stats count(*)') == []


# sort, limit, dedup


def test_rows_are_sorted_by_numbers_as_such_and_those_without_a_value_come_first() -> None:
    assert column("filter ispresent(seconds) | sort seconds | display seconds") == ["2.5", "10"]
    assert column("filter ispresent(seconds) | sort seconds desc | display seconds") == ["10", "2.5"]
    assert column("sort lane desc, @timestamp asc | display image_id | limit 3") == ["b", "a", "a"]
    assert run("sort bytes | display bytes | limit 5")[3:] == [{}, {"bytes": "100"}]


def test_texts_are_sorted_naturally() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax-Sort.html
    ordered = ["!:", "#", "*%04", "0#", "5A", "111A", "2345_", "@", "@_", "A", "A9876fghj", "a12345hfh"]
    ordered += ["0", "01", "1", "2", "3"]
    backwards = ordered[::-1]
    assert sorted(backwards, key=sort_key)[:12] == ordered[:12]
    assert [float(each) for each in sorted(backwards, key=sort_key)[12:]] == [0, 1, 1, 2, 3]


@pytest.mark.guards("emulator-dedup-missing-values")
def test_dedup_keeps_the_first_of_equal_rows_and_all_without_a_value() -> None:
    assert column("filter ispresent(level) | sort @timestamp | dedup image_id | limit 9") == [
        "2026-11-22 12:00:00.000",
        "2026-11-22 12:00:01.000",
    ]
    assert len(run("dedup lane")) == 6
    assert len(run("dedup level")) == 3


def test_the_least_limit_counts() -> None:
    assert len(run("limit 3")) == 3
    assert len(run("limit 3", limit=2)) == 2
    assert len(run("fields @message", limit=4)) == 4


@pytest.mark.guards("emulator-insights-nested-aggregate")
@pytest.mark.parametrize(
    ("query", "complaint", "place"),
    [
        ("", "expected a command", (0, 0)),
        ("fields a |", "expected a command, not 'the end'", (10, 10)),
        ("pattern @message", "the embedded AWS does not know the command 'pattern'", (0, 7)),
        ("fields round(a)", "the embedded AWS does not know the function 'round'", (7, 12)),
        ("fields strlen(a, b)", "strlen does not take 2 arguments", (7, 19)),
        ("filter count(*) > 1", "count can be used in stats only", (7, 12)),
        ("stats max(count(*))", "count can be used in stats only", (10, 15)),
        ("stats count(*) by count(*)", "count can be used in stats only", (18, 23)),
        ("filter", "expected a field, a number or a text", (6, 6)),
        ("filter a = ", "expected a field, a number or a text", (11, 11)),
        ("filter a b", "expected |, not 'b'", (9, 10)),
        ("filter a not b", "expected like or in", (13, 14)),
        ("filter a like b", "expected a text in quotes", (14, 15)),
        ('filter a =~ "b"', "expected a regular expression", (12, 15)),
        ("filter a like /[/", "unterminated character set", (14, 17)),
        ("filter a in (1)", "expected [", (12, 13)),
        ("filter (a", "expected )", (9, 9)),
        ("filter a = ~", "unexpected symbol '~'", (11, 12)),
        ("fields bin(5x)", "expected a period", (11, 13)),
        ("fields bin(a)", "expected a period", (11, 12)),
        ("fields a as", "expected a name", (11, 11)),
        ('parse @message "a * b *" as c', "2 * for 1 names", (15, 29)),
        ("parse @message /a/", "names its groups", (15, 18)),
        ("parse @message", "expected a text with *", (14, 14)),
        ("limit 0", "a limit is a number from 1 to 10000", (6, 7)),
        ("limit many", "expected a number", (6, 10)),
        ("dedup a | sort a", "only limit may follow dedup", (10, 14)),
    ],
)
def test_a_faulty_query_is_refused_with_the_place(query: str, complaint: str, place: tuple[int, int]) -> None:
    with pytest.raises(MalformedQuery) as refused:
        compile_query(query)
    assert complaint in str(refused.value)
    assert (refused.value.start, refused.value.end) == place
