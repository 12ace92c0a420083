"""The environment of a Python that imports the product's core and nothing else of the repository."""

import os

from repository.report import ROOT

CORE_ALONE = {
    "PYTHONPATH": str(ROOT / "layers" / "core"),
    # What the tests have compiled is not compiled again, and lies beside none of the sources.
    **{name: value for name, value in os.environ.items() if name == "PYTHONPYCACHEPREFIX"},
}
