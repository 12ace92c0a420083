"""`darkroom webhooks listen`: what it prints and sends, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from darkroom.domain.events.event import EventType, ReceivedEvent, read_event
from darkroom_cli.events import work
from darkroom_cli.webhooks import forward, listen
from darkroom_client.signature import is_signed
from tests.support.stack import FakeStack
from tests.unit.cli.conftest import Run
from tests.unit.cli.fake_api import FakeApi, Reply, image_id_of
from tests.unit.cli.published_events import event, text_of
from tests.unit.egress.servers import Server, answering, serving


@dataclass
class Publisher:
    """What a stack publishes: some events, and then nothing more until Ctrl-C."""

    publishes: list[str] = field(default_factory=lambda: [text_of(event())])
    asked_for: list[tuple[str | None, list[str]]] = field(default_factory=list)
    queues: int = 0
    ended_by: tuple[signal.Signals, ...] = (signal.SIGINT,)

    @contextmanager
    def following(
        self, _: FakeStack, *, tenant: str | None, types: Sequence[str], stop: Callable[[], bool]
    ) -> Iterator[Iterator[tuple[ReceivedEvent, str]]]:
        self.asked_for.append((tenant, list(types)))
        self.queues += 1
        try:
            yield self._events(stop)
        finally:
            self.queues -= 1

    def _events(self, stop: Callable[[], bool]) -> Iterator[tuple[ReceivedEvent, str]]:
        for body in self.publishes:
            assert not stop()
            yield read_event(body), body
        for number in self.ended_by:
            signal.raise_signal(number)
        assert stop()


@pytest.fixture
def publisher(stack: FakeStack, monkeypatch: pytest.MonkeyPatch) -> Publisher:
    publisher = Publisher()
    for module in (listen, work):
        monkeypatch.setattr(module, "following", publisher.following)
    return publisher


def secret_in(output: str) -> str:
    (line,) = [line for line in output.splitlines() if "whsec_" in line]
    return line.split()[-1]


def test_each_event_is_printed_and_sent_as_it_is_and_signed(run: Run, api: FakeApi, publisher: Publisher) -> None:
    publisher.publishes = [text_of(event(1)), text_of(event(2, EventType.FAILED))]
    api.faults["POST"].extend([Reply(status=204), Reply(status=200, body="fine")])
    result = run("webhooks", "listen", "--forward-to", f"{api.url}/webhooks?of=mine")
    assert (result.exit_code, publisher.queues, result.stderr) == (130, 0, "")
    first, second = api.requests
    for seen, sent in ((first, event(1)), (second, event(2, EventType.FAILED))):
        assert (seen.method, seen.path, seen.query) == ("POST", "/webhooks", {"of": ["mine"]})
        assert (seen.headers["content-type"], seen.headers["webhook-id"]) == ("application/json", sent.event_id)
        assert seen.body == text_of(sent).encode()
        assert is_signed(secret_in(result.stdout), seen.headers, seen.body)
    shown = result.stdout.splitlines()
    assert secret_in(result.stdout) in shown[0]
    assert shown[1] == f"Listening to shop, sending to {api.url}/webhooks?of=mine. Ctrl-C ends it."
    assert shown[2] == f"2026-11-23T09:00:02.417Z  image.done       {image_id_of('1')}  acme  sequence 3"
    assert shown[3].startswith("  204 after ") and shown[5].startswith("  200 after ")
    assert len(shown) == 6


def test_each_session_has_a_secret_of_its_own(run: Run, api: FakeApi, publisher: Publisher) -> None:
    api.faults["POST"].extend([Reply(status=204), Reply(status=204)])
    command = ("webhooks", "listen", "--forward-to", api.url)
    assert secret_in(run(*command).stdout) != secret_in(run(*command).stdout)


def test_without_an_address_events_are_printed_and_nothing_is_sent(
    run: Run, api: FakeApi, publisher: Publisher
) -> None:
    result = run("webhooks", "listen")
    assert (result.exit_code, api.requests) == (130, [])
    assert result.stdout.splitlines()[0] == "Listening to shop. Ctrl-C ends it."
    assert "whsec_" not in result.output and image_id_of("1") in result.stdout


def test_as_json_nothing_but_events_is_on_standard_output(run: Run, api: FakeApi, publisher: Publisher) -> None:
    api.faults["POST"].append(Reply(status=500))
    result = run("webhooks", "listen", "--forward-to", api.url, "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [json.loads(text_of(event()))]
    assert secret_in(result.stderr) and "  500 after" in result.stderr


def test_what_is_asked_for_is_followed(run: Run, publisher: Publisher) -> None:
    publisher.publishes = []
    run("webhooks", "listen", "--tenant", "acme", "--type", "image.d*", "--type", "image.done")
    run("webhooks", "listen")
    assert publisher.asked_for == [("acme", ["image.done", "image.deleted"]), (None, [])]


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (Reply(status=401, body=b"No \x1b[31msignature.\nmore"), ": No \N{REPLACEMENT CHARACTER}[31msignature. If it"),
        (Reply(status=403), "this session's secret"),
        (Reply(status=302, headers={"Location": "/elsewhere"}), "Redirects are not followed"),
        (Reply(status=405, body=b""), "Does it take POST at this path?"),
        (Reply(status=500, body=b"x" * 300), f": {'x' * 200}"),
    ],
)
def test_an_answer_that_is_no_success_is_shown_with_what_to_do(
    run: Run, api: FakeApi, publisher: Publisher, reply: Reply, shown: str
) -> None:
    publisher.publishes = [text_of(event(1)), text_of(event(2))]
    api.faults["POST"].extend([reply, Reply(status=204)])
    result = run("webhooks", "listen", "--forward-to", api.url)
    assert shown in result.stdout and "  204 after" in result.stdout
    assert [seen.path for seen in api.requests] == ["/", "/"]


def test_a_program_that_is_down_is_told_and_the_next_event_is_sent_again(run: Run, publisher: Publisher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    publisher.publishes = [text_of(event(1)), text_of(event(2))]
    result = run("webhooks", "listen", "--forward-to", f"http://127.0.0.1:{port}/webhooks")
    assert (result.exit_code, publisher.queues) == (130, 0)
    assert result.stderr.count(f"error: http://127.0.0.1:{port}/webhooks cannot be reached") == 2
    assert "start your program there" in result.stderr
    assert image_id_of("2") in result.stdout


def test_a_program_that_gives_no_whole_answer_is_told(run: Run, api: FakeApi, publisher: Publisher) -> None:
    api.faults["POST"].append(Reply(lost=True))
    result = run("webhooks", "listen", "--forward-to", api.url)
    assert "gave no complete answer" in result.stderr and "see your program's log" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("command", [("events", "tail"), ("webhooks", "listen")])
def test_what_ends_it_from_outside_leaves_no_queue_however_often_it_comes(
    run: Run, publisher: Publisher, command: tuple[str, str], number: signal.Signals
) -> None:
    publisher.ended_by = (number, number)
    by_the_runner = signal.signal(number, signal.SIG_DFL)  # `nohup make test` has SIGHUP ignored, and so would this be
    try:
        result = run(*command)
    finally:
        signal.signal(number, by_the_runner)
    assert (result.exit_code, publisher.queues) == (130, 0)
    assert image_id_of("1") in result.stdout


def test_an_interrupt_waits_for_no_program(run: Run, publisher: Publisher) -> None:
    def behave(connection: socket.socket, server: Server) -> None:
        server.hear(connection)
        os.kill(os.getpid(), signal.SIGINT)
        server.stopping.wait()

    publisher.publishes = [text_of(event(1)), text_of(event(2))]
    with serving(behave) as server:
        result = run("webhooks", "listen", "--forward-to", f"http://127.0.0.1:{server.port}")
        assert (result.exit_code, publisher.queues, server.connections) == (130, 0, 1)
    assert image_id_of("2") not in result.stdout


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_program_that_takes_too_long_is_told_whether_it_says_nothing_or_a_byte_now_and_then(is_silent: bool) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"

    def behave(connection: socket.socket, server: Server) -> None:
        server.hear(connection)
        if is_silent:
            server.stopping.wait()
        else:
            server.say(connection, head)
            server.drip(connection, b"x" * 40)

    with (
        serving(behave) as server,
        forward.Forwarder(f"http://127.0.0.1:{server.port}", b"s" * 32, seconds=0.2) as forwarder,
        pytest.raises(forward.NotAnswered, match="did not answer within"),
    ):
        forwarder.send(read_event(text_of(event())), text_of(event()))


def test_only_the_beginning_of_an_answer_is_read() -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 100_000
    with (
        serving(answering(endless)) as server,
        forward.Forwarder(f"http://127.0.0.1:{server.port}", b"s" * 32) as forwarder,
    ):
        answer = forwarder.send(read_event(text_of(event())), text_of(event()))
    assert (answer.status, answer.body) == (200, b"x" * forward.MAX_BODY_BYTES)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--forward-to", "localhost:3000"), "not a URL like"),
        (("--forward-to", "ftp://localhost"), "not a URL like"),
        (("--forward-to", "http://"), "not a URL like"),
        (("--forward-to", "http://localhost:port"), "not a URL"),
        (("--forward-to", "http://a\nb"), "not a URL"),
        (("--type", "image.gone"), "no type of event"),
        (("--type", "*.gone"), "no type of event"),
    ],
)
def test_what_is_not_understood_does_nothing(
    run: Run, publisher: Publisher, arguments: tuple[str, ...], problem: str
) -> None:
    result = run("webhooks", "listen", *arguments)
    assert (result.exit_code, publisher.asked_for) == (2, [])
    assert problem in result.output
