"""The page: which file a path leads to, how it is packed, and what its answers say."""

from __future__ import annotations

import base64
import gzip
import html
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from darkroom.domain.images.limits import MAX_BODY_BYTES
from darkroom.domain.recipes.presets import PRESETS
from darkroom.domain.recipes.written_recipes import InvalidRecipe, recipe_from_data
from darkroom.http.page.page import (
    content_security_policy,
    file_answer,
    page_settings,
    redirect_to_page,
    takes_gzip,
    unknown_file_answer,
    with_settings,
)
from darkroom.operations.page.serve_page import Elsewhere, File, FoundFile, UnknownFile, WebPage, serve_page
from darkroom.settings import MissingSettings
from darkroom.wiring.page import serve_page as wiring
from repository.report import ROOT

WEB = ROOT / "layers" / "page" / "web"
TREE = "0123456789abcdef"


def file(text: str, media_type: str = "text/plain") -> File:
    return File(media_type=media_type, etag='W/"1"', compressed=gzip.compress(text.encode()))


MAIN = file("import './core.js';")
SHELL = file("<meta content='{settings}'>")
PAGE = WebPage(tree=TREE, shell=SHELL, files={"main.js": MAIN, "vendor/preact.js": file("export {}")})


# ── Which file a path leads to ───────────────────────────────────────────────────────────────────────────────────────


def test_the_root_is_the_shell_which_is_not_final_and_a_file_under_the_hash_of_all_files_is() -> None:
    assert serve_page(PAGE, "/app/") == FoundFile(file=SHELL, is_final=False)
    assert serve_page(PAGE, f"/app/{TREE}/main.js") == FoundFile(file=MAIN, is_final=True)
    assert serve_page(PAGE, f"/app/{TREE}/vendor/preact.js").is_final
    with pytest.raises(Elsewhere):
        serve_page(PAGE, "/app")


@pytest.mark.guards("page-own-version-files")
@pytest.mark.parametrize(
    "path",
    [
        "/app/main.js",
        "/app/fedcba9876543210/main.js",
        f"/app/{TREE}",
        f"/app/{TREE}/",
        f"/app/{TREE}/none.js",
        f"/app/{TREE}/../{TREE}/main.js",
        f"/app/{TREE}//main.js",
        f"/app/{TREE}/index.html",
        f"/app/{TREE}/app/{TREE}/main.js",
        "/app/../../etc/passwd",
        "/application",
        "main.js",
    ],
)
def test_another_path_leads_to_no_file_also_one_of_an_earlier_version(path: str) -> None:
    with pytest.raises(UnknownFile):
        serve_page(PAGE, path)


# ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def answered(
    file: FoundFile, *, accept_encoding: str | None = "gzip, deflate, br", if_none_match: str | None = None
) -> dict[str, Any]:
    return file_answer(file, policy="default-src 'none'", accept_encoding=accept_encoding, if_none_match=if_none_match)


def test_a_file_is_sent_compressed_to_whom_takes_that_and_plain_to_others() -> None:
    file = FoundFile(file=MAIN, is_final=True)
    compressed, plain = answered(file), answered(file, accept_encoding=None)
    assert compressed["headers"]["Content-Encoding"] == "gzip" and "Content-Encoding" not in plain["headers"]
    assert gzip.decompress(base64.b64decode(compressed["body"])) == base64.b64decode(plain["body"])
    assert compressed["isBase64Encoded"] is plain["isBase64Encoded"] is True
    assert compressed["headers"]["Vary"] == plain["headers"]["Vary"] == "Accept-Encoding"


@pytest.mark.guards("page-gzip-refusal-respected")
@pytest.mark.parametrize(
    ("header", "takes"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("GZIP", True),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", True),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("*", True),
        ("*;q=0", False),
        ("gzip;q=0, *", False),
        ("x-gzip", True),
    ],
)
def test_a_client_says_whether_it_takes_gzip(header: str | None, takes: bool) -> None:
    assert takes_gzip(header) is takes


def test_a_final_file_is_kept_for_a_year_and_the_shell_is_asked_for_each_time() -> None:
    assert answered(FoundFile(file=MAIN, is_final=True))["headers"]["Cache-Control"] == (
        "public, max-age=31536000, immutable"
    )
    assert answered(FoundFile(file=SHELL, is_final=False))["headers"]["Cache-Control"] == "no-cache"


