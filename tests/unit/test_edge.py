"""edge.yaml: what CloudFront passes on, and what WAF refuses."""

from __future__ import annotations

from typing import Any

from darkroom.domain.kernel.tenants import Tier
from repository.expand_template import without_loops
from repository.openapi.routes import ROUTES
from repository.report import ROOT

EDGE = without_loops(ROOT / "edge.yaml")
ACL: dict[str, Any] = EDGE["Resources"]["WebAcl"]["Properties"]
DISTRIBUTION: dict[str, Any] = EDGE["Resources"]["Distribution"]["Properties"]["DistributionConfig"]


def test_nothing_is_cached_and_everything_but_the_host_is_passed_on() -> None:
    behaviour = DISTRIBUTION["DefaultCacheBehavior"]
    # AWS's own policies CachingDisabled and AllViewerExceptHostHeader.
    assert behaviour["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
    assert behaviour["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac"
    assert "CacheBehaviors" not in DISTRIBUTION


def test_every_method_of_the_api_gets_through_and_only_by_tls() -> None:
    behaviour, (origin,) = DISTRIBUTION["DefaultCacheBehavior"], DISTRIBUTION["Origins"]
    assert {method for route in ROUTES for method in route.methods} <= set(behaviour["AllowedMethods"])
    assert behaviour["ViewerProtocolPolicy"] == "https-only"
    assert origin["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only"
    assert (origin["DomainName"], behaviour["TargetOriginId"]) == ({"Ref": "ApiDomain"}, origin["Id"])


def test_addresses_and_credentials_are_limited_by_parameter_before_they_cost_anything() -> None:
    assert DISTRIBUTION["WebACLId"] == {"Fn::GetAtt": ["WebAcl", "Arn"]}
    assert (ACL["Scope"], ACL["DefaultAction"]) == ("CLOUDFRONT", {"Allow": {}})
    limits = {rule["Name"]: rule["Statement"].get("RateBasedStatement") for rule in ACL["Rules"]}
    answers = {rule["Name"]: rule["Action"]["Block"]["CustomResponse"] for rule in ACL["Rules"] if "Action" in rule}
    assert set(answers) == {"OneAddress", "OneCredential"} == {name for name, limit in limits.items() if limit}
    # A client that gets this waits, and does not take its key for refused.
    assert {answer["ResponseCode"] for answer in answers.values()} == {429}
    assert all(answer["ResponseHeaders"] == [{"Name": "Retry-After", "Value": "60"}] for answer in answers.values())
    assert {answer["CustomResponseBodyKey"] for answer in answers.values()} == set(ACL["CustomResponseBodies"])
    address, credential = limits["OneAddress"], limits["OneCredential"]
    assert (address["AggregateKeyType"], address["Limit"]) == ("IP", {"Ref": "RequestsOfOneAddress"})
    assert credential["Limit"] == {"Ref": "RequestsOfOneCredential"}
    (key,) = credential["CustomKeys"]
    assert key["Header"]["Name"] == "authorization"
    assert {limit["EvaluationWindowSec"] for limit in (address, credential)} == {300}


def test_no_allowance_that_a_tenant_may_have_is_cut_at_the_edge() -> None:
    """An allowance is agreed; the edge stops what goes beyond it."""
    largest = max(tier.allowance.requests_per_second for tier in Tier)
    for name in ("RequestsOfOneCredential", "RequestsOfOneAddress"):
        assert EDGE["Parameters"][name]["Default"] >= 2 * largest * 300, "uploads and reads, for five minutes"


def test_the_rules_are_in_an_order() -> None:
    priorities = [rule["Priority"] for rule in ACL["Rules"]]
    assert priorities == sorted(set(priorities))
