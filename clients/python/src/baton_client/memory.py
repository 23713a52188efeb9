"""Texts and files that outlive a run."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import cast

from . import api
from .pages import pages
from .request import Steps, body, change, get, send
from .surface import Group, Items, M, call, items


class Memory(Group[M]):
    @call
    def scopes(self) -> Steps[api.MemoryScopes]:
        return send(get("v1", "host", "baton", "memory"), self._options)

    @items
    def list(self, scope: str, *, tag: str | None = None) -> Items[api.MemoryEntry]:
        """The entries of a scope, newest first."""
        first = get("v1", "host", "baton", "memory", scope, tag=tag)
        return Items(pages(first, self._options, items="entries"))

    @call
    def get(self, scope: str, entry_id: str) -> Steps[api.MemoryEntry]:
        return send(get("v1", "host", "baton", "memory", scope, entry_id), self._options)

    @call
    def put(
        self,
        scope: str,
        content: str,
        *,
        tags: Sequence[str] | None = None,
        ttl_seconds: float | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[api.MemoryEntry]:
        wanted = body(content=content, tags=tags, ttlSeconds=ttl_seconds)
        asked = change("POST", "v1", "host", "baton", "memory", scope, json=wanted, key=idempotency_key)
        return send(asked, self._options)

    @call
    def delete(self, scope: str, entry_id: str) -> Steps[None]:
        return send(change("DELETE", "v1", "host", "baton", "memory", scope, entry_id), self._options)


class Workspace(Group[M]):
    @call
    def list(self, *, prefix: str | None = None) -> Steps[builtins.list[api.FileMeta]]:
        page = yield from send(get("v1", "host", "workspace", "files", prefix=prefix), self._options)
        return cast("list[api.FileMeta]", page["files"])

    @call
    def get(self, name: str, *, version: int | None = None) -> Steps[api.WorkspaceFile]:
        return send(get(*_file(name), version=version), self._options)

    @call
    def put(
        self, name: str, content: str, *, content_type: str | None = None, if_match: str | None = None
    ) -> Steps[api.WorkspaceFile]:
        """Writes a file. With `if_match` (an etag) only if nobody else has changed it; else it raises Conflict."""
        wanted = body(content=content, contentType=content_type)
        return send(change("PUT", *_file(name), json=wanted, headers=_matching(if_match)), self._options)

    @call
    def delete(self, name: str, *, if_match: str | None = None) -> Steps[None]:
        return send(change("DELETE", *_file(name), headers=_matching(if_match)), self._options)

    @call
    def changes(
        self, *, path: str | None = None, before: int | None = None, limit: int | None = None
    ) -> Steps[api.Changes]:
        """The history of the files, newest first."""
        asked = get("v1", "host", "baton", "workspace", "changes", path=path, before=before, limit=limit)
        return send(asked, self._options)


def _file(name: str) -> list[str]:
    return ["v1", "host", "workspace", "files", *name.split("/")]


def _matching(etag: str | None) -> dict[str, str] | None:
    return None if etag is None else {"If-Match": etag}
