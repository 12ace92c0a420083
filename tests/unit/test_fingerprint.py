"""Which failures are one defect."""

from __future__ import annotations

import pytest

from darkroom.domain.kernel.fingerprint import (
    WORKER,
    StackFrame,
    call_note,
    fingerprint,
    guilty_frame,
    is_defect,
    own_frames,
    shortened,
)
from repository.report import ROOT

STACK = """Traceback (most recent call last):
  File "/var/task/app.py", line 90, in settle
    transcode_image(ports, message)
  File "/opt/python/darkroom/operations/images/transcode_image.py", line 210, in _develop
    made = engine.develop(recipe)
  File "/opt/python/pydantic/main.py", line 1, in validate
    raise KeyError(name)
KeyError: 'large'
"""
OTHERS = STACK.replace("/opt/python/pydantic", "/opt/python/lib/python3.13/site-packages/pydantic")


def test_the_guilty_frame_is_the_last_one_of_our_own_code() -> None:
    guilty = StackFrame(
        file="operations/images/transcode_image.py",
        line=210,
        function="_develop",
        source="made = engine.develop(recipe)",
    )
    assert guilty_frame(OTHERS) == guilty
    assert own_frames(OTHERS) == [
        guilty,
        StackFrame(file="app.py", line=90, function="settle", source="transcode_image(ports, message)"),
    ]
    assert str(guilty_frame(OTHERS)) == "operations/images/transcode_image.py:210 in _develop"


@pytest.mark.guards("fingerprints-own-code-only")
@pytest.mark.parametrize(
    "path",
    [
        "/opt/python/pydantic/main.py",
        "/opt/python/lib/python3.13/site-packages/PIL/Image.py",
        "/var/lang/lib/python3.13/concurrent/futures/thread.py",
        "<frozen importlib._bootstrap>",
        "/home/me/darkroom/.darkroom/run/python/PIL/Image.py",
        "/home/darkroom/.venv/lib/python3.13/site-packages/PIL/Image.py",
    ],
)
def test_code_of_others_is_never_guilty(path: str) -> None:
    stack = STACK.replace("/opt/python/pydantic/main.py", path)
    assert fingerprint("KeyError", stack) == "KeyError@operations/transcode_image.py:_develop"


AWS_CALL = """  File "/opt/python/darkroom/aws/images/objects.py", line 48, in get
    answer = self._client.get_object(
  File "/opt/python/lib/python3.13/site-packages/botocore/client.py", line 606, in _api_call
    return self._make_api_call(operation_name, kwargs)
           ~~~~~~~~~~~~~~~~~~~^^^^^^^^^^^^^^^^^^^^^^^^
  File "/opt/python/darkroom/aws/kernel/circuits.py", line 70, in _guarded_call
    answer = self._call(operation, arguments)
  File "/opt/python/darkroom/aws/kernel/clients.py", line 152, in timed
    return call(operation, arguments)
  File "/opt/python/lib/python3.13/site-packages/botocore/client.py", line 1094, in _make_api_call
    raise error_class(parsed_response, operation_name)
botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetObject operation: No
"""


@pytest.mark.guards("fingerprints-aws-wrappers-skipped")
def test_the_caller_of_aws_is_guilty_and_not_what_every_call_goes_through() -> None:
    assert [frame.function for frame in own_frames(STACK + AWS_CALL)][:2] == ["get", "_develop"]
    assert fingerprint("ClientError", AWS_CALL) == "ClientError@aws/objects.py:get"
    alone = AWS_CALL[AWS_CALL.index('  File "/opt/python/darkroom/aws/kernel/circuits.py') :]
    assert fingerprint("ClientError", alone) == "ClientError@aws/clients.py:timed", "there is nothing else"


def test_a_failed_call_to_aws_is_one_defect_per_operation_code_and_resource() -> None:
    def named(*call: str) -> str:
        return fingerprint("ClientError", f"{AWS_CALL}{call_note(*call)}\n")

    assert named("GetObject", "AccessDenied", "bucket photos") == (
        "ClientError@aws/objects.py:get/GetObject/AccessDenied/photos"
    )
    assert named("ListBuckets", "AccessDenied", "") == "ClientError@aws/objects.py:get/ListBuckets/AccessDenied"
    handled = f"{AWS_CALL}{call_note('GetObject', 'NoSuchKey', 'bucket photos')}\n\nDuring handling …\n\n{STACK}"
    assert fingerprint("KeyError", handled) == "KeyError@operations/transcode_image.py:_develop"


