"""Retries, errors and the following of streams, without a network."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from baton_client import errors
from baton_client.errors import ApiError, ConnectionFailed, NotUnderstood, refusal
from baton_client.follow import Log, follow, wait
from baton_client.pages import pages
from baton_client.request import (
    Close,
    Give,
    Now,
    Open,
    Options,
    Pause,
    Read,
    Reply,
    Request,
    Send,
    change,
    get,
    path,
    pause_after,
    send,
)

STREAM = {"Content-Type": "text/event-stream"}


class World:
    """Carries out steps with what a test has prepared, and notes them."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.requests: list[Request] = []
        self.pauses: list[float] = []
        self.given: list[Any] = []
        self.clock = 0.0

    def carry(self, steps: Generator[Any, Any, Any]) -> Any:
        outcome: Any = None
        error: Exception | None = None
        while True:
            try:
                step = steps.throw(error) if error else steps.send(outcome)
            except StopIteration as end:
                return end.value
            outcome = error = None
            if isinstance(step, Give):
                self.given.append(step.value)
            elif isinstance(step, Now):
                outcome = self.clock
            elif isinstance(step, Pause):
                self.pauses.append(step.seconds)
                self.clock += step.seconds
            elif not isinstance(step, Close):
                if isinstance(step, (Send, Open)):
                    self.requests.append(step.request)
                assert self.outcomes, f"nothing is prepared for {step}"
                outcome = self.outcomes.pop(0)
                if isinstance(outcome, Exception):
                    error, outcome = outcome, None
                assert isinstance(step, Read) == (outcome is None or isinstance(outcome, bytes)) or error, step


def reply(body: Any, status: int = 200, **headers: str) -> Reply:
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(body).encode())


def opened() -> Reply:
    return Reply(200, STREAM, b"")


def frame(sequence: int, kind: str = "node.completed") -> bytes:
    event = {
        "eventId": f"e{sequence}",
        "runId": "r",
        "sequence": sequence,
        "type": kind,
        "timestamp": "",
        "payload": {},
    }
    return f"id: {sequence}\nevent: {kind}\ndata: {json.dumps(event)}\n\n".encode()


BUSY = reply({"error": "overloaded", "message": "later"}, 503, retry_after="2")
LOST = ConnectionFailed("reset")


def test_a_failure_that_may_pass_is_tried_again_with_the_same_key() -> None:
    world = World(LOST, BUSY, reply({"runId": "r"}, 201))
    assert world.carry(send(change("POST", "v1", "runs", json={}), Options())) == {"runId": "r"}
    keys = {request.headers["Idempotency-Key"] for request in world.requests}
    assert len(world.requests) == 3 and len(keys) == 1
    assert 0.07 <= world.pauses[0] <= 0.1 and world.pauses[1] == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 412, 413, 422, 500, 501])
def test_what_another_attempt_would_not_change_is_final(status: int) -> None:
    world = World(reply({"error": "some_code", "message": "no", "details": {"hint": "do that"}}, status))
    with pytest.raises(ApiError) as caught:
        world.carry(send(get("v1", "runs", "r"), Options()))
    error = caught.value
    assert (error.status, error.code, error.message, error.hint, error.retriable) == (
        status,
        "some_code",
        "no",
        "do that",
        False,
    )
    assert type(error) is errors.BY_STATUS.get(status, ApiError)


def test_retries_are_bounded_in_number_and_in_time() -> None:
    world = World(*[LOST] * 7)
    with pytest.raises(ConnectionFailed):
        world.carry(send(get("v1", "runs"), Options(retries=6)))
    assert len(world.requests) == 7
    world = World(*[LOST] * 100)
    with pytest.raises(ConnectionFailed):
        world.carry(send(get("v1", "runs"), Options(retries=99, timeout=20)))
    assert world.clock < 20


