"""Agents, conversations and tools."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, cast

from . import api
from .pages import pages
from .request import Steps, body, change, get, send
from .surface import Group, Items, M, call, items


class Agents(Group[M]):
    @call
    def list(self) -> Steps[builtins.list[api.AgentInventoryEntry]]:
        page = yield from send(get("v1", "agents"), self._options)
        return cast("list[api.AgentInventoryEntry]", page["agents"])

    @call
    def get(self, agent_id: str) -> Steps[api.AgentInventoryEntry]:
        return send(get("v1", "agents", agent_id), self._options)

    @call
    def effective(self, agent_id: str, *, tool_grant: Sequence[str] | None = None) -> Steps[api.EffectiveAgent]:
        """What an agent may call here, its model, memory and limits."""
        segments = ("v1", "host", "baton", "agents", agent_id, "effective")
        return send(get(*segments, toolGrant=",".join(tool_grant) if tool_grant else None), self._options)

    @call
    def run(
        self,
        agent_id: str,
        task: Mapping[str, Any],
        *,
        configurable: Mapping[str, Any] | None = None,
        conversation_id: str | None = None,
        tags: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[api.CreatedRun]:
        """Starts a run of one agent. Its answer will be the run's `outputs.result`."""
        wanted = body(
            agentId=agent_id, inputs=task, configurable=configurable, conversationId=conversation_id, tags=tags
        )
        return send(change("POST", "v1", "runs", json=wanted, key=idempotency_key), self._options)

    @call
    def chat(
        self,
        text: str,
        *,
        conversation_id: str | None = None,
        configurable: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[api.CreatedRun]:
        """Sends a message; `@name` in it says to which agent."""
        wanted = body(text=text, conversationId=conversation_id, configurable=configurable)
        asked = change("POST", "v1", "host", "baton", "chat", json=wanted, key=idempotency_key)
        return send(asked, self._options)

    @items
    def conversations(self) -> Items[api.Conversation]:
        first = get("v1", "host", "baton", "conversations")
        return Items(pages(first, self._options, items="conversations"))

    @items
    def turns(self, conversation_id: str) -> Items[api.Turn]:
        """The turns of a conversation, newest first."""
        first = get("v1", "host", "baton", "conversations", conversation_id)
        return Items(pages(first, self._options, items="turns"))

    @call
    def tools(self, *, source: str | None = None) -> Steps[builtins.list[dict[str, Any]]]:
        """What agents may be allowed to call here."""
        return send(get("v1", "tools", source=source), self._options)
