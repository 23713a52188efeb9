"""What can go wrong, by what the caller can do about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class BatonError(Exception):
    """Everything that this package raises."""

    retriable = False
    """Whether the same request may succeed a moment later."""


class ConnectionFailed(BatonError):
    """No answer: nothing listens there, the connection broke, or it stayed silent for too long."""

    retriable = True


class TimedOut(BatonError):
    """A wait reached its deadline. The run goes on."""


class NotUnderstood(BatonError):
    """Something answered, but not as a Baton host of a version that this package knows."""


class ApiError(BatonError):
    """The host refused. Each code has a page under docs/errors."""

    def __init__(
        self, status: int, code: str, message: str, details: Mapping[str, Any], retry_after: float | None
    ) -> None:
        super().__init__(f"{message} [{code}, HTTP {status}]")
        self.status = status
        self.code = code
        self.message = message
        self.details: dict[str, Any] = dict(details)
        hint = self.details.get("hint")
        self.hint: str | None = hint if isinstance(hint, str) else None
        self.retry_after = retry_after
        """After how many seconds the host wants to be asked again, if it says so."""
        said = self.details.get("retriable")
        self.retriable = (
            said if isinstance(said, bool) else status in (429, 502, 503, 504) or code == "idempotency_in_flight"
        )


class InvalidRequest(ApiError):
    """400, 413, 415, 422: the request itself must change."""


class Unauthenticated(ApiError):
    """401: no key, or one that the host does not know."""


class Forbidden(ApiError):
    """403: the key may not do this."""


class NotFound(ApiError):
    """404, 410: there is no such thing, or it is another tenant's."""


class Conflict(ApiError):
    """409, 412: not in the present state."""


class AlreadyAnswered(Conflict):
    """409: the question has an answer already. `open_interrupt_id` is the node's next question, if it asks one."""

    @property
    def open_interrupt_id(self) -> str | None:
        return self.details.get("openInterruptId")


class RateLimited(ApiError):
    """429: too much at once."""


class Unavailable(ApiError):
    """502, 503, 504: the host is busy, starting or shutting down."""


BY_STATUS: dict[int, type[ApiError]] = {
    **dict.fromkeys((400, 413, 415, 422), InvalidRequest),
    401: Unauthenticated,
    403: Forbidden,
    **dict.fromkeys((404, 410), NotFound),
    **dict.fromkeys((409, 412), Conflict),
    429: RateLimited,
    **dict.fromkeys((502, 503, 504), Unavailable),
}


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> BatonError:
    """The error that a reply means. A proxy on the way may answer 502 to 504 with a page of its own."""
    try:
        said = json.loads(body)
    except ValueError:
        said = None
    if not isinstance(said, dict) or not isinstance(said.get("error"), str):
        if status not in (429, 502, 503, 504):
            return NotUnderstood(f"HTTP {status} without the body of an error")
        said = {"error": "unavailable", "message": f"Something before the host answered with HTTP {status}."}
    code, details = said["error"], said.get("details")
    details = details if isinstance(details, dict) else {}
    kind = AlreadyAnswered if code == "interrupt_already_resolved" else BY_STATUS.get(status, ApiError)
    return kind(status, code, str(said.get("message", code)), details, _retry_after(headers, details))


def _retry_after(headers: Mapping[str, str], details: Mapping[str, Any]) -> float | None:
    given = next((value for name, value in headers.items() if name.lower() == "retry-after"), None)
    millis = details.get("retryAfterMs")
    if isinstance(millis, (int, float)) and not isinstance(millis, bool) and millis >= 0:
        return millis / 1000
    # A date instead of seconds is allowed, but Baton does not send one.
    return float(given) if given is not None and given.strip().isdigit() else None
