"""`sam local invoke` of the functions of extensions/delivery.yaml."""

import base64
import json
from pathlib import Path
from urllib.parse import urlsplit

from tests.invoke.deployed_stack import DeployedStack, sample_event


def asked_of_edge(function: str, path: str) -> dict[str, object]:
    event = sample_event(function) | {"rawPath": path}
    event["requestContext"]["http"]["path"] = path
    return event


def test_a_stable_address_leads_to_the_present_picture(stack: DeployedStack, tmp_path: Path) -> None:
    document = stack.published
    variant = document["variants"][0]

    event = asked_of_edge("redirect_image", f"/i/{document['id']}/{variant['name']}")
    answer = stack.invoke("redirect_image", event, tmp_path)

    assert (answer["statusCode"], answer["headers"]["Location"]) == (302, urlsplit(variant["url"]).path)


def test_a_variant_is_made_of_a_public_image(stack: DeployedStack, tmp_path: Path) -> None:
    event = asked_of_edge("make_variant", f"/public/{stack.published['id']}/t1/w_320.webp")
    answer = stack.invoke("make_variant", event, tmp_path)

    assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (200, "image/webp")
    assert base64.b64decode(answer["body"])[8:12] == b"WEBP"


def test_the_edge_is_told_what_to_forget(stack: DeployedStack, tmp_path: Path) -> None:
    before = stack.invalidations()

    assert stack.invoke("invalidate_edge", sample_event("invalidate_edge"), tmp_path) == {"batchItemFailures": []}

    assert stack.invalidations() == before + 1


def test_a_policy_is_signed_with_a_key_of_the_distribution(stack: DeployedStack, tmp_path: Path) -> None:
    stack.create_signing_key()

    event = sample_event("sign_image")
    answer = stack.invoke("sign_image", event, tmp_path)

    signed = base64.b64decode(answer["policy"].translate(str.maketrans("-_~", "+=/")))
    assert json.loads(signed)["Statement"][0]["Resource"] == event["resource"]
    assert answer["signature"]
