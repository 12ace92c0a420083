"""One word, one meaning: words that were replaced by the field's own do not come back."""

from __future__ import annotations

import re
import subprocess
import tomllib

from repository.report import ROOT

LIST = ROOT / "tests" / "replaced_words.toml"


def test_replaced_words_are_left_only_in_the_history() -> None:
    listed = tomllib.loads(LIST.read_text())
    words = "|".join(re.escape(word) for kind in listed.values() for word in sorted(kind, key=len, reverse=True))
    # Each as a whole word, or as the beginning of a name in camel case; SQS itself says "Dead Letter Queue".
    pattern = re.compile(rf"(?<![\w-])(?<!Dead )_?(?:{words})(?![a-z0-9_])")
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--", ".", ":!CHANGELOG.md", f":!{LIST.relative_to(ROOT)}"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    left = []
    for name in filter(None, tracked):
        try:
            text = (ROOT / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError):  # a picture; a file that is being moved
            continue
        left += [f"{name}: {match[0]}" for match in pattern.finditer(text)]
    assert left == []
