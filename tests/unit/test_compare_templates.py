"""Comparing what two templates deploy, and expanding loops."""

from __future__ import annotations

import pytest

from checks.compare_templates import differences
from repository.expand_template import TEMPLATE, without_loops


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        ({"DependsOn": ["A", "B"]}, {"DependsOn": ["B", "A"]}, True),
        ({"DependsOn": "A"}, {"DependsOn": ["A"]}, True),
        ({"DependsOn": "A"}, {"DependsOn": "B"}, False),
        ({"Effect": "Allow", "Action": ["a", "b"]}, {"Effect": "Allow", "Action": ["b", "a"]}, True),
        ({"Effect": "Allow", "Action": ["a"]}, {"Effect": "Allow", "Action": ["a", "b"]}, False),
        ({"Effect": "Allow", "Resource": "*"}, {"Effect": "Allow", "Resource": ["*"]}, True),
        ({"Layers": ["a", "b"]}, {"Layers": ["b", "a"]}, False),
        ({"Arn": {"Fn::GetAtt": "A.Arn"}}, {"Arn": {"Fn::GetAtt": ["A", "Arn"]}}, True),
        ({"Enabled": True}, {"Enabled": 1}, False),
        ({"Value": None}, {}, False),
    ],
)
def test_order_matters_where_it_does_for_cloudformation(old: object, new: object, equal: bool) -> None:
    changes = list(differences({"Resources": {"It": old}}, {"Resources": {"It": new}}))
    assert (not changes) == equal, changes


def test_nothing_of_a_loop_is_left_in_the_template() -> None:
    text = str(without_loops(TEMPLATE))
    for left in ("ForEach", "FindInMap", "${Lane}", "${Queue}", "${Function}", "${Bucket}", "${Severity}"):
        assert left not in text
