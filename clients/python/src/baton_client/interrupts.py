"""Questions that runs wait for, and their answers."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, cast

from . import api
from .request import Request, Steps, body, change, get, send
from .surface import Group, M, call

Question = api.InterruptItem | api.RunSnapshot
"""An item of `interrupts.list`, or a run that waits."""


class Interrupts(Group[M]):
    @call
    def list(
        self, *, run_id: str | None = None, kind: str | None = None, limit: int | None = None
    ) -> Steps[builtins.list[api.InterruptItem]]:
        """Open questions: 50 of them, or `limit` (up to 200)."""
        page = yield from send(get("v1", "interrupts", runId=run_id, kind=kind, limit=limit), self._options)
        return cast("list[api.InterruptItem]", page["interrupts"])

    @call
    def answer(
        self,
        run_id: str,
        node_id: str,
        value: Mapping[str, Any],
        *,
        interrupt_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[api.Answered]:
        """Answers a question of a node. A second answer raises AlreadyAnswered.

        Name the question with `interrupt_id` if the node may ask more than one.
        """
        asked = _answer(run_id, node_id, interrupt_id, value, idempotency_key)
        return send(asked, self._options)

    @call
    def approve(
        self, question: Question, *, feedback: str | None = None, voter: str | None = None
    ) -> Steps[api.Answered]:
        """Accepts what an approval asks for. `voter` is who decided, if it is not the key itself."""
        return send(_to(question, body(action="accept", feedback=feedback, voter=voter)), self._options)

    @call
    def reject(
        self, question: Question, *, feedback: str | None = None, voter: str | None = None
    ) -> Steps[api.Answered]:
        return send(_to(question, body(action="reject", feedback=feedback, voter=voter)), self._options)

    @call
    def reply(self, question: Question, answers: Mapping[str, Any]) -> Steps[api.Answered]:
        """Answers a clarification: a value for the id of each of its questions."""
        return send(_to(question, {"answers": dict(answers)}), self._options)

    @call
    def inspect_link(self, token: str) -> Steps[api.OpenInterrupt]:
        """The question behind a signed link. Needs no key."""
        return send(get("v1", "interrupts", token), self._options)

    @call
    def answer_link(self, token: str, value: Mapping[str, Any]) -> Steps[api.Answered]:
        asked = change("POST", "v1", "interrupts", token, json={"resumeValue": value})
        return send(asked, self._options)


def _to(question: Question, value: Mapping[str, Any]) -> Request:
    asked: Any = question.get("interrupt") if "interruptId" not in question else question
    if asked is None:
        raise ValueError(f"{question['runId']} asks nothing: it is {question.get('status')}")
    return _answer(question["runId"], asked["nodeId"], asked["interruptId"], value, None)


def _answer(run_id: str, node_id: str, interrupt_id: str | None, value: Mapping[str, Any], key: str | None) -> Request:
    wanted = body(interruptId=interrupt_id, resumeValue=value)
    return change("POST", "v1", "runs", run_id, "interrupts", node_id, json=wanted, key=key)