def test_a_host_that_wants_to_be_left_alone_for_long_is_not_waited_for() -> None:
    world = World(reply({"error": "rate_limited", "message": "later"}, 429, Retry_After="3600"))
    with pytest.raises(errors.RateLimited) as caught:
        world.carry(send(get("v1", "runs"), Options(timeout=10_000)))
    assert caught.value.retry_after == 3600 and caught.value.retriable and world.pauses == []


def test_what_may_not_happen_twice_is_sent_once_unless_the_host_refused_it() -> None:
    once = Request("POST", "/v1/x", repeatable=False)
    with pytest.raises(ConnectionFailed):
        World(LOST).carry(send(once, Options()))
    assert World(BUSY, reply(1)).carry(send(once, Options())) == 1


def test_pauses_grow_and_are_bounded() -> None:
    waits = [pause_after(LOST, attempt) or 0 for attempt in range(2000)]
    assert 0.07 <= waits[0] <= 0.1 and waits[4] > waits[0] and max(waits) <= 5


def test_pages_of_proxies_and_unknown_bodies() -> None:
    assert isinstance(refusal(502, {}, b"<html>bad gateway</html>"), errors.Unavailable)
    assert isinstance(refusal(404, {}, b"<html>"), NotUnderstood)
    assert isinstance(refusal(500, {}, b'["error"]'), NotUnderstood)
    odd = refusal(
        409, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, b'{"error": "idempotency_in_flight", "details": 7}'
    )
    assert isinstance(odd, errors.Conflict) and odd.retriable and odd.retry_after is None and odd.details == {}
    answered = refusal(
        409, {}, b'{"error":"interrupt_already_resolved","message":"","details":{"openInterruptId":"int:a:2"}}'
    )
    assert isinstance(answered, errors.AlreadyAnswered) and answered.open_interrupt_id == "int:a:2"
    said = refusal(503, {}, b'{"error":"x","message":"","details":{"retriable":false,"retryAfterMs":250}}')
    assert isinstance(said, ApiError) and not said.retriable and said.retry_after == 0.25


def test_ids_cannot_leave_their_segment() -> None:
    assert path("v1", "runs", "a/../b?c#d", "events") == "/v1/runs/a%2F..%2Fb%3Fc%23d/events"
    assert path("v1", "runs", "run_1:pause") == "/v1/runs/run_1:pause"
    for name in ("", ".", ".."):
        with pytest.raises(ValueError):
            path("v1", "runs", name)


def test_a_stream_that_breaks_goes_on_behind_the_last_event() -> None:
    world = World(
        opened(), frame(0) + frame(1)[:10], LOST,
        opened(), frame(1) + frame(2), None, reply({"status": "running", "atSeq": 4}),
        LOST,
        BUSY,
        # What was seen already comes again: it is not given twice.
        opened(), frame(1) + frame(2) + frame(3), frame(4, "run.completed"),
    )  # fmt: skip
    world.carry(follow("r", Options(), Log("debug", None)))
    assert [event["sequence"] for event in world.given] == [0, 1, 2, 3, 4]
    asked = [request.headers.get("Last-Event-ID") for request in world.requests if request.path.endswith("/events")]
    assert asked == [None, "0", "2", "2", "2"]
    assert len(world.pauses) == 4 and world.pauses[3] >= 2


def test_batches_annotations_and_comments() -> None:
    events = [json.loads(frame(seq).split(b"data: ")[1]) for seq in (3, 4, 5)]
    batch = f"id: 5\nevent: batch\ndata: {json.dumps(events)}\n\n".encode()
    beside = b'event: run.annotated\ndata: {"note": "odd"}\n\n:keepalive\n\n'
    world = World(opened(), beside + batch + beside, frame(6, "run.failed"))
    world.carry(follow("r", Options(), Log("updates", 3)))
    assert [event["sequence"] for event in world.given] == [4, 5, 6]


def test_a_reader_behind_the_last_event_is_told_so() -> None:
    world = World(opened(), None, reply({"status": "completed", "atSeq": 9}))
    world.carry(follow("r", Options(), Log("debug", 9)))
    assert world.given == [] and world.pauses == []


