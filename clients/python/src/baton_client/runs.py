"""Starting, reading, waiting for and steering runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from . import api
from .errors import TimedOut
from .follow import Log, States, follow, wait
from .pages import pages
from .request import Request, Steps, body, change, exchange, get, path, send
from .surface import Group, Items, M, call, items
from .workflow import Workflow


class Runs(Group[M]):
    @call
    def start(
        self,
        workflow: str | Workflow | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        agent_id: str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        configurable: Mapping[str, Any] | None = None,
        scope_id: str | None = None,
        conversation_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[api.CreatedRun]:
        """Starts a run of a workflow, or of one agent.

        However often the request must be sent, it starts one run. With your own `idempotency_key` that also holds
        when your program starts again and repeats the call, for 24 hours.
        """
        wanted = body(
            workflowId=workflow.id if isinstance(workflow, Workflow) else workflow,
            agentId=agent_id,
            inputs=inputs,
            tags=tags,
            metadata=metadata,
            configurable=configurable,
            scopeId=scope_id,
            conversationId=conversation_id,
        )
        return send(change("POST", "v1", "runs", json=wanted, key=idempotency_key), self._options)

    @call
    def get(self, run_id: str) -> Steps[api.RunSnapshot]:
        """The run as it stands."""
        return send(get("v1", "runs", run_id), self._options)

    @items
    def list(
        self,
        *,
        status: api.RunStatus | Sequence[api.RunStatus] | None = None,
        workflow_id: str | None = None,
        tag: str | None = None,
        parent_run_id: str | None = None,
        root_run_id: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        updated_after: str | None = None,
        updated_before: str | None = None,
        waiting: bool | None = None,
        top_level: bool | None = None,
        q: str | None = None,
        page_size: int = 100,
    ) -> Items[api.RunItem]:
        """Runs, newest first. Asks for the next page when it is needed."""
        first = get(
            "v1", "runs",
            status=status, workflowId=workflow_id, tag=tag, parentRunId=parent_run_id, rootRunId=root_run_id,
            createdAfter=created_after, createdBefore=created_before, updatedAfter=updated_after,
            updatedBefore=updated_before, waiting=waiting, topLevel=top_level, q=q, limit=page_size,
        )  # fmt: skip
        return Items(pages(first, self._options, items="runs"))

    @call
    def wait(
        self, run_id: str, *, until: Literal["stopped", "ended"] = "stopped", timeout: float | None = None
    ) -> Steps[api.RunSnapshot]:
        """Waits until the run has ended, or, with `stopped`, also until it waits for somebody or is paused.

        After `timeout` seconds it raises TimedOut; the run goes on.
        """
        snapshot = yield from wait(run_id, self._options, until=until, timeout=timeout)
        if snapshot is None:
            raise TimedOut(f"{run_id} still runs after {timeout} s")
        return snapshot

    @items
    def events(
        self,
        run_id: str,
        *,
        after: int | None = None,
        mode: Literal["updates", "debug"] = "updates",
        buffer_ms: int | None = None,
    ) -> Items[api.RunEvent]:
        """The events of a run, from the one after the sequence `after`, until it has ended.

        Connections that break are opened again; no event is lost and none comes twice. `updates` are changes of the
        run and its nodes, `debug` is every event.
        """
        return Items(follow(run_id, self._options, Log(mode, after), buffer_ms))

    @items
    def states(self, run_id: str) -> Items[api.RunSnapshot]:
        """The whole run, now and after each change, until it has ended."""
        return Items(follow(run_id, self._options, States()))

    @call
    def poll(
        self, run_id: str, *, after: int | None = None, hold: int = 25, limit: int | None = None
    ) -> Steps[api.PollResult]:
        """One page of every event after a sequence. If there is none the host holds the request up to `hold` seconds."""
        asked = get("v1", "runs", run_id, "events", "poll", lastSequence=after, timeout=hold, limit=limit)
        return send(Request(asked.method, asked.path, asked.query, extra_time=hold), self._options)

    @call
    def cancel(self, run_id: str, *, reason: str | None = None) -> Steps[api.CancelledRun]:
        """Cancels a run and its children. Cancelling one that has ended reports how it ended."""
        return send(change("POST", "v1", "runs", run_id, "cancel", json=body(reason=reason)), self._options)

    @call
    def cancel_many(self, run_ids: Sequence[str], *, reason: str | None = None) -> Steps[api.BulkCancelled]:
        """Cancels up to 100 runs. Each succeeds or fails by itself."""
        wanted = body(runIds=[*run_ids], reason=reason)
        return send(change("POST", "v1", "runs:bulk-cancel", json=wanted), self._options)

    @call
    def pause(
        self,
        run_id: str,
        *,
        reason: str | None = None,
        drain_policy: Literal["immediate", "drain-current-node"] | None = None,
    ) -> Steps[api.Paused]:
        wanted = body(reason=reason, drainPolicy=drain_policy)
        return send(change("POST", "v1", "runs", f"{run_id}:pause", json=wanted), self._options)

    @call
    def resume(self, run_id: str, *, reason: str | None = None) -> Steps[api.Resumed]:
        wanted = body(reason=reason)
        return send(change("POST", "v1", "runs", f"{run_id}:resume", json=wanted), self._options)

    @call
    def fork(
        self,
        run_id: str,
        *,
        at: int,
        inputs: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        configurable: Mapping[str, Any] | None = None,
        side_effects: Literal["simulated", "real"] | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[api.Forked]:
        """A branch: what happened before the sequence `at` stays, the rest happens anew, with your changes."""
        overlay = body(inputs=inputs, variables=variables, configurable=configurable, sideEffects=side_effects)
        wanted = body(mode="branch", fromSeq=at, runOptionsOverlay=overlay or None)
        return send(_fork(run_id, wanted, idempotency_key), self._options)

    @call
    def replay(self, run_id: str, *, at: int | None = None, idempotency_key: str | None = None) -> Steps[api.Forked]:
        """Repeats the run exactly as recorded, as a run of its own. Calls nobody."""
        wanted = body(mode="replay", fromSeq=at)
        return send(_fork(run_id, wanted, idempotency_key), self._options)

    @call
    def verify(self, run_id: str) -> Steps[api.Verification]:
        """Computes the decisions of a run again and compares. Writes nothing."""
        asked = Request("POST", path("v1", "host", "baton", "runs", run_id, "verify"), json={})
        return send(asked, self._options)

    @call
    def diff(self, run_id: str, against: str, *, from_seq: int | None = None) -> Steps[api.Diff]:
        """Compares two runs, event by event and as they stand."""
        return send(get("v1", "runs", f"{run_id}:diff", against=against, fromSeq=from_seq), self._options)

    @call
    def state(self, run_id: str, *, at: int) -> Steps[api.RunState]:
        """The run, its memory and its files as of a record."""
        return send(get("v1", "host", "baton", "runs", run_id, "state", at=at), self._options)

    @call
    def ancestry(self, run_id: str) -> Steps[api.Ancestry]:
        """Which run, on which host, started this one."""
        return send(get("v1", "runs", run_id, "ancestry"), self._options)

    @call
    def export(self, run_id: str) -> Steps[bytes]:
        """An ended run with everything it needs, as one file. It holds private data."""
        reply = yield from exchange(get("v1", "host", "baton", "runs", run_id, "export"), self._options)
        return reply.body

    @call
    def import_(self, file: bytes) -> Steps[api.ImportedRun]:
        """Takes in such a file. A second time changes nothing."""
        headers = {"Content-Type": "application/x-ndjson"}
        asked = Request("POST", path("v1", "host", "baton", "runs", "import"), content=file, headers=headers)
        return send(asked, self._options)

    @call
    def annotate(
        self,
        run_id: str,
        signal: Mapping[str, Any],
        *,
        note: str | None = None,
        node_id: str | None = None,
        event_id: str | None = None,
    ) -> Steps[dict[str, Any]]:
        """Adds feedback: `{"kind": "rating", "rating": 4}`, or a correction, a label or a flag."""
        target = body(nodeId=node_id, eventId=event_id)
        wanted = body(signal=signal, note=note, target=target or None)
        return send(change("POST", "v1", "runs", run_id, "annotations", json=wanted), self._options)

    @items
    def annotations(self, run_id: str) -> Items[dict[str, Any]]:
        """Feedback on a run, oldest first."""
        first = get("v1", "runs", run_id, "annotations")
        return Items(pages(first, self._options, items="annotations", cursor="after", following="nextAfter"))

    @call
    def prune(self, run_id: str, *, log: bool = False) -> Steps[api.Pruned]:
        """Deletes the memory and file history of an ended run; with `log` its events, too."""
        return send(change("POST", "v1", "runs", f"{run_id}:prune", json={"log": log}), self._options)


def _fork(run_id: str, wanted: dict[str, Any], key: str | None) -> Request:
    return change("POST", "v1", "runs", f"{run_id}:fork", json=wanted, key=key)
