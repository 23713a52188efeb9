"""A way to the host that misbehaves as it is told, one connection after the other."""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from dataclasses import dataclass, field

PASS = "pass"
SWALLOW = "swallow"
"""The host gets the request and answers; the caller gets nothing."""
STALL = "stall"
"""Nothing happens until the caller gives up."""


@dataclass(frozen=True)
class Cut:
    """So many bytes of the reply arrive, then the connection breaks."""

    after: int


@dataclass(frozen=True)
class Hold:
    """So many bytes of the reply arrive, then nothing until the caller gives up."""

    after: int


@dataclass(frozen=True)
class Say:
    """The proxy answers by itself."""

    status: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


Plan = str | Cut | Hold | Say


class Proxy:
    """Does what `plan` says for the next connections, and passes on those after."""

    def __init__(self, upstream: str, *plan: Plan) -> None:
        self.plan = list(plan)
        self.requests: list[bytes] = []
        host, port = upstream.removeprefix("http://").rsplit(":", 1)
        self.upstream = (host, int(port))
        self.lock = threading.Lock()
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                proxy.serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True, kwargs={"poll_interval": 0.05}).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def serve(self, caller: socket.socket) -> None:
        request = read_request(caller)
        if not request:
            return
        with self.lock:
            self.requests.append(request)
            plan = self.plan.pop(0) if self.plan else PASS
        if isinstance(plan, Say):
            lines = [f"HTTP/1.1 {plan.status}", f"content-length: {len(plan.body)}", "connection: close"]
            lines += [f"{name}: {value}" for name, value in plan.headers.items()]
            caller.sendall("\r\n".join([*lines, "", ""]).encode() + plan.body)
            return
        if plan == STALL:
            caller.recv(1)
            return
        left = plan.after if isinstance(plan, (Cut, Hold)) else 0 if plan == SWALLOW else 1 << 62
        try:
            with socket.create_connection(self.upstream) as host:
                host.sendall(request)
                while chunk := host.recv(65536):
                    if left > 0:
                        caller.sendall(chunk[:left])
                    left -= len(chunk)
                    if left <= 0 and isinstance(plan, (Cut, Hold)):
                        break
            if isinstance(plan, Hold):
                caller.recv(1)
        except OSError:
            pass
        if isinstance(plan, Cut):
            # A reset instead of an orderly end.
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def read_request(caller: socket.socket) -> bytes:
    """One whole request, with `Connection: close`, so that each has a connection of its own."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = caller.recv(65536)
        if not more:
            return b""
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    length = next((int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += caller.recv(65536)
    return b"\r\n".join([*lines, b"connection: close"]) + b"\r\n\r\n" + body
