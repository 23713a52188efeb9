"""A run's events to the end, over as many connections as it takes: none is lost and none comes twice."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Protocol

from . import api
from .errors import BatonError, ConnectionFailed, NotUnderstood, refusal
from .request import (
    LONGEST_PAUSE,
    Close,
    Give,
    Now,
    Open,
    Options,
    Pause,
    Read,
    Reply,
    Request,
    Steps,
    get,
    parse,
    pause_after,
    send,
)
from .sse import Frame, FrameParser

TERMINAL_EVENTS = ("run.completed", "run.failed", "run.cancelled")
TERMINAL = ("completed", "failed", "cancelled")
RESTART_SECONDS = 60.0
"""How long a wait goes on without an answer."""
POLL_SECONDS = 25
"""Shorter than what proxies commonly cut."""


class View(Protocol):
    """What is taken from the frames of one connection after the other."""

    mode: str
    ended: bool
    after: int | None

    def take(self, frame: Frame) -> list[Any]: ...


class Log:
    """Events in order, each once."""

    def __init__(self, mode: str, after: int | None) -> None:
        self.mode = mode
        self.after = after
        self.ended = False

    def take(self, frame: Frame) -> list[api.RunEvent]:
        if frame.id is None:
            # Said beside the log (an annotation), or by something on the way.
            return []
        data = parse(frame.data.encode())
        fresh = []
        for event in data if isinstance(data, list) else [data]:
            sequence = event.get("sequence") if isinstance(event, dict) else None
            if not isinstance(sequence, int):
                raise NotUnderstood("an event has no sequence")
            if self.after is None or sequence > self.after:
                self.after = sequence
                self.ended = self.ended or event.get("type") in TERMINAL_EVENTS
                fresh.append(event)
        return fresh


class States:
    """The whole run after each change. A new connection begins with the run as it stands."""

    mode = "values"
    after: int | None = None

    def __init__(self) -> None:
        self.ended = False

    def take(self, frame: Frame) -> list[api.RunSnapshot]:
        if frame.event == "state.snapshot.omitted":
            # Too large for a stream; it is read by itself.
            self.ended = parse(frame.data.encode())["status"] in TERMINAL
            return []
        if frame.event != "state.snapshot":
            return []
        snapshot: api.RunSnapshot = parse(frame.data.encode())
        self.ended = snapshot["status"] in TERMINAL
        return [snapshot]


def follow(run_id: str, options: Options, view: View, buffer_ms: int | None = None) -> Steps[None]:
    """Gives what the view takes until the run has ended."""
    failures = 0
    least = 0.0
    while True:
        parser = FrameParser()
        try:
            yield from _open(_request(run_id, view, buffer_ms))
            while not view.ended:
                data: bytes | None = yield Read()
                if data is None:
                    break
                for frame in parser.push(data):
                    for item in view.take(frame):
                        failures = 0
                        yield Give(item)
            if view.ended or (yield from _nothing_left(run_id, view, options)):
                return
            raise ConnectionFailed("the stream ended before the run")
        except BatonError as error:
            wait = pause_after(error, failures)
            if not error.retriable or wait is None or failures >= options.stream_retries:
                raise
            failures += 1
        yield Close()
        least = min((parser.retry_ms or 0) / 1000, LONGEST_PAUSE) or least
        yield Pause(max(wait, least))


def wait(run_id: str, options: Options, *, until: str, timeout: float | None) -> Steps[api.RunSnapshot | None]:
    """The run once it has ended (or waits for somebody, if `until` is `stopped`); None if that takes too long."""
    end: float = (yield Now()) + (math.inf if timeout is None else timeout)
    seen: int | None = None
    status = ""
    while True:
        left: float = end - (yield Now())
        if status and left <= 0:
            return None
        read = not status or _stopped(status, until)
        hold = 0 if read else max(1, int(min(POLL_SECONDS, left)))
        # As patient as a stream: the host may be restarting.
        allowed = max(1.0, min(RESTART_SECONDS, left - hold))
        patient = replace(options, retries=options.stream_retries, timeout=allowed)
        if read:
            snapshot: api.RunSnapshot = yield from send(get("v1", "runs", run_id), patient)
            if _stopped(snapshot["status"], until):
                return snapshot
            status, seen = snapshot["status"], snapshot["atSeq"]
        else:
            page = yield from send(_poll(run_id, seen, hold), patient)
            status, seen = page["runStatus"], page.get("lastEventSeq", seen)


def _stopped(status: str, until: str) -> bool:
    return status in TERMINAL or (until == "stopped" and (status.startswith("waiting-") or status == "paused"))


def _poll(run_id: str, after: int | None, hold: int) -> Request:
    request = get("v1", "runs", run_id, "events", "poll", lastSequence=after, timeout=hold)
    return Request(request.method, request.path, request.query, extra_time=float(hold))


def _request(run_id: str, view: View, buffer_ms: int | None) -> Request:
    request = get("v1", "runs", run_id, "events", streamMode=view.mode, bufferMs=buffer_ms)
    headers = {"Accept": "text/event-stream"}
    if view.after is not None:
        headers["Last-Event-ID"] = str(view.after)
    return Request(request.method, request.path, request.query, headers=headers)


def _open(request: Request) -> Steps[None]:
    reply: Reply = yield Open(request)
    if not 200 <= reply.status < 300:
        raise refusal(reply.status, reply.headers, reply.body)
    kind = next((value for name, value in reply.headers.items() if name.lower() == "content-type"), "")
    if not kind.startswith("text/event-stream"):
        raise NotUnderstood("the reply is no event stream")


def _nothing_left(run_id: str, view: View, options: Options) -> Steps[bool]:
    """Whether the run has ended and its last event was seen, as when somebody resumes after it."""
    snapshot: api.RunSnapshot = yield from send(get("v1", "runs", run_id), options)
    last = snapshot.get("atSeq")
    return snapshot["status"] in TERMINAL and view.after is not None and last is not None and view.after >= last
