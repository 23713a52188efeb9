"""Client of Baton, a durable host for teams of AI agents. `workflow` has the builder."""

from . import api, workflow
from .client import AsyncClient, Client
from .errors import (
    AlreadyAnswered,
    ApiError,
    BatonError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    InvalidRequest,
    NotFound,
    NotUnderstood,
    RateLimited,
    TimedOut,
    Unauthenticated,
    Unavailable,
)
from .request import Options
from .webhooks import verify_webhook
from .workflow import Workflow

__all__ = [
    "AlreadyAnswered",
    "ApiError",
    "AsyncClient",
    "BatonError",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "Forbidden",
    "InvalidRequest",
    "NotFound",
    "NotUnderstood",
    "Options",
    "RateLimited",
    "TimedOut",
    "Unauthenticated",
    "Unavailable",
    "Workflow",
    "api",
    "verify_webhook",
    "workflow",
]
