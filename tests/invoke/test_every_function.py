"""Every function is invoked by a test here."""

import re

from tests.local.local_stack import REPOSITORY


def test_every_function_is_run_by_a_test_of_this_folder() -> None:
    functions = {file.parent.name for file in (REPOSITORY / "functions").glob("*/app.py")}
    tests = (REPOSITORY / "tests" / "invoke").glob("test_*.py")
    invoked = {name for file in tests for name in re.findall(r'\binvoke\(\s*"(\w+)"', file.read_text())}
    assert functions
    assert functions - invoked == set()
