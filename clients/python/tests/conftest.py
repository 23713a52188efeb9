from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from host import Host

from baton_client import Client

# Whoever runs the tests stops them by this if they take too long; the hosts must end, too.
signal.signal(signal.SIGTERM, lambda *_: pytest.exit("stopped", returncode=1))


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.stop()


@pytest.fixture
def client(host: Host) -> Iterator[Client]:
    with Client(host.url, host.key) as client:
        yield client