def test_a_current_copy_is_not_sent_again() -> None:
    answer = answered(FoundFile(file=SHELL, is_final=False), if_none_match=SHELL.etag)
    assert answer["statusCode"] == 304 and "body" not in answer
    assert {"ETag", "Cache-Control", "Vary", "Content-Security-Policy"} <= answer["headers"].keys()
    assert answered(FoundFile(file=SHELL, is_final=False), if_none_match='W/"0"')["statusCode"] == 200


def test_every_answer_protects_the_page() -> None:
    answers = [answered(FoundFile(file=SHELL, is_final=False)), redirect_to_page(), unknown_file_answer("r1")]
    for answer in answers:
        assert answer["headers"]["X-Content-Type-Options"] == "nosniff"
        assert answer["headers"]["Referrer-Policy"] == "no-referrer"
        assert answer["headers"]["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "camera=()" in answer["headers"]["Permissions-Policy"]
    assert (answers[1]["statusCode"], answers[1]["headers"]["Location"]) == (301, "/app/"), "the page without its slash"


@pytest.mark.guards("page-unknown-file-uncached")
def test_an_unknown_file_is_a_problem_that_nobody_keeps() -> None:
    answer = unknown_file_answer("r1")
    assert (answer["statusCode"], answer["headers"]["Cache-Control"]) == (404, "no-store")
    document = json.loads(answer["body"])
    assert (document["code"], document["correlation_id"]) == ("unknown_path", "r1")


# ── What a browser lets it do ────────────────────────────────────────────────────────────────────────────────────────


def policy(**sources: Any) -> dict[str, list[str]]:
    text = content_security_policy(uploads="https://up.test", outputs="https://out.test", **sources)
    return {name: rest.split() for name, _, rest in (part.partition(" ") for part in text.split("; "))}


def test_the_page_runs_its_own_files_and_calls_its_stack_and_the_issuer_alone_each_named_once() -> None:
    assert policy() == {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "blob:", "https://out.test"],
        "connect-src": ["'self'", "https://up.test", "https://out.test"],
        "worker-src": ["'self'"],
        "manifest-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        "frame-ancestors": ["'none'"],
        "require-trusted-types-for": ["'script'"],
        "trusted-types": ["darkroom"],
    }
    assert policy(sign_in=["https://issuer.test"])["connect-src"][3:] == ["https://issuer.test"]
    assert content_security_policy(uploads="http://a", outputs="http://a").count("http://a") == 2  # pictures, requests


# ── Its settings ─────────────────────────────────────────────────────────────────────────────────────────────────────

OF_TOKENS = {"issuer": "https://i.test", "client_id": "c", "audience": "a", "sign_in_origin": "https://s.test"}


def test_it_is_told_how_callers_sign_in_only_if_they_do() -> None:
    settings = page_settings(access="jwt", max_upload_bytes=7, **OF_TOKENS)
    assert {name: value for name, value in settings.items() if name in OF_TOKENS} == OF_TOKENS
    settings = page_settings(access="keys", max_upload_bytes=7, parts={"imports"}, **OF_TOKENS)
    assert settings["parts"] == ["imports"]
    assert {settings["issuer"], settings["client_id"], settings["audience"], settings["sign_in_origin"]} == {None}
    assert (settings["access"], settings["max_upload_bytes"]) == ("keys", 7)


def test_it_is_told_every_preset_as_a_recipe_that_the_api_takes() -> None:
    presets = page_settings(access="keys", max_upload_bytes=7, **OF_TOKENS)["presets"]
    assert {name: recipe_from_data(recipe) for name, recipe in presets.items()} == PRESETS


