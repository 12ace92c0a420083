"""Comparing what two templates deploy, and expanding loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.compare_templates import differences, main
from repository.expand_template import TEMPLATE, without_loops

WRITTEN_OUT = """
Transform: AWS::Serverless-2016-10-31
Conditions:
  Wanted: !Equals [!Ref AWS::Region, eu-central-1]
Resources:
  FastQueue:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 30
      KmsMasterKeyId: !If [Wanted, !Ref Key, !Ref AWS::NoValue]
      RedrivePolicy: {deadLetterTargetArn: !GetAtt FastLetters.Arn}
      Tags:
        - {Key: what, Value: The fast lane waits for nobody.}
        - {Key: where, Value: !Sub "${AWS::StackName} and ${FastLetters.Arn}/*"}
  FastLetters: {Type: AWS::SQS::Queue}
  Key: {Type: AWS::KMS::Key}
Outputs:
  FastUrl: {Value: !Ref FastQueue}
"""

LOOPED = """
Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]
Mappings:
  Queues:
    Fast: {Title: fast lane, Seconds: 30}
Conditions:
  Wanted: !Equals [!Ref AWS::Region, eu-central-1]
Resources:
  Key: {Type: AWS::KMS::Key}
  Fn::ForEach::Queues:
    - Queue
    - [Fast]
    - ${Queue}Queue:
        Type: AWS::SQS::Queue
        Properties:
          VisibilityTimeout: !FindInMap [Queues, !Ref Queue, Seconds]
          KmsMasterKeyId: !If [Wanted, !Ref Key, !Ref AWS::NoValue]
          RedrivePolicy: {deadLetterTargetArn: {Fn::GetAtt: [!Sub "${Queue}Letters", Arn]}}
          Tags:
            - Key: what
              Value: !Sub ["The ${Title} waits for nobody.", {Title: !FindInMap [Queues, !Ref Queue, Title]}]
            - Key: where
              Value: !Sub ["${AWS::StackName} and ${Arn}/*", {Arn: {Fn::GetAtt: [!Sub "${Queue}Letters", Arn]}}]
      ${Queue}Letters: {Type: AWS::SQS::Queue}
Outputs:
  Fn::ForEach::Urls:
    - Queue
    - [Fast]
    - ${Queue}Url: {Value: {Ref: !Sub "${Queue}Queue"}}
"""


@pytest.fixture
def written_out(tmp_path: Path) -> Path:
    (tmp_path / "old.yaml").write_text(WRITTEN_OUT)
    return tmp_path / "old.yaml"


@pytest.fixture
def looped(tmp_path: Path) -> Path:
    (tmp_path / "new.yaml").write_text(LOOPED)
    return tmp_path / "new.yaml"


def test_loops_and_what_they_make_are_equal(
    written_out: Path, looped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(written_out), str(looped)]) == 0
    assert capsys.readouterr().out == "0 differences in 3 resources\n"


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (("[Fast]\n    - ${Queue}Queue", "[Late]\n    - ${Queue}Queue"), "Resources: FastQueue is gone"),
        (("Seconds: 30", "Seconds: 31"), "Resources: FastQueue.Properties.VisibilityTimeout: 30 → 31"),
        (("Seconds: 30", 'Seconds: "30"'), 'Resources: FastQueue.Properties.VisibilityTimeout: 30 → "30"'),
        (("Title: fast", "Title: slow"), "Resources: FastQueue.Properties.Tags[0].Value: "),
        (("!Ref Key, !Ref AWS", "!Ref Kei, !Ref AWS"), "KmsMasterKeyId.Fn::If[1].Ref"),
        (("eu-central-1", "eu-west-1"), "Conditions: Wanted.Fn::Equals[1]"),
        (("Type: AWS::SQS::Queue\n", "Type: AWS::SQS::Queue\n        DeletionPolicy: Retain\n"), "nothing → "),
        (("${Queue}Url", "${Queue}Uri"), "Outputs: FastUri is new"),
        (('Key: {Type: AWS::KMS::Key}', 'Key: {Type: AWS::KMS::Key, Metadata: {a: b}}'), "Resources: Key.Metadata"),
    ],
)  # fmt: skip
def test_differences_are_reported(
    written_out: Path, looped: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], difference: str
) -> None:
    before, after = change
    text = looped.read_text()
    assert before in text
    text = text.replace("Fast: {Title", "Late: {Title") if "Late" in after else text
    looped.write_text(text.replace(before, after, 1))
    assert main([str(written_out), str(looped)]) == 1
    assert difference in capsys.readouterr().out


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
