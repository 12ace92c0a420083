"""Pictures on a website, by the local edge: from an upload to a page in Chromium, and to nothing after a deletion."""

from __future__ import annotations

import hashlib
import http.client
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest

from browser import chromium, installed
from browser.installed import NoChromium
from darkroom.aws.edge.p256 import sign
from darkroom.domain.edge.policies import for_a_url, keys_in, policy_for
from tests.local.keyed import client, done, key_of
from tests.local.local_stack import PHOTO, LocalStack, wait_until

RECIPE = (
    '{"variants": [{"name": "s", "width": 160}, {"name": "m", "width": 320},'
    ' {"name": "card", "width": 240, "format": "negotiated"}]}'
)


REFUSED = (400, 403, 404)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    stack = LocalStack(state=tmp_path_factory.mktemp("delivered"))
    with stack.serving("--access", "keys", "--delivery", "--enforce-iam"):
        for tenant in ("shop", "others"):
            added = stack.darkroom("tenants", "add", tenant)
            assert added.returncode == 0, added.stdout
        yield stack


def upload(stack: LocalStack, key: str, visibility: str) -> dict[str, Any]:
    with client(stack, key) as api:
        query = {"recipe": RECIPE, "visibility": visibility}
        sent = api.post("/images", params=query, content=PHOTO.read_bytes(), headers={"Content-Type": "image/jpeg"})
        assert sent.status_code == 202, sent.text
        document = done(api, sent.json()["id"])
        if visibility == "signed":  # whoever reads while nobody can sign, as when the signer starts, gets no URL yet
            wait_until(lambda: is_signed(api, document), "its URLs are signed")
        return document


def is_signed(api: httpx.Client, document: dict[str, Any]) -> bool:
    """Whether the image's URLs can be signed now; what is read joins the document."""
    document |= api.get(f"/images/{document['id']}").json()
    return document["picture"] is not None


def fetch(url: str, **headers: str) -> httpx.Response:
    return httpx.get(url, headers=headers, trust_env=False, timeout=60)


def status_of(stack: LocalStack, target: str, **headers: str) -> int:
    """The answer to exactly this target: httpx would leave out dots and encode what is encoded."""
    connection = http.client.HTTPConnection(urlsplit(edge_of(stack)).netloc, timeout=60)
    connection.putrequest("GET", target)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def edge_of(stack: LocalStack) -> str:
    return stack.record.extensions["delivery"]["Url"]


@pytest.mark.promise("delivery-deleted-everywhere")
def test_a_public_picture_is_on_a_page_without_a_key_and_gone_after_its_deletion(
    delivered: LocalStack, tmp_path: Path
) -> None:
    key = key_of(delivered, "shop")
    document = upload(delivered, key, "public")
    picture = document["picture"]
    for variant in document["variants"]:
        for expected in ("Miss", "Hit"):
            answer = fetch(variant["url"], Accept="image/avif,image/webp,*/*" if variant["format"] == "avif" else "*/*")
            assert answer.headers["x-cache"].startswith(expected)
            assert answer.headers["cache-control"].startswith("public, max-age=86400")
            assert answer.headers["x-content-type-options"] == "nosniff"
    assert (delivered.darkroom("keys", "revoke", key).returncode, fetch(picture["url"]).status_code) == (0, 200)
    on_request = f"{edge_of(delivered)}/t/{document['id']}/w_640.webp"
    assert fetch(on_request).headers["content-type"] == "image/webp"

    page_file = tmp_path / "page.html"
    page_file.write_text(f'<img src="{picture["url"]}" srcset="{picture["srcset"]}" sizes="100vw" alt="">')
    try:
        installed.path()
    except NoChromium as missing:
        pytest.skip(str(missing))
    with chromium.running() as browser:
        page = browser.new_page()
        page.goto(page_file.as_uri())
        page.wait_for_function("() => document.images[0].complete && document.images[0].naturalWidth > 0")
        (widest,) = [variant["url"] for variant in document["variants"] if variant["name"] == "m"]
        assert page.evaluate("() => document.images[0].currentSrc") == widest

    another = key_of(delivered, "shop")
    with client(delivered, another) as api:
        deleted = api.delete(f"/images/{document['id']}")
        assert (deleted.status_code, "darkroom-edge-until" in deleted.headers) == (204, True)
    wait_until(lambda: fetch(picture["url"]).status_code in (403, 404), "the edge forgets it", seconds=180)
    urls = [on_request, *(variant["url"] for variant in document["variants"])]
    assert {fetch(url).status_code for url in urls} <= {403, 404}