def test_it_is_told_the_limits_of_a_recipe_as_the_api_has_them() -> None:
    limits = page_settings(access="keys", max_upload_bytes=7, **OF_TOKENS)["limits"]
    usual = {"name": "a", "format": "jpeg", "width": limits["side_pixels"], "height": 1}

    def refused(*variants: dict[str, Any]) -> bool:
        try:
            recipe_from_data({"variants": [{**usual, **variant} for variant in variants]})
        except InvalidRecipe:
            return True
        return False

    many = [{"name": f"a{number}", "width": 1} for number in range(limits["variants"] + 1)]
    assert (refused(*many[1:]), refused(*many)) == (False, True)
    assert (refused({}), refused({"width": limits["side_pixels"] + 1})) == (False, True)
    for name, cost in limits["work_of_format"].items():
        height = int(limits["work_pixels"] / cost / limits["side_pixels"])
        if height < limits["side_pixels"]:
            tall = {"format": name, "height": height, **({"animation": "keep"} if name == "gif" else {})}
            assert (refused(tall), refused({**tall, "height": height + 1})) == (False, True), name


@pytest.mark.guards("operate-settings-escaped")
def test_settings_are_text_in_an_attribute_whatever_they_say() -> None:
    settings = {"issuer": "\"><script>alert('1')</script>&quot;"}
    shell = gzip.decompress(with_settings(file('<meta content="{settings}">'), settings, etag="e").compressed).decode()
    (content,) = re.findall(r'^<meta content="([^"<>]*)">$', shell)
    assert json.loads(html.unescape(content)) == settings


# ── Packing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def packer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pack", ROOT / "layers" / "page" / "pack.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_of_the_page_is_packed_and_read_again(packer: ModuleType, tmp_path: Path) -> None:
    packer.pack(WEB, tmp_path)
    tree, files = wiring.read_files([str(tmp_path / "elsewhere"), str(tmp_path)])
    assert files.keys() == {
        path.relative_to(WEB).as_posix()
        for path in WEB.rglob("*")
        if path.is_file() and not path.name.endswith(".d.ts")
    }
    for name, packed in files.items():
        content = (WEB / name).read_bytes().replace(b"{tree}", tree.encode() if name == "index.html" else b"{tree}")
        assert gzip.decompress(packed.compressed) == content
        assert packed.media_type.endswith("charset=utf-8") or name.endswith(".svg")


def test_the_client_that_teams_copy_is_small_and_sends_in_one_request_what_the_api_takes_in_one() -> None:
    source = (WEB / "darkroom-upload.js").read_bytes()
    assert len(gzip.compress(source, mtime=0)) < 6 * 1024
    assert not re.search(rb"^import |[^.]\bimport\(", source, re.MULTILINE), "it depends on nothing"
    (factors,) = re.findall(rb"DIRECT_BYTES = (\d+) \* 2 \*\* (\d+);", source)
    assert int(factors[0]) * 2 ** int(factors[1]) == MAX_BODY_BYTES


def test_the_shell_names_files_that_are_there(packer: ModuleType, tmp_path: Path) -> None:
    packer.pack(WEB, tmp_path)
    tree, files = wiring.read_files([str(tmp_path)])
    shell = gzip.decompress(files["index.html"].compressed).decode()
    named = re.findall(r'(?:href|src)="([^"]+)"', shell)
    assert named and {path.removeprefix(f"/app/{tree}/") for path in named} <= files.keys()
    assert shell.count("{settings}") == 1 and "{tree}" not in shell
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", shell), "no inline code"


def test_the_same_files_make_the_same_bytes_and_any_other_ones_another_hash(packer: ModuleType, tmp_path: Path) -> None:
    def packed(name: str, **contents: str) -> tuple[str, dict[str, File]]:
        sources = tmp_path / name / "web"
        sources.mkdir(parents=True)
        for stem, content in contents.items():
            (sources / stem.replace("_", ".")).write_text(content)
        packer.pack(sources, tmp_path / name)
        return wiring.read_files([str(tmp_path / name)])

    first = packed("first", index_html="{tree}", main_js="1")
    assert packed("second", index_html="{tree}", main_js="1") == first
    others = [
        packed("content", index_html="{tree}", main_js="2"),
        packed("shell", index_html="<p>{tree}", main_js="1"),
        packed("name", index_html="{tree}", other_js="1"),
        packed("one_more", index_html="{tree}", main_js="1", core_js=""),
    ]
    assert len({tree for tree, _ in [first, *others]}) == 5


def test_a_function_without_its_layer_says_so(tmp_path: Path) -> None:
    with pytest.raises(MissingSettings, match="PageLayer"):
        wiring.read_files([str(tmp_path)])
