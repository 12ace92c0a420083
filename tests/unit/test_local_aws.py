"""The embedded AWS is told by its caller which project it runs: its own code does not name one."""

from repository.report import ROOT


def test_the_embedded_aws_does_not_name_the_product() -> None:
    files = sorted((ROOT / "local_aws").rglob("*.py"))
    assert len(files) > 100
    naming = [str(file.relative_to(ROOT)) for file in files if "darkroom" in file.read_text().lower()]
    assert naming == []
