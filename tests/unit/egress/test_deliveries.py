"""Deliveries leave for the address that was checked and for no other, whatever the name server says and how often."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from itertools import cycle

from darkroom.domain.webhooks.delivery import MAX_ATTEMPTS, DeliveryStatus
from darkroom.egress.receiver import HttpReceiver
from tests.support.fakes.world import WebhooksWorld, event
from tests.unit.egress.certificates import Authority
from tests.unit.egress.conftest import Internet
from tests.unit.egress.servers import Server, serving

PUBLIC = "93.184.215.14"


class RebindingNameServer:
    """Answers each question with the next of these, and again from the beginning: no two answers in a row are the
    same."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.asked: list[str] = []
        self.private = 0
        self._answers = cycle(answers)

    def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answer = next(self._answers)
        self.private += answer != [PUBLIC]
        return answer


def unavailable(connection: socket.socket, server: Server) -> None:
    """Hears each of several requests, and answers 503."""
    server.received = b""
    server.hear(connection)
    server.say(connection, b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")


def test_a_name_server_that_rebinds_leads_no_attempt_inside(internet: Internet, authority: Authority) -> None:
    inside = (["127.0.0.1"], ["169.254.169.254"], [PUBLIC, "10.0.0.1"])
    server_says = RebindingNameServer(*(answer for address in inside for answer in ([PUBLIC], address)))
    world = WebhooksWorld()
    world.receiver = HttpReceiver(clock=world.clock, resolve=server_says)
    endpoint = world.add("https://hooks.example/")
    with serving(unavailable, authority.server("hooks.example")) as server:
        internet.port = server.port
        world.send(event())
        world.run_for(90 * 3600)
    (row,) = world.rows(endpoint)
    assert (row.status, len(row.attempts)) == (DeliveryStatus.FAILED, MAX_ATTEMPTS)
    assert server_says.asked == ["hooks.example"] * MAX_ATTEMPTS, "a name is resolved once for each attempt"
    assert server_says.private == MAX_ATTEMPTS // 2
    assert [attempt.status for attempt in row.attempts] == [503, None] * (MAX_ATTEMPTS // 2)
    assert all((attempt.error or "").startswith("refused_address: ") for attempt in row.attempts[1::2])
    assert internet.opened == [(PUBLIC, 443)] * (MAX_ATTEMPTS // 2)