@pytest.mark.guards("fingerprints-former-name")
def test_a_defect_is_also_found_by_the_name_that_it_had_before() -> None:
    named_now = "ClientError@aws/objects.py:get"
    assert is_defect(named_now, "ClientError", AWS_CALL)
    assert is_defect("ClientError@aws/clients.py:timed", "ClientError", AWS_CALL)
    assert not is_defect("ClientError@aws/circuits.py:_guarded_call", "ClientError", AWS_CALL)
    assert not is_defect(named_now, "KeyError", AWS_CALL)


@pytest.mark.parametrize("characters", [8, 300, 700, 1000, 10_000])
def test_a_stack_that_is_too_long_keeps_its_end_and_our_own_code_first(characters: int) -> None:
    kept = shortened(STACK + AWS_CALL, characters)
    assert len(kept) <= characters and kept.endswith("ion: No\n")
    assert characters < 700 or fingerprint("ClientError", kept) == "ClientError@aws/objects.py:get"
    assert characters < 700 or "line 1094, in _make_api_call" in kept, "where it was raised"
    assert (kept == STACK + AWS_CALL) is (characters == 10_000)


def test_a_frame_without_its_source_is_not_given_the_next_ones() -> None:
    without = "\n".join(line for line in STACK.splitlines() if not line.startswith("    "))
    assert [frame.source for frame in own_frames(without)] == ["", ""]


def test_a_handler_is_named_by_its_file_and_a_checkout_may_be_called_darkroom_too() -> None:
    assert fingerprint("E", '  File "/var/task/app.py", line 3, in handler\n') == "E@app.py:handler"
    elsewhere = '  File "/home/me/darkroom/layers/core/darkroom/domain/images/image.py", line 3, in begin\n'
    assert fingerprint("E", elsewhere) == "E@domain/image.py:begin"


def test_the_folder_of_a_subject_makes_no_other_defect() -> None:
    flat = (STACK + AWS_CALL).replace("operations/images/", "operations/")
    for subject in ("images/", "kernel/"):
        flat = flat.replace(f"darkroom/aws/{subject}", "darkroom/aws/")
    assert flat != STACK + AWS_CALL
    assert fingerprint("E", flat) == fingerprint("E", STACK + AWS_CALL)
    assert own_frames(flat)[0].file == "aws/objects.py", "what the stack says"


def test_another_line_is_the_same_defect_and_another_function_or_exception_another_one() -> None:
    assert fingerprint("KeyError", STACK.replace("210", "215")) == fingerprint("KeyError", STACK)
    assert fingerprint("KeyError", STACK.replace("_develop", "_store")) != fingerprint("KeyError", STACK)
    assert fingerprint("IndexError", STACK) != fingerprint("KeyError", STACK)


@pytest.mark.parametrize("stack", ["", "killed", STACK[-20:]])
def test_a_stack_without_our_code_has_no_guilty_frame(stack: str) -> None:
    assert (guilty_frame(stack), fingerprint("E", stack)) == (None, "E@?")


@pytest.mark.parametrize(
    ("path", "handler", "file"),
    [
        (
            "/opt/python/darkroom/operations/kernel/check_message.py",
            None,
            "layers/core/darkroom/operations/kernel/check_message.py",
        ),
        ("/opt/python/darkroom/telemetry.py", "read_image", "layers/core/darkroom/telemetry.py"),
        (
            "/home/me/darkroom/layers/core/darkroom/domain/images/image.py",
            None,
            "layers/core/darkroom/domain/images/image.py",
        ),
        ("/var/task/app.py", "read_image", "functions/read_image/app.py"),
        ("/var/task/app.py", None, "app.py"),
        ("/home/me/darkroom/functions/read_image/app.py", None, "functions/read_image/app.py"),
    ],
)
def test_a_frame_is_found_in_a_checkout_by_its_path_from_the_root(path: str, handler: str | None, file: str) -> None:
    frame = guilty_frame(f'  File "{path}", line 3, in begin\n')
    assert frame is not None and frame.path(handler) == file
    assert handler is None or (ROOT / file).is_file()


def test_the_worker_is_a_function_of_the_checkout() -> None:
    assert (ROOT / "functions" / WORKER / "app.py").is_file()
