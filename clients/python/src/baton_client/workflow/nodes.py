"""What a step does: one function for each common type of node. `node` is for all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .values import Value, Variable, either

OutcomePolicy = Literal["retry", "verify", "ask", "fail"]


@dataclass(frozen=True)
class Node:
    type_id: str
    config: dict[str, Any] = field(default_factory=dict)


def node(type_id: str, config: Mapping[str, Any] | None = None) -> Node:
    """A node of any type, with its configuration as the host reads it."""
    return Node(type_id, dict(config or {}))


def set_variable(variable: str | Variable[Any], value: Value) -> Node:
    return Node("core.setVariable", {"name": _name(variable), **either("value", "expression", value)})


def set_variables(values: Mapping[str, Value]) -> Node:
    """Sets several variables, each to an expression."""
    return Node("core.setVariable", {"assign": {name: str(value) for name, value in values.items()}})


def write_channel(channel: str, value: Value) -> Node:
    return Node("core.channelWrite", {"channelName": channel, **either("value", "expression", value)})


def delay(ms: int) -> Node:
    return Node("core.delay", {"ms": ms})


def agent(
    agent_id: str,
    *,
    provider: str | None = None,
    model: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    tools: Sequence[str] | None = None,
    max_tool_rounds: int | None = None,
    require_tools: bool | None = None,
    **more: Any,
) -> Node:
    """Lets an agent work on the step's inputs. Its answer is the output `result`. `more` are settings of the guide."""
    config = _given(
        agentId=agent_id, provider=provider, model=model, temperature=temperature, maxTokens=max_tokens,
        tools=_list(tools), maxToolRounds=max_tool_rounds, requireTools=require_tools,
    )  # fmt: skip
    return Node("vendor.baton.agent", {**config, **more})


def structured_output(
    schema: Mapping[str, Any], *, model_class: str | None = None, system_prompt: str | None = None, **more: Any
) -> Node:
    """Asks a model for a value that fits a schema. The value is the output `data`."""
    config = _given(outputSchema=dict(schema), modelClass=model_class, systemPrompt=system_prompt)
    return Node("core.ai.structuredOutput", {**config, **more})


def http(
    url: Value,
    *,
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET",
    headers: Mapping[str, Any] | None = None,
    body: Value = None,
    into: str | Variable[Any] | None = None,
    outcome_policy: OutcomePolicy | None = None,
    verify_url: str | None = None,
) -> Node:
    """Sends one request. The reply is the output `response`."""
    config = {**either("url", "urlExpression", url), "method": method}
    if body is not None:
        config.update(either("body", "bodyExpression", body))
    more = _given(
        headers=dict(headers) if headers else None, into=_name(into), outcomePolicy=outcome_policy, verifyUrl=verify_url
    )
    return Node("vendor.baton.http", {**config, **more})


def tool(
    tool_id: str,
    arguments: Mapping[str, Any] | Value | None = None,
    *,
    into: str | Variable[Any] | None = None,
    outcome_policy: OutcomePolicy | None = None,
    timeout_ms: int | None = None,
    wait_for_runner_ms: int | None = None,
    runner_version: str | None = None,
    on_tool_error: Literal["fail", "return"] | None = None,
) -> Node:
    """Calls one tool of the catalogue. Without arguments it is given the step's inputs."""
    config: dict[str, Any] = {"tool": tool_id}
    if arguments is not None:
        config.update(either("arguments", "argumentsExpression", arguments))
    more = _given(
        into=_name(into), outcomePolicy=outcome_policy, timeoutMs=timeout_ms, waitForRunnerMs=wait_for_runner_ms,
        runnerVersion=runner_version, onToolError=on_tool_error,
    )  # fmt: skip
    return Node("vendor.baton.tool", {**config, **more})


def sub_workflow(
    workflow_id: str,
    *,
    input_mapping: Mapping[str, str] | None = None,
    output_mapping: Mapping[str, str] | None = None,
    on_child_failure: Literal["fail-parent", "absorb"] | None = None,
    propagate_cancellation: bool | None = None,
) -> Node:
    """Runs a child and waits for its end. `input_mapping`: child's variable from ours; `output_mapping`: ours from its."""
    config = _given(
        workflowId=workflow_id, inputMapping=_map(input_mapping), outputMapping=_map(output_mapping),
        onChildFailure=on_child_failure, propagateCancellation=propagate_cancellation,
    )  # fmt: skip
    return Node("core.subWorkflow", config)


def memory_put(content: Value, *, tags: Sequence[str] | None = None, ttl_seconds: float | None = None) -> Node:
    config = either("content", "contentExpression", content)
    return Node("vendor.baton.memory.put", {**config, **_given(tags=_list(tags), ttlSeconds=ttl_seconds)})


def memory_list(into: str | Variable[Any], *, tag: str | None = None, limit: int | None = None) -> Node:
    """Lists entries, newest first, into a variable."""
    return Node("vendor.baton.memory.list", _given(into=_name(into), tag=tag, limit=limit))


def workspace_put(path: str, content: Value, *, content_type: str | None = None) -> Node:
    config = {"path": path, **either("content", "contentExpression", content), **_given(contentType=content_type)}
    return Node("vendor.baton.workspace.put", config)


def workspace_get(path: str, into: str | Variable[Any]) -> Node:
    """Reads a file into a variable; null if there is none."""
    return Node("vendor.baton.workspace.get", {"path": path, "into": _name(into)})


# --- what a supervisor decides ------------------------------------------------------------------------------------

Decision = dict[str, Any]


def next_worker(
    *workflow_ids: str, confidence: float | None = None, inputs: Sequence[Mapping[str, Any]] | None = None
) -> Decision:
    """These workflows run as children; `inputs` has an object for each of them."""
    more = _given(confidence=confidence, nextWorkerInputs=[dict(one) for one in inputs] if inputs else None)
    return {"kind": "next-worker", "nextWorkerIds": [*workflow_ids], **more}


def ask_user(prompt: str) -> Decision:
    return {"kind": "ask-user", "prompt": prompt}


def terminate(reason: str | None = None, *, confidence: float | None = None) -> Decision:
    """The run completes."""
    return {"kind": "terminate", **_given(reason=reason, confidence=confidence)}


def rule(when: Value, decide: Decision) -> dict[str, Any]:
    return {"when": str(when), "decide": decide}


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _list(items: Sequence[str] | None) -> list[str] | None:
    return None if items is None else [*items]


def _map(items: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if items is None else dict(items)


def _name(variable: str | Variable[Any] | None) -> str | None:
    return variable.name if isinstance(variable, Variable) else variable
