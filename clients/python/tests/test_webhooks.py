from __future__ import annotations

import hashlib
import hmac

import pytest

from baton_client import verify_webhook

BODY = b'{"type":"run.completed"}'
NOW = 1_800_000_000


def signed(secret: str, timestamp: str, body: bytes) -> dict[str, str]:
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"X-openwop-Timestamp": timestamp, "X-openwop-Signature": f"sha256={digest}"}


def test_a_genuine_webhook() -> None:
    assert verify_webhook("s", signed("s", str(NOW), BODY), BODY, now=NOW + 299)


@pytest.mark.parametrize(
    ("headers", "body", "now"),
    [
        (signed("other", str(NOW), BODY), BODY, NOW),
        (signed("s", str(NOW), BODY), BODY + b" ", NOW),
        (signed("s", str(NOW), BODY), BODY, NOW + 301),
        (signed("s", str(NOW), BODY), BODY, NOW - 301),
        (signed("s", "-1", BODY), BODY, 0),
        (signed("s", "٣", BODY), BODY, 3),
        ({**signed("s", str(NOW), BODY), "X-openwop-Signature": "sha256=ü"}, BODY, NOW),
        ({**signed("s", str(NOW), BODY), "X-openwop-Signature": ""}, BODY, NOW),
        ({}, BODY, NOW),
    ],
)
def test_what_is_not(headers: dict[str, str], body: bytes, now: int) -> None:
    assert not verify_webhook("s", headers, body, now=now)