def test_a_stream_without_progress_is_given_up() -> None:
    world = World(*[LOST] * 11)
    with pytest.raises(ConnectionFailed):
        world.carry(follow("r", Options(stream_retries=10), Log("debug", None)))
    assert len(world.pauses) == 10
    # Each event gives it all its attempts again.
    parts: list[Any] = [part for seq in range(50) for part in (opened(), frame(seq), LOST)]
    world = World(*parts, opened(), frame(50, "run.cancelled"))
    world.carry(follow("r", Options(stream_retries=1), Log("debug", None)))
    assert len(world.given) == 51


@pytest.mark.parametrize(
    "data", [b"id: 1\ndata: {}\n\n", b"id: 1\ndata: nonsense\n\n", b'id: 1\ndata: [{"sequence": "1"}]\n\n']
)
def test_a_host_that_talks_nonsense_is_not_believed(data: bytes) -> None:
    with pytest.raises(NotUnderstood):
        World(opened(), data).carry(follow("r", Options(), Log("debug", None)))


def test_a_host_that_sends_elsewhere_is_not_followed() -> None:
    elsewhere = Reply(302, {"location": "https://elsewhere.test"}, b"")
    with pytest.raises(NotUnderstood):
        World(elsewhere).carry(send(get("v1", "runs"), Options()))
    with pytest.raises(NotUnderstood):
        World(elsewhere).carry(follow("r", Options(), Log("debug", None)))


def test_a_reply_that_is_no_stream() -> None:
    with pytest.raises(NotUnderstood):
        World(reply("hello", 200, content_type="text/html")).carry(follow("r", Options(), Log("debug", None)))


def test_pages_go_on_until_there_is_no_cursor() -> None:
    world = World(
        reply({"runs": [1, 2], "nextCursor": "a"}),
        reply({"runs": [], "nextCursor": "b"}),
        reply({"runs": [3], "nextCursor": None}),
    )
    world.carry(pages(get("v1", "runs", tag="x"), Options(), items="runs"))
    assert world.given == [1, 2, 3]
    assert [request.query for request in world.requests][1:] == [[("tag", "x"), ("cursor", cursor)] for cursor in "ab"]
    with pytest.raises(NotUnderstood):
        World(*[reply({"runs": [], "nextCursor": "a"})] * 2).carry(pages(get("v1", "runs"), Options(), items="runs"))


def test_waiting_polls_behind_what_the_snapshot_shows() -> None:
    world = World(
        reply({"status": "running", "atSeq": 5}),
        reply({"runStatus": "running", "lastEventSeq": 8}),
        reply({"runStatus": "waiting-approval", "lastEventSeq": 9}),
        reply({"status": "waiting-approval", "atSeq": 9}),
    )
    snapshot = world.carry(wait("r", Options(), until="stopped", timeout=None))
    assert snapshot["status"] == "waiting-approval"
    asked = [dict(request.query).get("lastSequence") for request in world.requests if request.path.endswith("/poll")]
    assert asked == ["5", "8"]


def test_a_wait_is_as_patient_as_a_stream_and_ends_in_time() -> None:
    running = reply({"status": "running", "atSeq": 5})
    world = World(running, *[LOST] * 10, reply({"runStatus": "completed"}), reply({"status": "completed", "atSeq": 6}))
    assert world.carry(wait("r", Options(), until="ended", timeout=None))["status"] == "completed"
    # Answered once more before anybody asked: the wait goes on.
    again = reply({"runStatus": "waiting-input", "lastEventSeq": 6}), running, reply({"runStatus": "failed"})
    world = World(running, *again, reply({"status": "failed", "atSeq": 9}))
    assert world.carry(wait("r", Options(), until="stopped", timeout=None))["status"] == "failed"
    world = World(running, *[LOST] * 10)
    with pytest.raises(ConnectionFailed):
        world.carry(wait("r", Options(), until="ended", timeout=3))
    assert world.clock <= 4
