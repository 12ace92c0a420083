"""Every function has a test here."""

from tests.local.local_stack import REPOSITORY


def test_every_function_is_run_by_a_test_of_this_folder() -> None:
    functions = {file.parent.name for file in (REPOSITORY / "functions").glob("*/app.py")}
    tested = {file.stem.removeprefix("test_") for file in (REPOSITORY / "tests" / "invoke").glob("test_*.py")}
    assert functions
    assert functions - tested == set()
