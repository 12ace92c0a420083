"""How `darkroom local invoke` interprets SAM CLI's output, and names functions."""

import pytest

from local_aws.local_invoke import Answer, logical_id, read_answer


@pytest.mark.parametrize(
    ("output", "exit_status", "answer"),
    [
        ('{"statusCode": 202}\n', 0, Answer(payload={"statusCode": 202})),
        ("null\n", 0, Answer(payload=None)),
        ('"done"\n', 0, Answer(payload="done")),
        (
            '{"errorType": "KeyError", "errorMessage": "\'Records\'", "stackTrace": []}\n',
            0,
            Answer(
                payload={"errorType": "KeyError", "errorMessage": "'Records'", "stackTrace": []},
                error="KeyError: 'Records'",
            ),
        ),
        ("", 0, Answer(payload=None, error="The function did not answer: it timed out or its process ended.")),
    ],
    ids=["a response", "no response", "a text", "an error", "a timeout"],
)
def test_an_answer_is_the_functions_own_or_says_why_there_is_none(
    output: str, exit_status: int, answer: Answer
) -> None:
    assert read_answer(output, exit_status) == answer


def test_what_stopped_sam_itself_is_an_error_too() -> None:
    assert read_answer("", 1).error == "sam local invoke failed with status 1: it says why above."


def test_a_functions_resource_is_called_like_its_folder() -> None:
    assert logical_id("sweep_due_images") == "SweepDueImagesFunction"
