"""extensions/negotiate_format.js: which file of a picture a reader gets, and which addresses there are."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from repository.report import ROOT

FUNCTION = ROOT / "extensions" / "negotiate_format.js"
FOLDER = f"/public/{'0' * 26}/2-0a1b2c3d/"

CHROME = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
CASES: list[tuple[str, str]] = [
    ("", "jpg"),
    ("*/*", "jpg"),
    ("image/*", "jpg"),
    (CHROME, "avif"),
    ("image/webp,image/png,image/*;q=0.8,*/*;q=0.5", "webp"),
    ("image/avif;q=0,image/webp", "webp"),
    ("image/avif;q=0.000 , image/webp;q=0.0", "jpg"),
    ("IMAGE/AVIF ; Q=0.5", "avif"),
    ("image/avif;q=0.5,image/webp;q=0.6", "webp"),
    ("image/avif;q=0.5,image/jpeg", "jpg"),
    ("image/avif;q=0.5,image/jpeg;q=0.4,*/*", "avif"),
    ("image/avif;q=0.5,image/*;q=0.6,*/*;q=0.1", "jpg"),
    ("image/avif;q=1.1", "jpg"),
    ("image/avif;q=-1,image/webp;q=0.1234", "jpg"),
    ("image/avif;profile=a,image/webp;q=1;ext=2", "webp"),
    ("image/avif,image/avif;q=0", "jpg"),
    ("image/avifx,ximage/avif,image /avif", "jpg"),
    ("__proto__,constructor;q=0,,;,", "jpg"),
]
HOSTILE = {"quoted": 'a/b;c=",image/avif,"', "long": "image/avif," + "," * 2048, "slow": ";q=0" * 500}


def answers(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    program = [node, str(ROOT / "tests" / "unit" / "negotiate_format.mjs"), str(FUNCTION)]
    run = subprocess.run(program, input=json.dumps(events), text=True, capture_output=True, check=True)
    answered: list[dict[str, Any]] = json.loads(run.stdout)
    return answered


def asking(uri: str, *accepts: str) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    if accepts:
        headers["accept"] = {"value": accepts[0]}
    if len(accepts) > 1:
        headers["accept"]["multiValue"] = [{"value": accept} for accept in accepts]
    return {"context": {"eventType": "viewer-request"}, "request": {"uri": uri, "headers": headers, "method": "GET"}}


def chosen(accepts: Sequence[Sequence[str]]) -> list[str]:
    uris = [answer["uri"] for answer in answers([asking(f"{FOLDER}card", *accept) for accept in accepts])]
    assert all(uri.startswith(f"{FOLDER}card.") for uri in uris)
    return [uri.rpartition(".")[2] for uri in uris]


def expected(accept: Sequence[tuple[str, int]]) -> str:
    """What a reader with these weights, in thousandths, gets."""
    weights: dict[str, int] = {}
    for kind, weight in accept:
        weights[kind] = min(weight, weights.get(kind, 1000))
    jpeg = next((weights[kind] for kind in ("image/jpeg", "image/*", "*/*") if kind in weights), 0)
    files = {"avif": weights.get("image/avif", 0), "webp": weights.get("image/webp", 0), "jpg": max(jpeg, 1)}
    files = {name: weight for name, weight in files.items() if weight or name == "jpg"}
    return max(files, key=lambda name: files[name] if name != "jpg" else jpeg)


@pytest.mark.guards("edge-long-accept-ignored", "edge-quoted-accept-ignored")
def test_a_reader_gets_the_best_file_that_its_header_names() -> None:
    assert chosen([[accept] for accept, _ in CASES]) == [extension for _, extension in CASES]
    assert chosen([[text] for text in HOSTILE.values()]) == ["jpg"] * len(HOSTILE)
    assert chosen([[], ["image/webp", "image/avif"]]) == ["jpg", "avif"]


def test_random_headers_are_read_as_the_standard_says() -> None:
    rng = random.Random(1)
    kinds = ["image/avif", "image/webp", "image/jpeg", "image/*", "*/*", "text/html"]
    asked = [[(rng.choice(kinds), rng.randrange(0, 1001, 250)) for _ in range(rng.randrange(6))] for _ in range(2000)]
    written = [[", ".join(f"{kind};q={weight / 1000:.3f}" for kind, weight in accept)] for accept in asked]
    assert chosen(written) == [expected(accept) for accept in asked]


@pytest.mark.guards("edge-known-addresses-only")
def test_only_addresses_of_files_that_can_be_there_reach_the_bucket() -> None:
    kept = [f"{FOLDER}card.{extension}" for extension in ("jpg", "png", "webp", "avif", "gif")]
    assert [answer["uri"] for answer in answers([asking(uri, CHROME) for uri in kept])] == kept
    image, other = FOLDER.split("/")[2:4], "/outputs/"
    odd = [
        "",
        "/",
        FOLDER,
        f"{FOLDER}card/",
        f"{FOLDER}card.",
        f"{FOLDER}card.exe",
        f"{FOLDER}card.webp.webp",
        f"{FOLDER}card%2ejpg",
        f"{FOLDER}%2563ard",
        f"{FOLDER}../card",
        f"{FOLDER}..",
        f"{FOLDER}/card",
        f"{FOLDER}\\card",
        f"{FOLDER}card\n",
        f"{FOLDER}{'a' * 33}",
        f"/{FOLDER}card",
        f"/public/..{other}{image[0]}/1/card",
        f"{other}{image[0]}/1/card.jpg",
        f"/public/{image[0][1:]}/1/card",
        f"/public/{image[0]}/1-x/card",
    ]
    refused = answers([asking(uri, CHROME) for uri in odd])
    assert [(answer.get("uri"), answer.get("statusCode")) for answer in refused] == [(None, 404)] * len(odd)


def test_every_answer_says_that_it_varies_and_keeps_what_it_said() -> None:
    before = [
        {},
        {"vary": {"value": "Origin"}},
        {"vary": {"value": "A", "multiValue": [{"value": "A"}, {"value": "B"}]}},
    ]
    events = [{"context": {"eventType": "viewer-response"}, "response": {"headers": headers}} for headers in before]
    assert [answer["headers"]["vary"] for answer in answers(events)] == [
        {"value": "Accept"},
        {"value": "Origin, Accept"},
        {"value": "A, B, Accept"},
    ]


def test_the_function_is_small_enough_for_cloudfront() -> None:
    assert FUNCTION.stat().st_size <= 10 * 1024


def test_the_template_has_this_text_without_the_names_of_its_guards() -> None:
    """CloudFormation reads a function's code from the template alone; one line is one guard's."""
    code = re.sub(r"  // guard: .+", "", FUNCTION.read_text())
    text = "".join(f"        {line}" if line.strip() else line for line in code.splitlines(keepends=True))
    assert f"FunctionCode: |\n{text}\n" in (ROOT / "extensions" / "delivery.yaml").read_text()
