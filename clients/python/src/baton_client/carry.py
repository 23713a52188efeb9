"""The two loops that carry out steps: one that blocks, one that awaits. All IO of the package is here."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import AsyncGenerator, Generator
from typing import Any, TypeVar

import httpx

from .errors import BatonError, ConnectionFailed, NotUnderstood
from .request import MAX_REPLY_BYTES, Close, Give, Now, Open, Pause, Read, Reply, Request, Send, Step, Steps

T = TypeVar("T")

CONNECT_TIMEOUT = 5.0


class Address:
    """Where the host is, and how a request to it looks."""

    def __init__(self, base: str, token: str | None) -> None:
        try:
            url = httpx.URL(base)
        except httpx.InvalidURL as error:
            raise ValueError(f"{base!r} is no address of a host: {error}") from None
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(f"{base!r} is no address of a host: it must be http:// or https:// and a name")
        self.base = str(url).rstrip("/")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        # A proxy of the environment cannot reach this machine's own loopback.
        self.trust_env = not _is_loopback(url.host)

    def arguments(self, request: Request, wait: float) -> dict[str, Any]:
        body: dict[str, Any] = {} if request.json is None else {"json": request.json}
        if request.content is not None:
            body = {"content": request.content}
        return {
            "method": request.method,
            "url": self.base + request.path,
            "params": request.query or None,
            "headers": {"Accept": "application/json", **self.headers, **request.headers},
            "timeout": httpx.Timeout(wait, connect=min(CONNECT_TIMEOUT, wait)),
            **body,
        }


class Body:
    """The bytes of a reply as they come, within its bounds of size and time."""

    def __init__(self, within: float) -> None:
        self.data = bytearray()
        self.deadline = time.monotonic() + within

    def add(self, chunk: bytes) -> None:
        if len(self.data) + len(chunk) > MAX_REPLY_BYTES:
            raise NotUnderstood(f"the reply is longer than the {MAX_REPLY_BYTES} bytes that are read")
        if time.monotonic() > self.deadline:
            raise ConnectionFailed("the reply did not end in time")
        self.data += chunk


class Blocking:
    def __init__(self, http: httpx.Client, address: Address, silence: float) -> None:
        self.http, self.address, self.silence = http, address, silence
        self.response: httpx.Response | None = None
        self.chunks: Any = None

    def run(self, steps: Steps[T]) -> T:
        items = self.iterate(steps)
        while True:
            try:
                next(items)
            except StopIteration as end:
                result: T = end.value
                return result

    def iterate(self, steps: Generator[Step, Any, T]) -> Generator[Any, None, T]:
        outcome: Any = None
        error: BatonError | None = None
        try:
            while True:
                try:
                    step = steps.send(outcome) if error is None else steps.throw(error)
                except StopIteration as end:
                    result: T = end.value
                    return result
                outcome = error = None
                if isinstance(step, Give):
                    yield step.value
                    continue
                try:
                    outcome = self._perform(step)
                except httpx.HTTPError as failure:
                    error = _lost(failure)
                except BatonError as failure:
                    error = failure
        finally:
            self._close()

    def _perform(self, step: Step) -> Any:
        if isinstance(step, Send):
            with self.http.stream(**self.address.arguments(step.request, step.within)) as response:
                return self._whole(response, step.within)
        if isinstance(step, Open):
            self._close()
            arguments = self.address.arguments(step.request, self.silence)
            self.response = self.http.send(self.http.build_request(**arguments), stream=True)
            if not self.response.is_success:
                return self._whole(self.response, self.silence)
            self.chunks = self.response.iter_bytes()
            return Reply(self.response.status_code, self.response.headers, b"")
        if isinstance(step, Read):
            return next(self.chunks, None)
        if isinstance(step, Close):
            self._close()
        elif isinstance(step, Pause):
            time.sleep(step.seconds)
        return time.monotonic() if isinstance(step, Now) else None

    def _whole(self, response: httpx.Response, within: float) -> Reply:
        body = Body(within)
        for chunk in response.iter_bytes():
            body.add(chunk)
        return Reply(response.status_code, response.headers, bytes(body.data))

    def _close(self) -> None:
        if self.response is not None:
            self.response.close()
        self.response = self.chunks = None


class Awaiting:
    def __init__(self, http: httpx.AsyncClient, address: Address, silence: float) -> None:
        self.http, self.address, self.silence = http, address, silence
        self.response: httpx.Response | None = None
        self.chunks: Any = None
        self.result: Any = None

    async def run(self, steps: Steps[T]) -> T:
        async for _ in self.iterate(steps):
            pass
        result: T = self.result
        return result

    async def iterate(self, steps: Generator[Step, Any, Any]) -> AsyncGenerator[Any, None]:
        outcome: Any = None
        error: BatonError | None = None
        try:
            while True:
                try:
                    step = steps.send(outcome) if error is None else steps.throw(error)
                except StopIteration as end:
                    self.result = end.value
                    return
                outcome = error = None
                if isinstance(step, Give):
                    yield step.value
                    continue
                try:
                    outcome = await self._perform(step)
                except httpx.HTTPError as failure:
                    error = _lost(failure)
                except BatonError as failure:
                    error = failure
        finally:
            await self._close()

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Send):
            async with self.http.stream(**self.address.arguments(step.request, step.within)) as response:
                return await self._whole(response, step.within)
        if isinstance(step, Open):
            await self._close()
            arguments = self.address.arguments(step.request, self.silence)
            self.response = await self.http.send(self.http.build_request(**arguments), stream=True)
            if not self.response.is_success:
                return await self._whole(self.response, self.silence)
            self.chunks = self.response.aiter_bytes()
            return Reply(self.response.status_code, self.response.headers, b"")
        if isinstance(step, Read):
            return await anext(self.chunks, None)
        if isinstance(step, Close):
            await self._close()
        elif isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
        return time.monotonic() if isinstance(step, Now) else None

    async def _whole(self, response: httpx.Response, within: float) -> Reply:
        body = Body(within)
        async for chunk in response.aiter_bytes():
            body.add(chunk)
        return Reply(response.status_code, response.headers, bytes(body.data))

    async def _close(self) -> None:
        if self.response is not None:
            await self.response.aclose()
        self.response = self.chunks = None


def _lost(failure: httpx.HTTPError) -> ConnectionFailed:
    error = ConnectionFailed(f"{type(failure).__name__}: {failure}")
    error.__cause__ = failure
    return error


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
