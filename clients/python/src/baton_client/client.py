"""The two clients. They differ in how they wait, and in nothing else."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Generic

import httpx

from .agents import Agents
from .carry import Address, Awaiting, Blocking
from .host import Host
from .interrupts import Interrupts
from .memory import Memory, Workspace
from .request import Options
from .runs import Runs
from .surface import Async, Carrier, M, Sync
from .webhooks import Webhooks
from .workflows import Workflows

LOCAL = "http://127.0.0.1:7717"


class _Groups(Generic[M]):
    """What both clients offer."""

    def __init__(self, url: str | None, token: str | None, options: Options) -> None:
        self._address = Address(url or os.environ.get("BATON_URL") or LOCAL, token or os.environ.get("BATON_API_KEY"))
        self._set(options)

    def _set(self, options: Options) -> None:
        self.options = options
        self.host: Host[M] = Host(self._carrier, options)
        self.workflows: Workflows[M] = Workflows(self._carrier, options)
        self.runs: Runs[M] = Runs(self._carrier, options)
        self.interrupts: Interrupts[M] = Interrupts(self._carrier, options)
        self.agents: Agents[M] = Agents(self._carrier, options)
        self.memory: Memory[M] = Memory(self._carrier, options)
        self.workspace: Workspace[M] = Workspace(self._carrier, options)
        self.webhooks: Webhooks[M] = Webhooks(self._carrier, options)

    def _carrier(self) -> Carrier:
        raise NotImplementedError

    @property
    def url(self) -> str:
        return self._address.base

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"


class Client(_Groups[Sync]):
    """A connection to one host with one key. Safe to share between threads.

    Without arguments: the host at BATON_URL (else a `baton dev` on this machine), the key of BATON_API_KEY.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        options: Options = Options(),
        http: httpx.Client | None = None,
    ) -> None:
        super().__init__(url, token, options)
        self._http = http or httpx.Client(trust_env=self._address.trust_env)

    def _carrier(self) -> Carrier:
        return Blocking(self._http, self._address, self.options.silence)

    def with_options(
        self,
        *,
        timeout: float | None = None,
        retries: int | None = None,
        stream_retries: int | None = None,
        silence: float | None = None,
    ) -> Client:
        """The same client with other Options: `client.with_options(timeout=5)`. It shares the connections."""
        other = Client.__new__(Client)
        other._address, other._http = self._address, self._http
        other._set(self.options.but(timeout, retries, stream_retries, silence))
        return other

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(_Groups[Async]):
    """The same for asyncio."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        options: Options = Options(),
        http: httpx.AsyncClient | None = None,
    ) -> None:
        super().__init__(url, token, options)
        self._http = http or httpx.AsyncClient(trust_env=self._address.trust_env)

    def _carrier(self) -> Carrier:
        return Awaiting(self._http, self._address, self.options.silence)

    def with_options(
        self,
        *,
        timeout: float | None = None,
        retries: int | None = None,
        stream_retries: int | None = None,
        silence: float | None = None,
    ) -> AsyncClient:
        other = AsyncClient.__new__(AsyncClient)
        other._address, other._http = self._address, self._http
        other._set(self.options.but(timeout, retries, stream_retries, silence))
        return other

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
