"""One request and what is done until it is answered. Nothing here reads a socket or a clock.

What takes several requests or a pause is a generator of `Steps`. It asks for a step and is given the outcome; `sync.py`
and `asynchronous.py` are the two loops that carry steps out. So each method of the client is written once.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from .errors import ApiError, BatonError, NotUnderstood, refusal

T = TypeVar("T")

MAX_REPLY_BYTES = 512 * 1024 * 1024
"""The largest reply that is read: a page of the largest events fits, and a host that never stops sending costs no more."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
LONGEST_RETRY_AFTER = 60.0
"""If the host wants to be left alone for longer, the caller decides."""


@dataclass(frozen=True)
class Options:
    """How a client asks."""

    timeout: float = 30.0
    """Seconds until a call must be answered, retries included."""
    retries: int = 6
    """How often a request is sent again after a failure that may pass, with about six seconds of pauses."""
    stream_retries: int = 10
    """How often in a row a stream is opened again without an event in between: about 25 seconds."""
    silence: float = 45.0
    """After so many seconds without a byte a stream is dead: the host sends one every 15."""

    def but(
        self, timeout: float | None, retries: int | None, stream_retries: int | None, silence: float | None
    ) -> Options:
        """The same, but for what is given."""
        return Options(
            self.timeout if timeout is None else timeout,
            self.retries if retries is None else retries,
            self.stream_retries if stream_retries is None else stream_retries,
            self.silence if silence is None else silence,
        )


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: list[tuple[str, str]] = field(default_factory=list)
    json: Any = None
    content: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    repeatable: bool = True
    """Sent twice it has no other effect than once."""
    extra_time: float = 0.0


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


# --- what a generator may ask for ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Send:
    """Gives a Reply, whatever its status. Raises ConnectionFailed."""

    request: Request
    within: float
    """Seconds."""


@dataclass(frozen=True)
class Open:
    """Opens a stream. Gives a Reply whose body is only read if it is a refusal."""

    request: Request


@dataclass(frozen=True)
class Read:
    """The next bytes of the open stream; None at its end. Raises ConnectionFailed."""


@dataclass(frozen=True)
class Close:
    """Closes the stream, if one is open."""


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Now:
    """Seconds on a clock that only goes forward."""


@dataclass(frozen=True)
class Give:
    """Hands something to whoever iterates."""

    value: Any


Step = Send | Open | Read | Close | Pause | Now | Give
Steps = Generator[Step, Any, T]


# --- making requests ----------------------------------------------------------------------------------------------


def path(*segments: str) -> str:
    """The path of a route; ids cannot leave their segment."""
    for segment in segments:
        if segment in ("", ".", ".."):
            raise ValueError(f"{segment!r} cannot be the name of anything on the host")
    return "/" + "/".join(quote(segment, safe=":@") for segment in segments)


def query(**members: Any) -> list[tuple[str, str]]:
    """Names and values; lists repeat their name, None is left out."""
    pairs: list[tuple[str, str]] = []
    for name, value in members.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                pairs.append((name, ("true" if one else "false") if isinstance(one, bool) else str(one)))
    return pairs


def body(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def get(*segments: str, **members: Any) -> Request:
    return Request("GET", path(*segments), query(**members))


def change(
    method: str, *segments: str, json: Any = None, key: str | None = None, headers: dict[str, str] | None = None
) -> Request:
    """A request that changes something. Its key makes it count once, however often it is sent."""
    key = key or str(uuid.uuid4())
    return Request(method, path(*segments), json=json, headers={"Idempotency-Key": key, **(headers or {})})


# --- carrying them out --------------------------------------------------------------------------------------------


def exchange(request: Request, options: Options) -> Steps[Reply]:
    """Sends until there is an answer that another attempt would not change."""
    begun: float = yield Now()
    allowed = options.timeout + request.extra_time
    left, attempt = allowed, 0
    while True:
        try:
            reply: Reply = yield Send(request, left)
            if 200 <= reply.status < 300:
                return reply
            raise refusal(reply.status, reply.headers, reply.body)
        except BatonError as error:
            now: float = yield Now()
            wait = pause_after(error, attempt)
            # What the host refused it did not do.
            may_repeat = error.retriable and (request.repeatable or isinstance(error, ApiError))
            left = allowed - (now - begun) - (wait or 0)
            if not may_repeat or wait is None or left <= 0 or attempt >= options.retries:
                raise
            attempt += 1
        yield Pause(wait)


def pause_after(error: BatonError, attempt: int) -> float | None:
    """How long to wait before the next attempt; None if the host asks for more time than we give it."""
    asked = error.retry_after if isinstance(error, ApiError) else None
    if asked is not None and asked > LONGEST_RETRY_AFTER:
        return None
    # Clients that lost their host at the same moment must not all come back at the same moment.
    backoff = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt, 16)) * random.uniform(0.75, 1.0)
    return backoff if asked is None else max(asked, backoff)


def parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        raise NotUnderstood(f"the reply is no JSON: {error}") from None


def send(request: Request, options: Options) -> Steps[Any]:
    """The JSON of the reply; None where the host answers with nothing."""
    reply: Reply = yield from exchange(request, options)
    return parse(reply.body) if reply.body else None
