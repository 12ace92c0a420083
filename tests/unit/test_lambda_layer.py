"""What rides in the Lambda layer is what functions run."""

import grimp


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
