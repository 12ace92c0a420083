"""What moto and botocore find out anew for each call or client, found out once per process: importing this does it.

Half of the time of a test that calls AWS goes into that otherwise. What is called and what is answered stay the same.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import botocore.endpoint_provider
import botocore.session
from botocore.endpoint_provider import RuleSet
from botocore.hooks import EVENT_ALIASES, EventAliaser, HierarchicalEmitter
from moto.core import responses
from moto.core.base_backend import BaseBackend
from moto.core.models import RESPONSES_METHODS
from moto.core.serialize import BaseJSONSerializer
from moto.core.utils import camelcase_to_underscores, method_names_from_class
from moto.sqs import models as moto_queues

from tests.support.attribute_values import serialize_structure

_rule_sets: dict[int, tuple[list[Any], RuleSet]] = {}
_urls: dict[type[BaseBackend], Any] = {}
_aliaser: Any = EventAliaser(HierarchicalEmitter(), EVENT_ALIASES)
_alias = cache(_aliaser._alias_event_name)
_with_underscores = cache(camelcase_to_underscores)


def _rules_once(*, rules: list[Any], **others: Any) -> RuleSet:
    if id(rules) not in _rule_sets:
        _rule_sets[id(rules)] = rules, RuleSet(rules=rules, **others)
    return _rule_sets[id(rules)][1]


def _urls_once(backend: BaseBackend, urls: Any = BaseBackend.urls) -> Any:
    if type(backend) not in _urls:
        _urls[type(backend)] = urls.__get__(backend)
    return _urls[type(backend)]


def _quicken() -> None:
    # The models of services, which each session would read, and how they tell a service's address.
    botocore.session.create_loader = cache(botocore.session.create_loader)
    botocore.endpoint_provider.RuleSet = _rules_once  # type: ignore[misc, assignment]
    EventAliaser._alias_event_name = lambda _, name: _alias(name)  # type: ignore[attr-defined]
    # moto's own addresses, which each call would put together; the library `requests`, for which it would prepare
    # 1,300 answers, is used by nobody here.
    RESPONSES_METHODS.clear()
    BaseBackend.urls = property(_urls_once)  # type: ignore[assignment, method-assign]
    BaseJSONSerializer._serialize_type_structure = serialize_structure  # type: ignore[assignment, method-assign]
    # Always the same few names.
    vars(moto_queues)["camelcase_to_underscores"] = vars(responses)["camelcase_to_underscores"] = _with_underscores
    vars(responses)["method_names_from_class"] = cache(method_names_from_class)


_quicken()