def test_a_first_request_makes_a_variant_once_for_all_and_none_that_is_not_allowed(delivered: LocalStack) -> None:
    key = key_of(delivered, "shop")
    public, private = upload(delivered, key, "public"), upload(delivered, key, "private")
    url = f"{edge_of(delivered)}/t/{public['id']}/w_320.jpg"
    with ThreadPoolExecutor(100) as viewers:
        answers = list(viewers.map(fetch, [url] * 100))
    assert {answer.status_code for answer in answers} == {200}
    (ahead,) = [variant for variant in public["variants"] if variant["name"] == "m"]
    assert {hashlib.sha256(answer.content).hexdigest() for answer in answers} == {ahead["sha256"]}
    stored = delivered.client("s3").head_object(
        Bucket=delivered.output("OutputsBucketName"), Key=f"public/{public['id']}/t1/w_320.jpg"
    )
    assert {answer.headers["etag"] for answer in answers if "etag" in answer.headers} <= {stored["ETag"]}
    assert answers[0].headers["cache-control"] == "public, max-age=86400, immutable"
    for wrong, status in (
        *((f"{public['id']}/w_321.jpg", 404), (f"{private['id']}/w_320.jpg", 404), (f"{public['id']}/t1/x", 404)),
        *((f"..%2fpublic/{public['id']}/w_320.jpg", 404), (f"{public['id']}/%77_320.jpg", 404)),
        (f"{public['id']}/w_320-s_{'0' * 26}.jpg", 404),
    ):
        assert fetch(f"{edge_of(delivered)}/t/{wrong}").status_code == status, wrong


@pytest.mark.promise("edge-private-never-served")
def test_nothing_private_is_served_and_nothing_signed_without_its_signature(delivered: LocalStack) -> None:
    key, others = key_of(delivered, "shop"), key_of(delivered, "others")
    private, public, other = (
        upload(delivered, some, visibility)
        for some, visibility in ((key, "private"), (key, "public"), (others, "private"))
    )
    row = delivered.client("dynamodb")
    for document in (private, other):
        assert document["picture"] is None
    keys = [
        variant["key"]["S"] if "S" in variant["key"] else variant["key"]
        for document in (private, other)
        for variant in _variants(row, delivered, document["id"])
    ]
    assert len(keys) == 2 * len(private["variants"])
    for path in keys:
        tail = path.partition("/")[2]
        tries = (
            *(path, f"public/{tail}", f"signed/{tail}", f"public/../{path}", f"public/%2e%2e/{path}", f"/{path}"),
            *(f"public/..%2f{path}", f"public/%252e%252e/{quote(path, safe='')}", quote(path, safe=""), f"i/../{path}"),
            *(f"i/{private['id']}/s", f"i/{other['id']}/m", f"public\\..\\{path}", f"public/{path}"),
        )
        for tried in tries:
            assert status_of(delivered, f"/{tried}") in REFUSED, tried
    assert fetch(public["picture"]["url"]).status_code == 200


def _variants(dynamodb: Any, stack: LocalStack, image_id: str) -> list[dict[str, Any]]:
    item = dynamodb.get_item(TableName=stack.output("ImagesTableName"), Key={"image_id": {"S": image_id}})["Item"]
    return [variant["M"] for variant in item["variants"]["L"]]


