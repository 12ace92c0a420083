"""Filter patterns, as CloudWatch Logs documents them."""

import pytest

from local_aws.filter_patterns import InvalidPattern, compile_pattern, number

# The events and most patterns of https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
TRAIL = """{"eventType": "UpdateTrail", "sourceIPAddress": "111.111.111.111", "arrayKey": ["value", "another value"],
    "objectList": [{"name": "a", "id": 1}, {"name": "b", "id": 2}], "SomeObject": null, "cluster.name": "c",
    "ThisFlag": true, "latency": 55.5, "code": "400"}"""
USERS = """{"user": {"id": 1, "email": "John.Stiles@example.com"},
    "users": [{"id": 2, "email": "John.Doe@example.com"}, {"id": 3, "email": "Jane.Doe@example.com"}],
    "actions": ["GET", "PUT", "DELETE"], "coordinates": [[0, 1, 2], [4, 5, 6], [7, 8, 9]]}"""
REQUEST = '127.0.0.1 Prod frank [10/Oct/2000:13:25:15 -0700] "GET /index.html HTTP/1.0" 404 1534'
FAILED = "ERROR 09/25/2014 12:00:02 Failed to process request"


def matches(pattern: str, message: str) -> bool:
    return compile_pattern(pattern).match(message) is not None


@pytest.mark.guards("emulator-filter-optional-terms")
@pytest.mark.parametrize(
    ("pattern", "outcomes"),
    [
        # "ERROR WARN message", "ERROR message", "WARN message"
        ("", "111"),
        ("  ", "111"),
        ("ERROR", "110"),
        ("error", "000"),
        ("ERR", "110"),
        ("ERROR WARN", "100"),
        ("?ERROR ?WARN", "111"),
        ("?ERROR", "110"),
        ("ERROR -WARN", "010"),
        ("-WARN", "010"),
        ("?ERROR WARN", "101"),
        ('"WARN message"', "101"),
        ('"RN mess" -"ERROR WARN"', "001"),
        ("%^ERROR [a-z]%", "010"),
    ],
)
def test_terms_are_included_excluded_or_optional(pattern: str, outcomes: str) -> None:
    messages = ("ERROR WARN message", "ERROR message", "WARN message")
    assert "".join("01"[matches(pattern, message)] for message in messages) == outcomes


@pytest.mark.guards("emulator-filter-missing-value")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ('{ $.eventType = "UpdateTrail" }', True),
        ("{ $.eventType = UpdateTrail }", True),
        ("{$.eventType=Update*}", True),
        ('{ $.eventType = "*Trail" }', True),
        ('{ $.eventType = "Trail" }', False),
        ('{ $.eventType != "*Trail" }', False),
        ("{ $.sourceIPAddress != 123.123.* }", True),
        ("{ $.sourceIPAddress = 111.111.* }", True),
        ('{ $.arrayKey[0] = "value" }', True),
        ('{ $.arrayKey[2] = "value" }', False),
        ('{ $.arrayKey[*] = "another value" }', True),
        ("{ $.eventType = %Trail% }", True),
        ("{ $.eventType = %^Trail% }", False),
        ("{ $.eventType != %^Trail% }", True),
        ("{ $.arrayKey[*] = %val.{2}% }", True),
        (r"{ $.* = %111\.111\.111\.1[0-9]{1,2}% }", True),
        ("{ $.objectList[1].id = 2 }", True),
        ("{ $.objectList[1].id = 2.0 }", True),
        ("{ $.objectList[0].id = 2 }", False),
        ("{ $.['cluster.name'] = \"c\" }", True),
        ("{ $.SomeObject IS NULL }", True),
        ("{ $.eventType IS NULL }", False),
        ("{ $.ThisFlag IS TRUE }", True),
        ("{ $.ThisFlag IS FALSE }", False),
        ("{ $.SomeOtherObject NOT EXISTS }", True),
        ("{ $.SomeObject NOT EXISTS }", False),
        ("{ $.latency > 55 && $.latency < 56 }", True),
        ("{ $.latency >= 55.5 && $.latency <= 5.55e1 }", True),
        ("{ $.latency > 55.5 }", False),
        ("{ $.latency = 5* }", True),
        ("{ $.code = 400 }", True),
        ("{ $.code = 4* }", True),
        ("{ $.code != 500 }", True),
        ("{ $.eventType != 500 }", True),
        ("{ $.eventType > 1 }", False),
        # an array, an object, null, a flag and what is missing are no values
        ("{ $.arrayKey = value }", False),
        ("{ $.arrayKey != value }", False),
        ("{ $.objectList[0] != 1 }", False),
        ("{ $.SomeObject != 1 }", False),
        ('{ $.ThisFlag = "*" }', False),
        ("{ $.SomeOtherObject != 1 }", False),
    ],
)
def test_a_pattern_for_json_compares_what_its_selector_selects(pattern: str, expected: bool) -> None:
    assert matches(pattern, TRAIL) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ('{ ($.user.id = 1) && ($.users[0].email = "John.Doe@example.com") }', True),
        ('{ $.user.email = "John.Stiles@example.com" || $.coordinates[0][1] = "non" && $.actions[2] = "non" }', True),
        ('{ ($.user.email = "John.Stiles@example.com" || $.coordinates[0][1] = "n") && $.actions[2] = "n" }', False),
        ('{ ($.user.id = 2 && $.users[0].email = "nonmatch") || $.actions[2] = "GET" }', False),
        ("{ (($.user.id = 2 || ($.coordinates[1][2] = 6))) }", True),
    ],
)
def test_conditions_are_joined_with_and_before_or(pattern: str, expected: bool) -> None:
    assert matches(pattern, USERS) == expected


