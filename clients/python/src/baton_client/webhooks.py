"""Subscriptions to events, and the signature of what arrives."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence

from . import api
from .pages import pages
from .request import Steps, body, change, get, send
from .surface import Group, Items, M, call, items

MAX_AGE_SECONDS = 300


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, *, max_age: float = MAX_AGE_SECONDS, now: float | None = None
) -> bool:
    """Whether a webhook is from the host that knows the secret, unchanged and recent.

    `body` are the bytes as they arrived. A host may deliver an event again: compare `event.eventId`.
    """
    given = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = given.get("x-openwop-timestamp", ""), given.get("x-openwop-signature", "")
    if not (timestamp.isascii() and timestamp.isdigit()) or len(timestamp) > 15:
        return False
    signed = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    fresh = abs((time.time() if now is None else now) - int(timestamp)) <= max_age
    return hmac.compare_digest(f"sha256={signed}".encode(), signature.encode()) and fresh


class Webhooks(Group[M]):
    @call
    def subscribe(
        self, url: str, events: Sequence[str] = ("*",), *, tags: Sequence[str] | None = None
    ) -> Steps[api.WebhookRegistered]:
        """Subscribes an address. The secret in the reply is shown once."""
        wanted = body(url=url, events=[*events], tags=tags)
        return send(change("POST", "v1", "webhooks", json=wanted), self._options)

    @items
    def list(self) -> Items[api.WebhookEntry]:
        return Items(pages(get("v1", "webhooks"), self._options, items="webhooks"))

    @call
    def get(self, webhook_id: str) -> Steps[api.WebhookEntry]:
        return send(get("v1", "webhooks", webhook_id), self._options)

    @call
    def unsubscribe(self, webhook_id: str) -> Steps[None]:
        return send(change("DELETE", "v1", "webhooks", webhook_id), self._options)

    @call
    def resume(self, webhook_id: str) -> Steps[api.WebhookEntry]:
        """Calls the receiver again after too many failures."""
        asked = change("POST", "v1", "host", "baton", "webhooks", webhook_id, "resume")
        return send(asked, self._options)

    @call
    def rotate_secret(self, webhook_id: str) -> Steps[api.WebhookRegistered]:
        asked = change("POST", "v1", "host", "baton", "webhooks", webhook_id, "rotate-secret")
        return send(asked, self._options)

    @items
    def dead_letters(self, webhook_id: str) -> Items[api.DeadLetterView]:
        """Events that the receiver did not take, newest first."""
        first = get("v1", "webhooks", webhook_id, "dead-letters")
        return Items(pages(first, self._options, items="deadLetters"))

    @call
    def redeliver(self, webhook_id: str, letter_id: str | None = None) -> Steps[api.Redelivery]:
        """Sends one dead letter again, or all of them."""
        which = [letter_id] if letter_id is not None else []
        segments = ("v1", "host", "baton", "webhooks", webhook_id, "dead-letters", *which, "redeliver")
        return send(change("POST", *segments), self._options)