@pytest.mark.promise("edge-private-never-served")
def test_a_signed_picture_is_served_by_its_own_signature_of_a_trusted_key_alone(delivered: LocalStack) -> None:
    def signing_keys(*command: str) -> int:
        return delivered.darkroom("delivery", "keys", *command).returncode

    assert signing_keys("create") == 0
    key, others = key_of(delivered, "shop"), key_of(delivered, "others")
    document, other = upload(delivered, key, "signed"), upload(delivered, others, "signed")
    edge, image_id = edge_of(delivered), document["id"]
    url, another = document["picture"]["url"], other["picture"]["url"]
    assert fetch(url).status_code == fetch(another).status_code == 200
    path, _, query = url.removeprefix(edge).partition("?")
    parts = dict(part.split("=", 1) for part in query.split("&"))
    secret = delivered.record.extensions["delivery"]["SigningSecretArn"]
    (stored,) = keys_in(delivered.client("secretsmanager").get_secret_value(SecretId=secret)["SecretString"])

    def signed(policy: bytes, signature: bytes | None = None) -> str:
        made = sign(stored.private_key, policy) if signature is None else signature
        return f"Policy={for_a_url(policy)}&Signature={for_a_url(made)}&Key-Pair-Id={stored.id}&Hash-Algorithm=SHA256"

    resource, now = f"{edge}/signed/{image_id}/*", int(time.time())
    longer = f"Policy={for_a_url(policy_for(resource, now + 9999))}&Signature={parts['Signature']}"
    tail, (_, _, strange) = path.removeprefix("/signed/"), another.partition("?")
    assert status_of(delivered, f"{path}?{signed(policy_for(resource, now + 600))}") == 200
    for target in (
        *(path, f"{path}?", f"{path}?{signed(policy_for(resource, now - 1))}"),
        *(
            f"{path}?{query.replace('Signature=M', 'Signature=N')}",
            f"{path}?{query}&Key-Pair-Id=K0",
            f"{path}?{strange}",
        ),
        f"{path}?{longer}&Key-Pair-Id={stored.id}&Hash-Algorithm=SHA256",
        f"{path}?{signed(policy_for(resource, now + 600), b'')}",
        *(f"/public/{tail}?{query}", f"/outputs/{tail}?{query}", f"/i/{image_id}/m?{query}", f"/PUBLIC/{tail}"),
        f"/signed/{other['id']}/../{tail}?{strange}",
        f"/signed/{other['id']}/%2e%2e/{tail}?{strange}",
        *(f"/public/../signed/{tail}", f"/public/..%2fsigned/{tail}", f"/public/%252e%252e/signed/{tail}"),
        *(f"/signed%2f{tail}", f"/%73igned/{tail}", f"/%2573igned/{tail}", f"//signed/{tail}", f"/signed//{tail}"),
    ):
        assert status_of(delivered, target) in REFUSED, target
    junk = {
        "Accept": "image/avif;q=2,,;" * 99,
        "X_Forwarded_Host": "evil.example",
        "X_Original_URL": path,
        "Cookie": query,
    }
    for headers in (junk, {"X_Rewrite_URL": f"{path}?{query}"}, {"Authorization": f"Bearer {others}"}):
        assert status_of(delivered, path, **headers) in REFUSED
        assert status_of(delivered, "/public/", **headers) in REFUSED
    assert status_of(delivered, f"{path}?{query}", **junk) == 200
    assert fetch(url).content == fetch(url).content != b""

    assert (signing_keys("create"), signing_keys("rotate"), signing_keys("remove", stored.id)) == (0, 0, 1)
    with client(delivered, key) as api:
        wait_until(lambda: is_signed(api, document), "its URLs are signed")
    rotated = document["picture"]["url"]
    assert stored.id not in rotated
    assert fetch(url).status_code == fetch(rotated).status_code == 200
    assert signing_keys("remove", stored.id, "--leaked") == 0
    assert (fetch(url).status_code, fetch(rotated).status_code) == (403, 200)


def test_the_stable_address_follows_and_a_poisoned_header_reaches_no_other_viewer(delivered: LocalStack) -> None:
    document = upload(delivered, key_of(delivered, "shop"), "public")
    redirect = fetch(f"{edge_of(delivered)}/i/{document['id']}/m")
    assert redirect.status_code == 302
    assert redirect.headers["cache-control"].startswith("public, max-age=60")
    target = httpx.URL(edge_of(delivered)).join(redirect.headers["location"])
    (medium,) = [variant for variant in document["variants"] if variant["name"] == "m"]
    assert hashlib.sha256(fetch(str(target)).content).hexdigest() == medium["sha256"]
    (card,) = [variant for variant in document["variants"] if variant["name"] == "card"]
    poisons = {"X-Forwarded-Host": "evil.example", "X-Original-URL": "/evil", "Accept": "text/html," * 2000}
    assert fetch(card["url"], **poisons).headers["content-type"] == "image/jpeg"
    for accept, media_type in (("image/avif,*/*", "image/avif"), ("image/webp", "image/webp"), ("", "image/jpeg")):
        answer = fetch(card["url"], Accept=accept)
        assert (answer.headers["content-type"], answer.headers["vary"].lower()) == (media_type, "accept")