@pytest.mark.parametrize(
    "message", ["no JSON", "", "17", '"text"', '2026-11-24T12:00:00Z\t{"eventType": "UpdateTrail"}']
)
def test_a_pattern_for_json_matches_documents_alone(message: str) -> None:
    assert not matches('{ $.eventType NOT EXISTS || $.eventType = "*" }', message)


@pytest.mark.parametrize(
    ("pattern", "message", "expected"),
    [
        ("[ip, user, username, timestamp, request, status_code, bytes]", REQUEST, True),
        ("[ip, user, username, timestamp, request, status_code, bytes, more]", REQUEST, False),
        (
            r"[ip=%127\.0\.0\.[1-9]%, user, username, timestamp, request =*.html*, status_code = 4*, bytes]",
            REQUEST,
            True,
        ),
        ("[..., request =*.html*, status_code = 4*, bytes]", REQUEST, True),
        ("[..., request =*.png*, status_code = 4*, bytes]", REQUEST, False),
        ("[ip, user, ..., status_code, bytes > 1000]", REQUEST, True),
        ("[ip, user, ..., status_code, bytes > 1534]", REQUEST, False),
        ("[..., status_code = 404 || status_code = 410, bytes]", REQUEST, True),
        ("[..., status_code = 4* && status_code != 404, bytes]", REQUEST, False),
        ("[ip, user = Prod, ...]", REQUEST, True),
        ("[w1=ERROR, w2]", FAILED, True),
        ("[w1=ERROR || w1=WARNING, w2]", FAILED, True),
        ("[w1!=ERROR && w1!=WARNING, w2]", FAILED, False),
        ('[w1, ..., last = "request"]', FAILED, True),
        ("[w1, , time=12*, ...]", FAILED, True),
    ],
)
def test_a_pattern_for_fields_compares_them_in_their_order(pattern: str, message: str, expected: bool) -> None:
    assert matches(pattern, message) == expected


@pytest.mark.parametrize(
    ("pattern", "message", "selector", "value"),
    [
        ("{ $.latency = * }", TRAIL, "$.latency", 55.5),
        ("{ $.latency = * }", TRAIL, "$.objectList[1].name", "b"),
        ("{ $.latency = * }", TRAIL, "$.objectList", None),
        ("{ $.latency = * }", TRAIL, "$.nowhere", None),
        ("[..., status_code, bytes]", REQUEST, "$bytes", "1534"),
        ("[ip, ..., bytes]", REQUEST, "$ip", "127.0.0.1"),
        ("[w1, w2]", FAILED, "$w2", "09/25/2014 12:00:02 Failed to process request"),
        ("[w1, w2]", FAILED, "$w3", None),
        ("ERROR", FAILED, "$w1", None),
    ],
)
def test_a_match_has_the_values_of_its_event(pattern: str, message: str, selector: str, value: object) -> None:
    match = compile_pattern(pattern).match(message)
    assert match is not None
    assert match.value(selector) == value


@pytest.mark.parametrize(
    ("text", "value"), [("1534", 1534), ("-1.5e3", -1500), ("", None), ("1 ms", None), (7, 7), (None, None)]
)
def test_a_number_may_be_written_as_text(text: str | float | None, value: float | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("{ $.a = 1", "{ has no counterpart"),
        ("[a, b", "[ has no counterpart"),
        ('"open', "a quotation mark has no counterpart"),
        ("foo-bar", 'needs quotes: "foo-bar"'),
        ("{ }", "the end is not expected there"),
        ("{ $.a }", "the end is not expected there"),
        ("{ $.a = }", "the end is not expected there"),
        ("{ $.a = 1 && }", "the end is not expected there"),
        ("{ ($.a = 1 }", "the end is not expected there"),
        ("{ $.a = 1) }", ") is not expected there"),
        ("{ $.a EXISTS }", "EXISTS is not expected there"),
        ("{ $.a IS NOT NULL }", "NOT is not expected there"),
        ("{ a = 1 }", "a is no selector"),
        ("{ $.a.* = 1 && $.*[*] = 2 }", "more than one wildcard"),
        ("{ $.a > text }", "compares numbers"),
        ("{ $.a = a@b }", 'needs quotes: "a@b"'),
        ("{ $.a = %(a)% }", "may not have parentheses"),
        ("{ $.a = %[% }", "unterminated character set"),
        ("{ $.a ~ 1 }", "~ 1 is not expected there"),
        ("[..., a, ...]", "one ... only"),
        ("[a = 1 b]", "b is not expected there"),
    ],
)
def test_a_faulty_pattern_is_refused_with_what_is_wrong(pattern: str, complaint: str) -> None:
    with pytest.raises(InvalidPattern) as refused:
        compile_pattern(pattern)
    assert complaint in str(refused.value)
