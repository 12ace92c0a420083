"""What rides in the Lambda layer is what functions run."""

import re

import grimp

from darkroom_cli.doctor.checkout import SLICES_OF_PARTS
from repository.report import ROOT


def test_the_layer_has_no_module_that_no_function_reaches() -> None:
    graph = grimp.build_graph("darkroom", "functions", cache_dir=None)
    functions = {module for module in graph.modules if module.endswith(".app")}
    assert len(functions) > 10
    reached = {module for function in functions for module in graph.find_upstream_modules(function)}
    # Loaded by their names, by `load_part`.
    by_name = {module for module in graph.modules if module.endswith(".for_core")}
    reached |= by_name | {module for name in by_name for module in graph.find_upstream_modules(name)}
    packages = {module for module in graph.modules if graph.find_children(module)}
    assert {module for module in graph.modules if module.startswith("darkroom")} - reached - packages == set()


def test_doctor_looks_for_the_slices_of_parts_in_the_layer_into_which_they_are_built() -> None:
    built = re.search(r"foreach slice,([\w ]+),", (ROOT / "layers" / "core" / "Makefile").read_text())
    assert built is not None
    assert set(built[1].split()) == SLICES_OF_PARTS
